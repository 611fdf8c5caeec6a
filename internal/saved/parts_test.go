package saved

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A memory is a [store.Parts] in memory.
type memory struct {
	parts map[string][]byte
	puts  int
	err   error // of Put, or nil
}

func (s *memory) Put(key string, part []byte) error {
	if s.parts == nil {
		s.parts = make(map[string][]byte)
	}
	if s.puts++; s.err == nil {
		s.parts[key] = part
	}
	return s.err
}

func (s *memory) Get(key string) ([]byte, error) { return s.parts[key], nil }

// partsOf returns s as Parts, which log to log.
func partsOf(s store.Parts, log *bytes.Buffer) *Parts {
	return PartsOf(storeguard.Parts(s, "the store"), slog.New(slog.NewTextHandler(log, nil)))
}

// begunOf returns a state like [stateOf], of which the first items are the prefix.
func begunOf(n, prefix int) *State {
	s := stateOf(n)
	s.PrefixLen = PrefixLen{Items: prefix, Tools: prefix, Of: new(Key)}
	s.Tools[1].Gone = true
	return s
}

// read returns a state as it was before it was written with its prefix.
func read(t *testing.T, data []byte, limit int, parts *Parts) *State {
	s, err := Parse(data, limit)
	require.NoError(t, err)
	require.NoError(t, s.Whole(parts))
	for i := range s.Tools {
		require.NoError(t, s.Load(&s.Tools[i], parts))
	}
	s.Version, s.left = 0, 0
	return s
}

// A state with a prefix is read as it was written, wherever its parts are and
// however a database has written it.
func TestStateWithAPrefix(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]*Parts{"itself": nil, "in a store": partsOf(new(memory), new(bytes.Buffer))} {
		s := begunOf(9, 4)
		data := s.JSON(1<<20, parts)
		want := *begunOf(9, 4)
		want.PrefixLen.Of = new(Key)
		got := read(t, data, 1<<20, parts)
		assert.Equal(t, s.Key(), got.Key(), name)
		got.PrefixLen.Of = want.PrefixLen.Of
		want.Version = 0
		assert.Equal(t, &want, got, name)
		assert.Equal(t, parts == nil, bytes.Contains(data, []byte("definition")), name)

		var other any
		require.NoError(t, json.Unmarshal(data, &other))
		reordered, err := json.MarshalIndent(other, "", "\t")
		require.NoError(t, err)
		got = read(t, reordered, 1<<20, parts)
		got.PrefixLen.Of = want.PrefixLen.Of
		assert.Equal(t, &want, got, name)
	}
}

// States that begin with the same share what is written of it, until the next collection.
func TestStatesShareTheirPrefix(t *testing.T) {
	s := begunOf(200, 190)
	alike := begunOf(200, 190)
	alike.PrefixLen.Of = s.PrefixLen.Of
	data := s.JSON(1<<20, nil)
	want := string(data)
	whole := s.afterPrefix()
	whole.Prefix = s.prefix()
	assert.Equal(t, string(text.RawJSON(whole)), want)
	assert.Equal(t, len(data), cap(data), "others may append")
	clear(data) // a host may do what it likes with what it was given
	assert.Equal(t, want, string(s.JSON(1<<20, nil)))
	assert.Equal(t, want, string(alike.JSON(1<<20, nil)))

	shared := testing.AllocsPerRun(100, func() { s.JSON(1<<20, nil) })
	alone := testing.AllocsPerRun(100, func() {
		s.PrefixLen.Of = new(Key)
		s.JSON(1<<20, nil)
	})
	assert.Less(t, 3*shared, alone)
	runtime.GC()
	assert.True(t, alike.PrefixLen.Of.part.Value() == nil, "it is kept alive")
	assert.Equal(t, want, string(alike.JSON(1<<20, nil)))
}

// Who has the prefix need not read it.
func TestPrefixIsNotRead(t *testing.T) {
	t.Parallel()
	s := begunOf(9, 4)
	data := s.JSON(1<<20, nil)
	at := bytes.Index(data, []byte(beforePrefix))
	torn := append(bytes.Clone(data[:at]), `,"began":{"tools":[`...)
	got, err := Parse(torn, 1<<20)
	require.NoError(t, err)
	require.Equal(t, s.Key(), got.PrefixKey)
	require.NoError(t, got.Begin(Prefix{Tools: s.Tools[:4]}))
	assert.Equal(t, len(s.Tools), len(got.Tools))
	assert.Equal(t, s.Shown[4:], got.Shown)
	assert.Equal(t, s.Active, got.Active)

	got, err = Parse(torn, 1<<20)
	require.NoError(t, err)
	assert.ErrorContains(t, got.Whole(nil), "unexpected end of JSON input")
	got, err = Parse(data, 1<<20)
	require.NoError(t, err)
	assert.EqualError(t, got.Begin(Prefix{Tools: s.Tools[:3]}), "its prefix has 3 tools, want 4")
}

// Whatever the limit, a state keeps it with its parts, is read under it, and has the
// beginning.
func TestLimitWithParts(t *testing.T) {
	t.Parallel()
	whole, items, short := begunOf(30, 10), 0, 0
	for limit := 200; limit <= 2*len(whole.JSON(1<<20, nil)); limit += 37 {
		s := new(memory)
		parts := partsOf(s, new(bytes.Buffer))
		data := begunOf(30, 10).JSON(limit, parts)
		got := read(t, data, limit, parts)
		assert.GreaterOrEqual(t, len(got.Shown), items, limit)
		items = len(got.Shown)
		size := len(data)
		for _, part := range s.parts {
			size += len(part)
		}
		assert.LessOrEqual(t, size, limit)
		short += min(len(s.parts), 1)
	}
	assert.Equal(t, len(whole.Shown), items)
	assert.Positive(t, short)

	// A state that names one part often is not read beyond the limit.
	parts := partsOf(new(memory), new(bytes.Buffer))
	part := bytes.Repeat([]byte("x"), 400)
	require.NoError(t, parts.of.Put(store.KeyOf(part), part))
	s := &State{Tools: list[Tool]{}}
	for i := range 4 {
		s.Tools = append(s.Tools, stateOf(1).Tools[0])
		s.Tools[i].Definition, s.Tools[i].Part = nil, store.KeyOf(part)
	}
	data := s.JSON(1000, nil)
	got, err := Parse(data, len(data)+1000)
	require.NoError(t, err)
	require.NoError(t, got.Load(&got.Tools[0], parts))
	require.NoError(t, got.Load(&got.Tools[1], parts))
	assert.EqualError(t, got.Load(&got.Tools[2], parts), "with its parts, the state exceeds the limit")
}

// A part that is used is put once in an hour. After one could not be put, none is for
// a moment, and the state has them itself.
func TestPartsArePutAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := new(memory), new(bytes.Buffer)
		parts := partsOf(s, log)
		save := func() int { return len(begunOf(9, 9).JSON(1<<20, parts)) }
		small := save()
		for range 3 {
			save()
		}
		assert.Equal(t, 1, s.puts)
		time.Sleep(again - time.Second)
		save()
		assert.Equal(t, 1, s.puts)
		time.Sleep(time.Second)
		save()
		assert.Equal(t, 2, s.puts)
		assert.Empty(t, log.String())

		time.Sleep(again)
		s.err = errors.New("no disk")
		for range 3 {
			assert.Greater(t, save(), 2*small)
		}
		assert.Equal(t, 3, s.puts, "not again at once")
		time.Sleep(pause)
		save()
		assert.Equal(t, 4, s.puts)
		assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), log.String())
		assert.Contains(t, log.String(), "no disk")
		assert.Contains(t, log.String(), `msg="mcphybrid: `)
		time.Sleep(pause)
		s.err = nil
		assert.Equal(t, small, save())
	})
}

// A text that another process put within the hour is not put again. If that was later than now,
// one of the clocks is wrong, and it is.
func TestTextsOfOtherClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text := "a text"
		for ago, puts := range map[time.Duration]int{0: 0, again - 1: 0, again: 1, 1 - again: 0, -again: 1, -24 * again: 1} {
			s := new(memory)
			last := time.Now().Add(-ago)
			key, _ := partsOf(s, new(bytes.Buffer)).keepText("", last, &text, 4<<20)
			assert.Equal(t, store.KeyOf([]byte(text)), key)
			assert.Equal(t, puts, s.puts, ago)
		}
	})
}

// However much a state may have, a text of it has 4 MiB at most.
func TestLongestText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{4 << 20: true, 4<<20 + 1: false} {
		s := begunOf(20, 5)
		s.Texts = func(put func(string, time.Time, *string) (string, time.Time)) string {
			text := strings.Repeat("x", n)
			key, _ := put("", time.Time{}, &text)
			assert.Equal(t, want, key != "", n)
			return key
		}
		require.NotNil(t, s.JSON(64<<20, partsOf(new(memory), new(bytes.Buffer))))
	}
}

// tight takes no large part.
type tight struct{ memory }

func (s *tight) Put(key string, part []byte) error {
	if len(part) > 5000 {
		return errors.New("too large")
	}
	return s.memory.Put(key, part)
}

// A text that the store does not take keeps nothing else out of it.
func TestTextThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, log := new(tight), new(bytes.Buffer)
		parts := partsOf(small, log)
		for range 3 {
			s := begunOf(20, 5)
			s.Texts = func(put func(string, time.Time, *string) (string, time.Time)) string {
				text := strings.Repeat("x", 6000)
				key, _ := put("", time.Time{}, &text)
				return key
			}
			data := s.JSON(1<<20, parts)
			assert.Contains(t, string(data), `"opening":"`)
			assert.NotContains(t, string(data), `"began":`)
			assert.NotContains(t, string(data), `"cut":`)
			require.NotEmpty(t, small.parts)
		}
		assert.Equal(t, 1, strings.Count(log.String(), "too large"), log)
	})
}

// Where a part could not be put, nothing else is for a second, texts neither; where a text could not,
// only texts are not.
func TestPauseAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, failing := range []string{"part", "text"} {
			s := &memory{err: errors.New("full")}
			parts := partsOf(s, new(bytes.Buffer))
			part := func() bool { return parts.keep("k", func() []byte { return []byte("p") }) }
			text := func() bool {
				text := "t"
				key, _ := parts.keepText("", time.Time{}, &text, 10)
				return key != ""
			}
			first, alike, other := part, part, text
			if failing == "text" {
				first, alike, other = text, text, part
			}
			assert.False(t, first())
			s.err = nil
			time.Sleep(pause - 1)
			assert.False(t, alike(), failing)
			assert.Equal(t, 1, s.puts)
			assert.Equal(t, failing == "text", other())
			time.Sleep(time.Nanosecond)
			assert.True(t, alike(), failing)
			assert.True(t, other(), failing)
		}
	})
}

// What was put is remembered of so many parts only: of those that were put last.
func TestPutsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(memory)
		parts := partsOf(s, new(bytes.Buffer))
		puts := func(from, to int) int {
			before := s.puts
			for i := from; i < to; i++ {
				require.True(t, parts.keep(fmt.Sprint(i), func() []byte { return nil }))
				require.LessOrEqual(t, len(parts.last), 10_000)
			}
			return s.puts - before
		}
		const more = 10
		assert.Equal(t, 10_000+more, puts(0, 10_000+more))
		assert.Zero(t, puts(more, 10_000+more))
		assert.Equal(t, more, puts(0, more), "the oldest were forgotten")
		assert.Zero(t, puts(2*more, 10_000+more), "and now the next ones")
		assert.Len(t, parts.puts, 10_000)

		time.Sleep(again / 2)
		assert.Equal(t, 1, puts(10_000+more, 10_000+more+1))
		time.Sleep(again / 2)
		assert.Equal(t, 1, puts(0, 1), "an hour has passed")
		assert.Len(t, parts.last, 2, "all others are old")
		assert.Len(t, parts.puts, 2)
		assert.Zero(t, puts(10_000+more, 10_000+more+1))
	})
}

// A broken store is one that fails.
func TestBrokenStore(t *testing.T) {
	t.Parallel()
	log := new(bytes.Buffer)
	parts := partsOf(broken{}, log)
	data := begunOf(9, 4).JSON(1<<20, parts)
	assert.Len(t, read(t, data, 1<<20, nil).Tools, 10)
	assert.Contains(t, log.String(), "the store: panic: no driver")
	key := store.KeyOf([]byte("x"))
	_, err := parts.get(key)
	assert.ErrorContains(t, err, "the store: panic: no driver")
	_, err = partsOf(new(memory), log).get(key)
	assert.EqualError(t, err, fmt.Sprintf("the store has no part %q", key))
	_, err = (*Parts)(nil).get(key)
	assert.EqualError(t, err, fmt.Sprintf("it is the part %q of a store, and there is none here", key))
	_, err = partsOf(&memory{parts: map[string][]byte{key: []byte("y")}}, log).get(key)
	assert.EqualError(t, err, fmt.Sprintf("the store has something else as the part %q", key))
	_, err = parts.get("../x")
	assert.EqualError(t, err, `"../x" is no key of a part`)
	assert.Nil(t, PartsOf(nil, nil))
}

type broken struct{}

func (broken) Put(string, []byte) error   { panic("no driver") }
func (broken) Get(string) ([]byte, error) { panic("no driver") }

func TestFiles(t *testing.T) {
	t.Parallel()
	files := store.FileParts(t.TempDir())
	parts := partsOf(files, new(bytes.Buffer))
	data := begunOf(9, 4).JSON(1<<20, parts)
	assert.Len(t, read(t, data, 1<<20, partsOf(files, new(bytes.Buffer))).Tools, 10)
	list, err := os.ReadDir(string(files))
	require.NoError(t, err)
	assert.Len(t, list, 6, "the prefix, and five definitions")
	part, err := files.Get(store.KeyOf([]byte("x")))
	assert.NoError(t, err)
	assert.Nil(t, part)
}
