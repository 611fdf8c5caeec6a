package pgstore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// serverVariable names the environment variable with the connection string of a
// PostgreSQL that the tests may use besides PGlite, which has only one backend
// and so no concurrency. The tests make schemas in it and drop them.
const serverVariable = "MCPHYBRID_POSTGRES"

// cacheVariable names the environment variable with the directory to install
// PGlite into. The default is mcphybrid in the user's cache.
const cacheVariable = "MCPHYBRID_INTEGRATION_CACHE"

const (
	installTimeout = 5 * time.Minute
	startTimeout   = 2 * time.Minute
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := stopPGlite(); err != nil {
		fmt.Fprintln(os.Stderr, "pgstore:", err)
		code = 1
	}
	os.Exit(code)
}

// An engine is a database that tests run in.
type engine struct {
	connection string
	native     bool // transactions run at once
}

// each runs a test in PGlite and in the server that the environment names.
func each(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Run("PGlite", func(t *testing.T) {
		port, err := pglite()
		require.NoError(t, err)
		// All connections share the prepared statements of one backend.
		test(t, &engine{connection: fmt.Sprintf("postgres://postgres:hush-hush@127.0.0.1:%s/postgres?sslmode=disable&default_query_exec_mode=simple_protocol&pool_max_conns=8", port)})
	})
	t.Run("Server", func(t *testing.T) {
		connection := os.Getenv(serverVariable)
		if connection == "" {
			t.Skipf("%s is not set: not tested with a server of one's own", serverVariable)
		}
		test(t, &engine{connection: connection, native: true})
	})
}

// schema returns the name of a new schema. It is dropped after the test, with
// its scopes.
func (e *engine) schema(t *testing.T) string {
	name := fmt.Sprintf(`pgstore "test" %d`, rand.Uint64())
	t.Cleanup(func() {
		pool := e.pool(t)
		defer pool.Close()
		ctx := context.Background()
		// Dropping all at once would need more locks than one transaction may
		// have.
		rows, err := pool.Query(ctx, "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname = $1", name)
		require.NoError(t, err)
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, table := range tables {
			_, err := pool.Exec(ctx, "DROP TABLE "+table, pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
		}
		_, err = pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
		require.NoError(t, err)
	})
	return name
}

// pool returns connections, which are closed after the test at the latest.
func (e *engine) pool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), e.connection)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (e *engine) open(t *testing.T, opts Options) *Store {
	t.Helper()
	s, err := New(t.Context(), e.pool(t), &opts)
	require.NoError(t, err)
	return s
}

// running returns PGlite. The first caller starts it.
var running struct {
	command *exec.Cmd
	stdin   io.Closer
}

var pglite = sync.OnceValues(func() (port string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("these tests run PGlite and need node (20 or newer) and npm: %w", err)
		}
	}
	dir, err := install()
	if err != nil {
		return "", fmt.Errorf("installing PGlite: %w", err)
	}
	cmd := exec.Command("node", "server.mjs")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	running.command, running.stdin = cmd, stdin
	late := time.AfterFunc(startTimeout, func() { cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("PGlite does not start: %w", err)
	}
	return strings.TrimSpace(line), nil
})

func stopPGlite() error {
	if running.command == nil {
		return nil
	}
	running.stdin.Close()
	late := time.AfterFunc(10*time.Second, func() { running.command.Process.Kill() })
	defer late.Stop()
	return running.command.Wait()
}

// install returns a directory with server.mjs and its dependencies, as pinned
// by package-lock.json. Several processes may install at once: each uses its
// own directory, and the first renames its one.
func install() (string, error) {
	files := make(map[string][]byte)
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json", "server.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			return "", err
		}
		files[name] = data
		sum.Write(data)
	}
	cache := os.Getenv(cacheVariable)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "mcphybrid")
	}
	dir := filepath.Join(cache, "pglite-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(cache, "pglite-installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(temp, name), data, 0o644); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = temp
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// A line is a connection to an engine that can be cut or made silent.
type line struct {
	net.Listener
	to string

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	silent bool       // guarded by mu
}

// through returns e behind a line.
func (e *engine) through(t *testing.T) (*engine, *line) {
	config, err := pgx.ParseConfig(e.connection)
	require.NoError(t, err)
	if strings.HasPrefix(config.Host, "/") {
		t.Skip("not over TCP")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{Listener: listener, to: net.JoinHostPort(config.Host, fmt.Sprint(config.Port))}
	var wg sync.WaitGroup
	wg.Go(func() { l.serve(&wg) })
	t.Cleanup(func() {
		l.cut()
		wg.Wait()
	})
	at := listener.Addr().(*net.TCPAddr)
	connection := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=hush-hush dbname=%s sslmode=disable", at.Port, config.User, config.Database)
	if !e.native {
		connection += " default_query_exec_mode=simple_protocol"
	}
	return &engine{connection: connection, native: e.native}, l
}

func (l *line) serve(wg *sync.WaitGroup) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil {
			from.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, from, to)
		l.mu.Unlock()
		wg.Go(func() { l.copy(to, from) })
		wg.Go(func() { l.copy(from, to) })
	}
}

// copy forwards data until the line is silent.
func (l *line) copy(to, from net.Conn) {
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		l.mu.Lock()
		silent := l.silent
		l.mu.Unlock()
		if !silent {
			to.Write(data[:n])
		}
		if errors.Is(err, net.ErrClosed) || err != nil {
			to.Close()
			return
		}
	}
}

func (l *line) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

func (l *line) cut() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}
