package natsstore

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")) // object stores leave it, in BenchmarkObjectStore
}

// An engine is a NATS server in this process, on a free port of 127.0.0.1.
type engine struct {
	folder string
	port   int
	server *server.Server
}

func newEngine(t testing.TB) *engine {
	e := &engine{folder: t.TempDir(), port: server.RANDOM_PORT}
	e.start(t)
	t.Cleanup(e.stop)
	return e
}

func (e *engine) start(t testing.TB) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: e.port, NoLog: true, NoSigs: true, JetStream: true, StoreDir: e.folder})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(20*time.Second))
	e.server = s
	_, err = fmt.Sscanf(s.ClientURL(), "nats://127.0.0.1:%d", &e.port)
	require.NoError(t, err)
}

func (e *engine) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// connect returns a connection of its own, as each process has one.
func (e *engine) connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	opts = append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(time.Minute))
	nc, err := nats.Connect(e.server.ClientURL(), opts...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// open opens a store. Unless opts say otherwise, it has long for a document: on a machine
// with much else to do, one takes seconds.
func (e *engine) open(t testing.TB, opts Options) *Store {
	opts.Timeout = cmp.Or(opts.Timeout, time.Minute)
	s, err := Open(t.Context(), e.connect(t), &opts)
	require.NoError(t, err)
	return s
}

// cut returns a store whose server is gone.
func cut(t *testing.T) *Store {
	e := newEngine(t)
	s := e.open(t, Options{Timeout: time.Second})
	e.stop()
	return s
}

func TestSessions(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	storetest.RunSessions(t, storetest.SessionsSubject{
		Open: func(t *testing.T) store.Sessions { return e.open(t, Options{}).Sessions() },
		Expiring: func(t *testing.T, after time.Duration) store.Sessions {
			return e.open(t, Options{Bucket: "expiring", Expiry: after}).Sessions()
		},
		Broken: func(t *testing.T) store.Sessions { return cut(t).Sessions() },
		Stored: func(t *testing.T, id string) int {
			key, err := encoded(id)
			require.NoError(t, err)
			value, err := e.open(t, Options{}).sessions.Get(t.Context(), key)
			require.NoError(t, err)
			return len(value.Value())
		},
	})
}

// What a state begins with can be lost: then it is an error that says so, and not as if there were no state. It comes
// back when somebody puts it.
func TestLostOpening(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := e.open(t, Options{})
	began := `{"tools":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`
	state := []byte(`{"version":5,"opening":"` + store.KeyOf([]byte(began)) + `","began":` + began + `}`)
	revision, err := s.Sessions().Put(t.Context(), "x", state, 0)
	require.NoError(t, err)
	require.NoError(t, s.stateParts.Purge(t.Context()))
	other := e.open(t, Options{})
	_, _, err = other.Sessions().Get(t.Context(), "x")
	require.ErrorContains(t, err, "what the conversation began with, its first tools and sections, is lost")
	require.NotErrorIs(t, err, store.ErrNotFound)
	_, err = other.Sessions().Put(t.Context(), "x", state, revision)
	require.NoError(t, err)
	got, _, err := e.open(t, Options{}).Sessions().Get(t.Context(), "x")
	require.NoError(t, err)
	assert.Equal(t, string(state), string(got))
}

// An opening is kept longer by more than the hour in which it is not put again than the sessions that have it.
func TestOpeningsOutliveSessions(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, expiry := range []time.Duration{time.Minute, DefaultExpiry, -1} {
		s := e.open(t, Options{Bucket: fmt.Sprint("b", max(0, int64(expiry))), Expiry: expiry})
		sessions, err := s.sessions.Status(t.Context())
		require.NoError(t, err)
		openings, err := s.states.Status(t.Context())
		require.NoError(t, err)
		if expiry < 0 {
			assert.Zero(t, openings.TTL())
			continue
		}
		assert.Greater(t, openings.TTL(), sessions.TTL()+time.Hour)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	storetest.RunParts(t, func(t *testing.T) store.Parts { return e.open(t, Options{}).Parts() })
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	storetest.RunDocuments(t,
		func(t *testing.T, name string) store.Watched { return e.open(t, Options{}).Document(name) },
		func(t *testing.T, name string) store.Watched { return cut(t).Document(name) })
}

func TestLeases(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	storetest.RunLeases(t, storetest.LeasesSubject{
		Open: func(t *testing.T) store.Leases { return e.open(t, Options{LeaseTime: time.Second}).Leases() },
		Cut: func(t *testing.T) (store.Leases, func()) {
			l := new(line)
			s, err := Open(t.Context(), e.connect(t, nats.SetCustomDialer(l)), &Options{LeaseTime: time.Second})
			require.NoError(t, err)
			return s.Leases(), l.cut
		},
	})
}

// The Get and the Put of a turn, over a server in this process that writes to the disk: of a state with an opening of 64 KB, of
// which 3 KB are its own.
func BenchmarkSessions(b *testing.B) {
	e := newEngine(b)
	sessions := e.open(b, Options{}).Sessions()
	began := `{"tools":[` + strings.Repeat(`"x",`, 16_000) + `"x"]}`
	own := make([]byte, 1500)
	for _, way := range []string{"Get", "Put"} {
		b.Run(way, func(b *testing.B) {
			revision := uint64(0)
			for turn := 0; b.Loop(); turn++ {
				_, _ = rand.Read(own)
				state := fmt.Appendf(nil, `{"version":5,"turn":%d,"own":"%x","opening":%q,"began":%s}`, turn, own, store.KeyOf([]byte(began)), began)
				var err error
				if way == "Put" || turn == 0 {
					revision, err = sessions.Put(b.Context(), way+b.Name(), state, revision)
				} else {
					_, revision, err = sessions.Get(b.Context(), way+b.Name())
				}
				require.NoError(b, err)
			}
			require.NoError(b, sessions.Delete(b.Context(), way+b.Name(), 0))
		})
	}
}

// Others may have written to the buckets, too: what is too large is not read to its end.
func TestWhatOthersWrote(t *testing.T) {
	e := newEngine(t)
	s := e.open(t, Options{})
	s.maxPacked = 2 << 20
	d, part := s.Document("d"), store.KeyOf(nil)
	key, err := encoded("d")
	require.NoError(t, err)
	piece := make([]byte, 900<<10)
	binary.BigEndian.PutUint16(piece, math.MaxUint16)
	for i := range s.maxPacked/len(piece) + 1 {
		_, err := s.documents.Put(t.Context(), fmt.Sprintf("p.%s.0.X.%d", key, i), piece)
		require.NoError(t, err)
		_, err = s.states.Put(t.Context(), fmt.Sprintf("s.%s.%d", part, i), piece)
		require.NoError(t, err)
	}
	_, err = s.documents.Put(t.Context(), "d."+key, []byte(`{"version":1,"parts":"0.X","count":1000}`)) // most are missing
	require.NoError(t, err)
	_, err = d.Load()
	require.ErrorIs(t, err, errTooLong)
	_, err = s.Parts().Get(part)
	require.ErrorIs(t, err, errTooLong)
	require.NoError(t, d.Save([]byte("{}")))
	data, err := d.Load()
	require.NoError(t, err)
	assert.Equal(t, "{}", string(data))
}
