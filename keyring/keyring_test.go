package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zalando/go-keyring"
)

var _ store.Tokens = (*Store)(nil)

// A fake is a keyring with the narrowest limits of all.
type fake struct {
	mu    sync.Mutex
	items map[string]string
	left  int           // changes until it fails; none if negative
	stuck chan struct{} // if not nil, it hangs until this is closed
	hangs func()        // called before it does
	panic bool          // when it reads
}

func newFake() *fake { return &fake{items: make(map[string]string), left: -1} }

func (f *fake) Get(service, item string) (string, error) {
	if f.stuck != nil {
		f.hangs()
		<-f.stuck
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panic {
		panic("oops")
	}
	secret, ok := f.items[service+"/"+item]
	if !ok {
		return "", keyring.ErrNotFound
	}
	return secret, nil
}

func (f *fake) change() error {
	if f.left == 0 {
		return errors.New("the keyring is locked")
	}
	f.left--
	return nil
}

func (f *fake) Set(service, item, secret string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(secret) > 2560 || len(service+item) > 512 || 60+len(service)+len(item)+len(secret)*4/3 > 4000 {
		return keyring.ErrSetDataTooBig
	}
	if err := f.change(); err != nil {
		return err
	}
	f.items[service+"/"+item] = secret
	return nil
}

func (f *fake) Delete(service, item string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.items[service+"/"+item]; !ok {
		return keyring.ErrNotFound
	}
	if err := f.change(); err != nil {
		return err
	}
	delete(f.items, service+"/"+item)
	return nil
}

func newStore(t *testing.T, r ring) *Store {
	s, err := New(&Options{Service: strings.Repeat("s", maxName), Locks: filepath.Join(t.TempDir(), "locks")})
	require.NoError(t, err)
	s.ring = r
	return s
}

func read(t *testing.T, s *Store, key string) (document []byte) {
	require.NoError(t, s.Update(t.Context(), key, func(d []byte) ([]byte, error) {
		document = d
		return d, nil
	}))
	return document
}

func write(t *testing.T, s *Store, key string, document []byte) error {
	return s.Update(t.Context(), key, func([]byte) ([]byte, error) { return document, nil })
}

// Documents of all lengths replace each other and leave nothing behind.
func TestDocuments(t *testing.T) {
	f := newFake()
	s := newStore(t, f)
	long := strings.Repeat("user", 300)
	for _, n := range []int{1, maxPiece - 1, maxPiece, maxPiece + 1, 65536, maxDocument, 3, 5 * maxPiece, 2 * maxPiece, 4 * maxPiece} {
		for _, key := range []string{"a", long} {
			document := bytes.Repeat([]byte("é"), n/2+1)[:n]
			require.NoError(t, write(t, s, key, document), n)
			assert.Equal(t, string(document), string(read(t, s, key)), n)
			pieces := (n + maxPiece - 1) / maxPiece
			if n < maxPiece {
				pieces = 0
			}
			f.mu.Lock()
			for name := range f.items {
				if !strings.Contains(name, "/"+itemOf(key)+" ") && !strings.HasSuffix(name, "/"+itemOf(key)) {
					pieces++
				}
			}
			assert.Len(t, f.items, pieces+1, n)
			f.mu.Unlock()
		}
	}
	assert.Nil(t, read(t, s, "none"))
	assert.ErrorContains(t, write(t, s, "a", make([]byte, maxDocument+1)), "more than the limit of 131072")
	assert.EqualError(t, s.Update(t.Context(), "a", func([]byte) ([]byte, error) { return nil, errors.New("no change") }), "no change")
	assert.Panics(t, func() { _ = s.Update(t.Context(), "a", func([]byte) ([]byte, error) { panic("oops") }) })
	for _, key := range []string{"a", long} {
		require.NotNil(t, read(t, s, key))
		require.NoError(t, write(t, s, key, nil))
		assert.Nil(t, read(t, s, key))
	}
	assert.Empty(t, f.items)
	_, err := New(&Options{Service: strings.Repeat("s", maxName+1)})
	assert.EqualError(t, err, "keyring: Options.Service has 101 bytes, more than the limit of 100")
}

// A change that ends anywhere leaves the old or the new document, and what it leaves
// besides goes with the document.
func TestCrash(t *testing.T) {
	documents := [][]byte{nil, []byte("short"), bytes.Repeat([]byte("x"), 3*maxPiece), bytes.Repeat([]byte("y"), 2*maxPiece+1)}
	for i, from := range documents {
		for j, to := range documents {
			for changes := range 10 {
				f := newFake()
				s := newStore(t, f)
				require.NoError(t, write(t, s, "k", from))
				f.left = changes
				err := write(t, s, "k", to)
				f.left = -1
				got := read(t, s, "k")
				if err == nil || string(got) != string(from) {
					assert.Equal(t, string(to), string(got), "%d %d %d", i, j, changes)
				} else {
					assert.EqualError(t, errors.Unwrap(err), "the keyring is locked")
				}
				require.NoError(t, write(t, s, "k", []byte("next")))
				require.NoError(t, write(t, s, "k", nil))
				assert.Empty(t, f.items, "%d %d %d", i, j, changes)
			}
		}
	}
	// Somebody deletes an item, or writes one.
	f := newFake()
	s := newStore(t, f)
	for _, spoil := range []func(name string){
		func(name string) { delete(f.items, name) },
		func(name string) { f.items[name] = "*a 99999999 x" },
		func(name string) { f.items[name] = "*a -1 x" },
		func(name string) { f.items[name] = "" },
		func(name string) { f.items[name] = "hunter2" },
	} {
		for _, name := range []string{"k", "k a0", "k b1"} {
			for range 2 {
				require.NoError(t, write(t, s, "k", documents[2]))
				spoil(s.service + "/" + name)
				if got := read(t, s, "k"); got != nil {
					assert.Equal(t, documents[2], got)
				}
				require.NoError(t, write(t, s, "k", documents[3]))
				assert.Equal(t, documents[3], read(t, s, "k"))
			}
		}
	}
}

// Nobody waits for a keyring that hangs, and nobody else gets the turn meanwhile.
func TestHang(t *testing.T) {
	f := newFake()
	f.stuck = make(chan struct{})
	s := newStore(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	f.hangs = cancel // once it has the lock
	err := s.Update(ctx, "k", func([]byte) ([]byte, error) { panic("not called") })
	assert.ErrorIs(t, err, context.Canceled)
	close(f.stuck)
	assert.NoError(t, write(t, s, "k", []byte("x")))
	assert.Equal(t, "x", string(read(t, s, "k")))
}

// A keyring that panics leaves no lock behind.
func TestPanic(t *testing.T) {
	f := newFake()
	s := newStore(t, f)
	require.NoError(t, write(t, s, "k", []byte("x")))
	f.panic = true
	assert.EqualError(t, write(t, s, "k", []byte("y")), "keyring: panic: oops")
	f.panic = false
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.Update(ctx, "k", func(document []byte) ([]byte, error) { return append(document, 'z'), nil }))
	assert.Equal(t, "xz", string(read(t, s, "k")))
}

// Updates of one key exclude each other, also by different stores.
func concurrently(t *testing.T, stores ...*Store) {
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			assert.NoError(t, stores[i%len(stores)].Update(t.Context(), fmt.Sprint("many", i%3), func(document []byte) ([]byte, error) {
				return append(document[:len(document):len(document)], bytes.Repeat([]byte("x"), maxPiece/2)...), nil
			}))
		})
	}
	wg.Wait()
	for i := range 3 {
		key := fmt.Sprint("many", i)
		assert.Len(t, read(t, stores[0], key), 4*maxPiece)
		require.NoError(t, write(t, stores[0], key, nil))
	}
}

func TestConcurrently(t *testing.T) {
	f := newFake()
	s := newStore(t, f)
	other := *s
	concurrently(t, s, &other)
	assert.Empty(t, f.items)
}

// logins logs in, starts a second Manager without a login, and logs out.
func logins(t *testing.T, s *Store) {
	a := mcptest.NewAuthority(t, mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes"))))
	manager := func() *mcphybrid.Manager {
		m := mcphybrid.NewManager(&mcphybrid.Options{
			Servers: []mcphybrid.ServerConfig{{Name: "web", URL: a.Server}}, TokenStore: s,
			OpenURL: func(_ context.Context, page mcphybrid.LoginPage) (string, error) {
				mcptest.Browse(t, page.URL)
				return "", nil
			},
		})
		t.Cleanup(func() { m.Close() })
		return m
	}
	one := manager()
	require.ErrorIs(t, one.Start(t.Context()), mcphybrid.ErrAuthorizationRequired)
	require.NoError(t, one.Login(t.Context(), "web"))
	two := manager()
	require.NoError(t, two.Start(t.Context()))
	require.NoError(t, two.Logout(t.Context(), "web"))
	assert.ErrorIs(t, manager().Start(t.Context()), mcphybrid.ErrAuthorizationRequired)
}

// The library's own fake of a keyring does as ours.
func TestMock(t *testing.T) {
	keyring.MockInit()
	s, err := New(&Options{Locks: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, write(t, s, "k", bytes.Repeat([]byte("x"), 9000)))
	assert.Len(t, read(t, s, "k"), 9000)
	require.NoError(t, write(t, s, "k", nil))
	assert.Nil(t, read(t, s, "k"))
	logins(t, s)
	broken := errors.New("no keyring")
	keyring.MockInitWithError(broken)
	assert.ErrorIs(t, write(t, s, "k", []byte("x")), broken)
}

const sessionVariable = "MCPHYBRID_KEYRING_SESSION"

// TestSecretService runs TestInSession at a real keyring, in a session of its own with
// an empty home.
func TestSecretService(t *testing.T) {
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, "is not installed: the keyring of GNOME is not proven")
		}
	}
	self, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
		`printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$0" -test.run '^TestInSession$' -test.v`, self)
	cmd.Env = append(os.Environ(), sessionVariable+"=1", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestInSession", "%s", out)
}

func TestInSession(t *testing.T) {
	if os.Getenv(sessionVariable) == "" {
		t.Skip("it is run by TestSecretService, in a session of its own")
	}
	s, err := New(nil)
	require.NoError(t, err)
	for _, n := range []int{10, 60000, 3 * maxPiece, 1} {
		document := bytes.Repeat([]byte("x"), n)
		require.NoError(t, write(t, s, "k", document))
		assert.Equal(t, document, read(t, s, "k"))
	}
	require.NoError(t, write(t, s, "k", nil))
	assert.Nil(t, read(t, s, "k"))
	other, err := New(nil)
	require.NoError(t, err)
	concurrently(t, s, other)
	logins(t, s)
}
