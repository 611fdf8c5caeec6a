package natsstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that comes back has what was stored, and watchers learn of what they missed.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	a, b := e.open(t, Options{}), e.open(t, Options{Timeout: 30 * time.Second})
	revision, err := a.Sessions().Put(t.Context(), "x", []byte("one"), 0)
	require.NoError(t, err)
	require.NoError(t, a.Document("trust").Save([]byte("one")))

	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- b.Document("trust").Watch(ctx, func() {
			data, err := b.Document("trust").Load()
			if assert.NoError(t, err) {
				changed <- string(data)
			}
		})
	}()
	require.Equal(t, "one", <-changed)

	e.stop()
	away, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err = a.Sessions().Put(away, "x", []byte("lost"), revision)
	require.Error(t, err)
	e.start(t)

	// Whether what failed is stored, or will be once the connection is back, is not known.
	// So who goes on looks, and is told if that comes between.
	require.Eventually(t, func() bool {
		state, revision, err := a.Sessions().Get(t.Context(), "x")
		if err != nil {
			return false
		}
		assert.Contains(t, []string{"one", "lost"}, string(state))
		_, err = a.Sessions().Put(t.Context(), "x", []byte("two"), revision)
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	require.NoError(t, a.Document("trust").Save([]byte("two")))
	require.Eventually(t, func() bool { return <-changed == "two" }, 5*time.Second, time.Millisecond, "it does not wait until it misses heartbeats")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// Who closes the connection ends what watches over it.
func TestWatchEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	nc := e.connect(t)
	s, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	began, ended := make(chan struct{}, 10), make(chan error, 1)
	go func() { ended <- s.Document("x").Watch(t.Context(), func() { began <- struct{}{} }) }()
	<-began
	nc.Close()
	assert.ErrorIs(t, <-ended, nats.ErrConnectionClosed)
}

// A list that is cut off is an error, and not a shorter list.
func TestListEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	nc := e.connect(t)
	s, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	const n = 1000 // more than a watcher has room for
	for i := range n {
		_, err := s.Sessions().Put(t.Context(), fmt.Sprint(i), nil, 0)
		require.NoError(t, err)
	}
	listed := 0
	for _, err = range s.Sessions().List(t.Context()) {
		if listed++; listed == 1 {
			nc.Close()
		}
	}
	require.Less(t, listed, n)
	assert.EqualError(t, err, "natsstore: sessions: the subscription has ended")
}

// subjects returns what the documents' stream has.
func subjects(t *testing.T, s *Store) (list []string) {
	info, err := s.parts.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	for subject := range info.State.Subjects {
		list = append(list, strings.TrimPrefix(subject, "$KV.mcphybrid_documents."))
	}
	return list
}

// Old versions leave nothing behind, and what a crash left is removed by the next save.
func TestOldPartsAreRemoved(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := e.open(t, Options{})
	data := make([]byte, 3*partBytes)
	for i := range data {
		data[i] = byte(i * i >> 7) // which gzip makes a little smaller only
	}
	d := s.Document("big").(*document)
	for i := range 5 {
		data[0] = byte(i)
		require.NoError(t, d.Save(data))
	}
	m, err := d.manifest(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, m.Parts)
	require.Len(t, subjects(t, s), 1+m.Count)
	require.NoError(t, s.Document("big2").Save([]byte("x")))

	// A writer that has put its parts, and then found that it was late.
	late := d.replace(t.Context(), manifest{revision: m.revision - 1}, data)
	require.ErrorIs(t, late, errReplaced)
	require.Len(t, subjects(t, s), 1+2*m.Count+2)
	require.NoError(t, d.Save([]byte("small")))
	assert.Len(t, subjects(t, s), 2+2)
	require.NoError(t, d.Update(t.Context(), func([]byte) ([]byte, error) { return nil, nil }))
	assert.Len(t, subjects(t, s), 1+2)

	// What a writer has put that may still win stays.
	m, err = d.manifest(t.Context())
	require.NoError(t, err)
	_, err = s.documents.Put(t.Context(), d.part(manifest{Parts: "999999.abc"}, 0), []byte("x"))
	require.NoError(t, err)
	d.tidy(t.Context(), m.revision, "")
	assert.Len(t, subjects(t, s), 1+2+1)
}

// A part that is missing for good is an error, and no endless wait.
func TestMissingPart(t *testing.T) {
	t.Parallel()
	s := newEngine(t).open(t, Options{Timeout: 300 * time.Millisecond})
	d := s.Document("x").(*document)
	require.NoError(t, d.Save([]byte("x")))
	m, err := d.manifest(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.documents.Delete(t.Context(), d.part(m, 0)))
	_, err = d.Load()
	assert.EqualError(t, err, `natsstore: loading the document "x": a part of the document is missing`)
	for _, bad := range []string{"", "null", "{", `{"version":2,"count":1}`, `{"version":1,"count":-1}`, `{"version":1,"count":99999999}`} {
		_, err := s.documents.Put(t.Context(), d.head(), []byte(bad))
		require.NoError(t, err)
		_, err = d.Load()
		assert.Error(t, err, bad)
	}
	require.Error(t, d.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("y"), nil }), "it would overwrite what it can't read")
}

func TestOptions(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for want, opts := range map[string]*Options{
		`natsstore: Options.Bucket "a.b" may have letters, digits, - and _ only`: {Bucket: "a.b"},
		`natsstore: Options.Replicas is 6, not from 0 to 5`:                      {Replicas: 6},
		`natsstore: Options.Timeout is -1ns, below 0`:                            {Timeout: -1},
	} {
		_, err := Open(t.Context(), e.connect(t), opts)
		assert.EqualError(t, err, want)
	}
	_, err := Open(t.Context(), e.connect(t), &Options{Replicas: 3})
	assert.ErrorContains(t, err, "natsstore: bucket mcphybrid_sessions: ", "one server has no replicas")

	expiry := func(s *Store) time.Duration {
		status, err := s.sessions.Status(t.Context())
		require.NoError(t, err)
		return status.TTL()
	}
	assert.Equal(t, DefaultExpiry, expiry(e.open(t, Options{})))
	assert.Equal(t, time.Hour, expiry(e.open(t, Options{Expiry: time.Hour})), "a bucket follows the options")
	assert.Zero(t, expiry(e.open(t, Options{Expiry: -1})))
	assert.Zero(t, expiry(e.open(t, Options{Expiry: -1, Replicas: 1})))
}

// A server whose messages have no room is refused.
func TestMaxPayloadIsTooSmall(t *testing.T) {
	t.Parallel()
	for _, most := range []int32{3000, 4096, 4098, 8191, 8192} {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: most})
		require.NoError(t, err)
		s.Start()
		defer s.Shutdown()
		require.True(t, s.ReadyForConnections(20*time.Second))
		nc, err := nats.Connect(s.ClientURL())
		require.NoError(t, err)
		defer nc.Close()
		opened, err := Open(t.Context(), nc, nil)
		if most < 8192 {
			require.EqualError(t, err, fmt.Sprintf("natsstore: max_payload of the server is %d, less than 8192", most))
			continue
		}
		require.NoError(t, err)
		var want []byte // 5 KB compressed
		for range 300 {
			want = append(want, rand.Text()...)
		}
		d := opened.Document("x")
		require.NoError(t, d.Save(want))
		got, err := d.Load()
		require.NoError(t, err)
		assert.Equal(t, want, got)
		key := strings.Repeat("a", 43)
		require.NoError(t, opened.Parts().Put(key, want))
		got, err = opened.Parts().Get(key)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// A document of many parts, as messages without much room make them, is loaded and saved again.
func TestManyParts(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: minPayload})
	require.NoError(t, err)
	s.Start()
	e := &engine{server: s}
	t.Cleanup(e.stop)
	require.True(t, s.ReadyForConnections(20*time.Second))
	d := e.open(t, Options{Timeout: time.Minute}).Document("x").(*document)
	want := make([]byte, (store.MaxDocument/partBytes+2)*(minPayload-maxHead))
	_, _ = rand.Read(want) // it never fails
	for range 2 {
		want[0]++
		require.NoError(t, d.Save(want))
		got, m, err := d.load(t.Context())
		require.NoError(t, err)
		require.Greater(t, m.Count, store.MaxDocument/partBytes+1)
		require.True(t, bytes.Equal(want, got))
	}
}

// A part whose number of messages has no room in the first one is refused.
func TestPartOfTooManyMessages(t *testing.T) {
	const size = minPayload - maxHead - 2
	for n, want := range map[int]int{0: 1, 1: 1, size: 1, size + 1: 2, math.MaxUint16 * size: math.MaxUint16} {
		got, err := messages(n, size)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := messages(store.MaxDocument, size)
	assert.ErrorIs(t, err, store.ErrTooLarge)
	assert.ErrorContains(t, err, "raise the server's max_payload")
}

// A state must fit into one message.
func TestMaxPayload(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 16 << 10})
	require.NoError(t, err)
	s.Start()
	e := &engine{server: s}
	t.Cleanup(e.stop)
	require.True(t, s.ReadyForConnections(20*time.Second))
	opened := e.open(t, Options{})
	random := make([]byte, 12<<10+1)
	for i := range random {
		random[i] = byte(i * i >> 7)
	}
	sessions := opened.Sessions()
	revision, err := sessions.Put(t.Context(), "x", random[:1000], 0)
	require.NoError(t, err)
	_, err = sessions.Put(t.Context(), "x", []byte(strings.Repeat("tool ", 100_000)), revision)
	assert.NoError(t, err, "it is small when it is compressed")
	require.NoError(t, opened.Document("x").Save(append(random, random...)))
	data, err := opened.Document("x").Load()
	require.NoError(t, err)
	assert.Len(t, data, 2*len(random))

	_, _ = rand.Read(random) // it never fails
	_, err = sessions.Put(t.Context(), "y", random, 0)
	assert.ErrorIs(t, err, store.ErrTooLarge)
	assert.ErrorContains(t, err, "raise the server's max_payload")
}

func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{"", "x", "\x1f\x8b", string(pack([]byte("\x1f\x8b"))), string(pack(make([]byte, 5000)))} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 16
		if out, err := unpack(data, most); err == nil && len(out) > most {
			t.Fatal("larger than permitted")
		}
		out, err := unpack(pack(data), len(data))
		require.NoError(t, err)
		require.Equal(t, string(data), string(out))
		if len(data) > 0 {
			_, err = unpack(pack(data), len(data)-1)
			require.Error(t, err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"parts":"0.abc","count":3}`))
	f.Add(fmt.Appendf(nil, `{"version":1,"parts":"0.abc","count":%d}`, maxParts+1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseManifest(data); err == nil && (m.Count < 0 || m.Count > maxParts) {
			t.Fatal(m.Count)
		}
	})
}
