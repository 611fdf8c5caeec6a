package meaning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/vector"
)

// A diary has what happens, a line a step: in its order, with the time since what came before.
type diary struct {
	mu    sync.Mutex
	lines []string
	parts []string // of the line at hand: one for each moment
	last  time.Time
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := " " + fmt.Sprintf(format, args...)
	if after := time.Since(d.last); after > 0 || len(d.parts) == 0 {
		d.parts, d.last = append(d.parts, fmt.Sprintf(" +%v", after)), time.Now()
	}
	d.parts[len(d.parts)-1] += what
}

// end ends the line at hand. What is repeated at the same distance stands there once.
func (d *diary) end() {
	line := ""
	for i, n := 0, 0; i < len(d.parts); i += n {
		for n = 1; i+n < len(d.parts) && d.parts[i+n] == d.parts[i]; n++ {
		}
		line += d.parts[i]
		if n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
	}
	d.lines = append(d.lines, strings.ReplaceAll(strings.TrimPrefix(line, " +0s "), "m0s", "m"))
	d.parts, d.last = nil, time.Now()
}

// told is a logger's handler that writes the message and what comes with it.
type told struct {
	slog.Handler
	d *diary
}

func (l told) Enabled(context.Context, slog.Level) bool { return true }
func (l told) Handle(_ context.Context, r slog.Record) error {
	var with []string
	r.Attrs(func(a slog.Attr) bool { with = append(with, a.String()); return true })
	what, _, _ := strings.Cut(strings.TrimPrefix(r.Message, "mcphybrid: "), ",")
	l.d.add("[%s: %s]", what, strings.Join(with, ", "))
	return nil
}

// The host of a story: all that a keeper calls is his, and may fail.
type storyteller struct {
	lengths
	vector.MemoryStore
	blob
	*diary
	fails map[string]bool // by call
}

func (s *storyteller) did(call, what string) error {
	if s.fails[call] {
		s.add("%s fails", strings.TrimSpace(call+" "+what))
		return errors.New("no " + call)
	}
	s.add("%s", strings.TrimSpace(call+" "+what))
	return nil
}

func (s *storyteller) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	what := fmt.Sprint(len(texts))
	if len(texts) < 4 {
		what = strings.Join(texts, ",")
	}
	if s.fails["bad"] && slices.Contains(texts, "bad text") {
		s.add("embed %s is refused", what)
		return nil, errors.New("a bad text")
	}
	if err := s.did("embed", what); err != nil {
		return nil, err
	}
	return s.lengths.Embed(ctx, texts)
}

// ids names a few records, and counts more.
func ids(list []string) string {
	if len(list) > 4 {
		return fmt.Sprint(len(list))
	}
	return strings.Join(list, ",")
}

func (s *storyteller) Upsert(ctx context.Context, scope string, records []vector.Record) error {
	var list []string
	for _, r := range records {
		list = append(list, fmt.Sprintf("%s=%s/%s/%s", r.ID, r.Text, r.Description, r.Schema))
	}
	if err := s.did("upsert", ids(list)); err != nil {
		return err
	}
	return s.MemoryStore.Upsert(ctx, scope, records)
}

func (s *storyteller) Delete(ctx context.Context, scope string, list []string) error {
	if err := s.did("delete", ids(list)); err != nil {
		return err
	}
	return s.MemoryStore.Delete(ctx, scope, list)
}

func (s *storyteller) Sums(ctx context.Context, scope string) (map[string]string, error) {
	if err := s.did("sums", ""); err != nil {
		return nil, err
	}
	return s.MemoryStore.Sums(ctx, scope)
}

func (s *storyteller) Get(ctx context.Context, scope string, list []string) ([]vector.Record, error) {
	if err := s.did("get", ids(list)); err != nil {
		return nil, err
	}
	return s.MemoryStore.Get(ctx, scope, list)
}

func (s *storyteller) Drop(ctx context.Context, scope string) error {
	if err := s.did("drop", ""); err != nil {
		return err
	}
	return s.MemoryStore.Drop(ctx, scope)
}

func (s *storyteller) Load() ([]byte, error) {
	if err := s.did("load", ""); err != nil {
		return nil, err
	}
	return s.blob.Load()
}

func (s *storyteller) Save(data []byte) error {
	if err := s.did("save", fmt.Sprint((len(data)-56)/28)); err != nil { // of two dimensions
		return err
	}
	return s.blob.Save(data)
}

// testdata/kept.golden has what keepers do over some days: what they ask the embedder, the
// store and the cache for, when they try again, and what they say of it.
func TestKeptGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What a keeper does when texts change and services fail. A text is id=text/description/schema. +1s: so much later; [what is logged]. A line ends with what is reached, what is missing, how much the store has, whether it is in step and idle, and why not.\n")
	for i, story := range []struct {
		name   string
		change func(*Options)
	}{
		{"A store that others use", func(o *Options) {}},
		{"A private store", func(o *Options) { o.Private, o.Grace = true, 10*time.Minute }},
		{"A small budget, without a cache", func(o *Options) { o.Budget, o.Cache = 24, nil }},
	} {
		fmt.Fprintf(&b, "\n%s.\n", story.name)
		synctest.Test(t, func(t *testing.T) { b.WriteString(tell(t, uint64(i), story.change)) })
	}
	golden.Compare(t, "kept.golden", b.String())
}

// tell returns one story, a line a step.
func tell(t *testing.T, seed uint64, change func(*Options)) string {
	rng := rand.New(rand.NewPCG(seed, 5))
	d := &diary{last: time.Now()}
	host := &storyteller{diary: d, fails: make(map[string]bool)}
	kept := make(map[string]Source) // by id
	listed := make(map[string][]string)
	var k *Keeper
	var texts []*Text
	o := Options{Embedder: host, Model: "m", Store: host, Scope: "x", Cache: host, Timeout: time.Second, Trust: 24 * time.Hour, Grace: time.Hour, Budget: 1000,
		Log: slog.New(told{d: d}), Progress: func(done, total int) { d.add("%d/%d", done, total) },
		Current: func() ([]*Text, func() map[string][]string) {
			return texts, func() map[string][]string { return listed }
		}}
	change(&o)
	ctx, stop := context.WithCancel(t.Context())
	open := func() { k = New(o, nil) }
	open()
	put := func(server, name, text string) {
		id := server + "." + name
		kept[id] = Source{ID: id, Server: server, Name: name, Text: text, Description: "d" + text, Schema: []byte("{}")}
	}
	one := func() string {
		list := slices.Sorted(maps.Keys(kept))
		if len(list) == 0 {
			return "none"
		}
		return list[rng.IntN(len(list))]
	}
	broken := int(3 * seed)
	for step := range 40 {
		what := ""
		server := []string{"a", "b", "c"}[rng.IntN(3)]
		switch n := rng.IntN(20); {
		case n < 6 || len(kept) == 0:
			for range 1 + rng.IntN(3) {
				name := string(rune('p' + rng.IntN(9)))
				put(server, name, fmt.Sprint(name, step))
				what += " put " + server + "." + name
			}
		case n < 8:
			for i := range 50 + rng.IntN(100) {
				put(server, fmt.Sprintf("%03d", i), fmt.Sprintf("text %d of %d", i, step))
			}
			what = " put many of " + server
		case n < 9:
			put(server, "bad", "bad text")
			what = " put " + server + ".bad"
			host.fails["bad"] = true
		case n < 11:
			id := one()
			if s, ok := kept[id]; ok {
				s.Description += "!"
				kept[id] = s
			}
			what = " describe " + id
		case n < 14:
			for range 1 + rng.IntN(3) {
				id := one()
				what += " leave " + id
				delete(kept, id)
			}
		case n < 15:
			for _, id := range slices.Sorted(maps.Keys(kept)) {
				if kept[id].Server == server && rng.IntN(10) > 0 {
					delete(kept, id)
				}
			}
			what = " most of " + server + " leave"
		case n < 19:
			call := []string{"embed", "upsert", "delete", "sums", "get", "save", "load"}[broken%7]
			host.fails[call] = true
			broken++
			what = " break " + call
		default:
			what = " nothing"
		}
		if rng.IntN(3) == 0 {
			clear(host.fails)
			what += ", mend"
		}
		if rng.IntN(12) == 0 {
			stop()
			synctest.Wait()
			ctx, stop = context.WithCancel(t.Context())
			open()
			what += ", restart"
		}
		texts = nil
		for _, id := range slices.Sorted(maps.Keys(kept)) {
			texts = append(texts, k.NewText(kept[id]))
		}
		if rng.IntN(2) == 0 { // servers tell what they have
			clear(listed)
			for _, server := range []string{"a", "b"} {
				listed[server] = nil
				for _, s := range kept {
					if s.Server == server {
						listed[server] = append(listed[server], s.Name)
					}
				}
			}
			what += ", listed"
		}
		wait := []time.Duration{0, time.Second, 30 * time.Second, time.Minute, 11 * time.Minute, 30 * time.Minute, time.Hour, 25 * time.Hour}[rng.IntN(8)]
		if wait > time.Minute && len(host.fails) > 0 { // it would try again and again
			wait = 5 * time.Minute
		}
		d.add("%02d%s; %v:", step, what, wait)
		wasIdle := k.Idle()
		k.Changed(func(run func(context.Context)) {
			if wasIdle { // else it may have ended just now
				d.add("begin %v", k.InStep())
			}
			go run(ctx)
		})
		time.Sleep(wait)
		synctest.Wait()
		p := k.Reached()
		if p == nil {
			d.add("| nothing %v %v", k.InStep(), k.Idle())
			d.end()
			continue
		}
		sums, _ := host.MemoryStore.Sums(ctx, "x")
		d.add("| %d/%d -%d of %d %v %v", p.Done, p.Total, p.left, len(sums), k.InStep(), k.Idle())
		if p.Err != nil {
			d.add("%q", p.Err)
		}
		d.end()
	}
	stop()
	synctest.Wait()
	return strings.Join(d.lines, "\n") + "\n"
}

// testdata/fused.golden has what becomes of matches by words and by meaning.
func TestFusedGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What becomes of matches: those by words, the similarities of all that are known (of so many), the scale of these, and the fused ones with the weight of meaning.\n")
	r := rand.New(rand.NewPCG(3, 4))
	tail := normal(r, 400, 0.5, 0.1)
	slices.SortFunc(tail, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, test := range []struct {
		words        string
		similarities []float64
		matches, of  int
		least        float64
	}{
		{"", []float64{0.9, 0.5}, 2, 2, 0},
		{"a b", nil, 0, 9, 0},
		{"a", []float64{0.9}, 1, 1, 0},
		{"b", []float64{0.9}, 1, 2, 0},
		{"a", []float64{0.5, 0.5, 0.5}, 3, 3, 0},
		{"a b c", []float64{0.9, 0.8, 0.3, 0.2, 0.1}, 2, 5, 0.5},
		{"c b a", []float64{0.9, 0.8, 0.3, 0.2, 0.1}, 3, 5, 0.3},
		{"c d e", []float64{0.9, 0.8, 0.3, 0.2, 0.1}, 2, 5, 0.31},
		{"a x b y z", []float64{0.9, 0.8, 0.3, 0.2, 0.1}, 5, 50, 0.85},
		{"a b c d", []float64{0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3}, 3, 16, 0.3},
		{"x a y b", tail[:19], 5, 400, 0.7}, {"x a y b", tail[:20], 5, 400, 0.7}, {"a b c x", tail[:200], 5, 400, 0.7}, {"a b c x", tail[:200], 5, 200, 0.7}, {"y x z", tail[:200], 5, 400, 0.7},
	} {
		f := Found{of: test.of, least: test.least, top: len(test.similarities)}
		shown := ""
		for i, similarity := range test.similarities {
			id := string(rune('a' + i%26))
			if i >= 26 {
				id += fmt.Sprint(i / 26)
			}
			f.all = append(f.all, vector.Match{ID: id, Similarity: similarity})
			if i < 5 {
				shown += fmt.Sprintf(" %s %.3g", id, similarity)
			}
		}
		f.Matches = f.all[:test.matches:test.matches]
		var words []vector.Match
		for i, id := range strings.Fields(test.words) {
			words = append(words, vector.Match{ID: id, Words: 8 / float64(i+1)})
		}
		fmt.Fprintf(&b, "\nwords %q, %d known of %d:%s; matches %d, least %v\n", test.words, len(f.all), test.of, shown, test.matches, test.least)
		if len(f.all) > 0 {
			s := f.scale()
			fmt.Fprintf(&b, "   mean %.4f, deviation %.4f, rest %.4f\n", s.mean, s.deviation, s.rest)
		}
		fused, weight := f.Fuse(words)
		fmt.Fprintf(&b, "   weight %.4f:", weight)
		for _, m := range fused {
			fmt.Fprintf(&b, " %s %.4f (%.3f, %.3f)", m.ID, m.Score, m.Words, m.Similarity)
		}
		b.WriteString("\n")
	}
	golden.Compare(t, "fused.golden", b.String())
}
