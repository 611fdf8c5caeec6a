package weaviatestore

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// addrVariable names the environment variable with a server, as host:port, that
// the tests use instead of their own. They make classes in it and delete them.
const addrVariable = "WEAVIATE_ADDR"

// cacheVariable names the environment variable with the directory to build the
// server in. The default is mcphybrid in the user's cache.
const cacheVariable = "MCPHYBRID_INTEGRATION_CACHE"

// binaryVariable names the environment variable that tells this program, in its
// namespace, the server's program.
const binaryVariable = "MCPHYBRID_WEAVIATE_SERVER"

const (
	serverVersion = "1.35.2"
	serverModule  = "github.com/weaviate/weaviate/cmd/weaviate-server@v" + serverVersion
	serverAddr    = "127.0.0.1:8080" // nobody else is in the namespace
	serverKey     = "key-of-the-tests"

	buildTimeout = 20 * time.Minute
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
)

// TestMain runs the tests in their own network, where the server is the only
// other process: its ports for other nodes can't be restricted to the loopback
// interface. It builds the server, which needs the Internet, and starts itself
// again in the namespace.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(addrVariable) != "" {
		os.Exit(m.Run())
	}
	var code int
	var err error
	if binary := os.Getenv(binaryVariable); binary == "" {
		code, err = outside()
	} else {
		code, err = inside(m, binary)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "weaviatestore: no server to test with: %v\nWith %s=host:port the tests use one that runs there.\n", err, addrVariable)
		code = 1
	}
	os.Exit(code)
}

func outside() (code int, err error) {
	binary, err := build()
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // the child ends with the thread that started it
	cmd, err := startAlone(func() *exec.Cmd {
		cmd := exec.Command(self, os.Args[1:]...)
		cmd.Env = append(os.Environ(), binaryVariable+"="+binary)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd
	})
	if err != nil {
		return 0, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// build returns the server's program. Several processes may build at once: each
// uses its own directory, and the first renames its one.
func build() (string, error) {
	cache := os.Getenv(cacheVariable)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "mcphybrid")
	}
	dir := filepath.Join(cache, "weaviate-v"+serverVersion)
	binary := filepath.Join(dir, "weaviate-server")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(cache, "weaviate-building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	fmt.Fprintf(os.Stderr, "weaviatestore: building %s, once, which takes some minutes\n", serverModule)
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", serverModule)
	cmd.Dir = temp
	cmd.Env = append(os.Environ(), "GOBIN="+temp, "GOFLAGS=", "GOWORK=off")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Stat(binary); there != nil {
			return "", err
		}
	}
	return binary, nil
}

func inside(m *testing.M, binary string) (code int, err error) {
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	data, err := os.MkdirTemp("", "weaviatestore-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(data)
	own = &engine{binary: binary, data: data}
	code = m.Run()
	return code, own.stop()
}

// own is the tests' own server, or nil.
var own *engine

// An engine is a server. It ends with this process, which is the first in its
// namespace.
type engine struct {
	binary, data string

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil while it is not running; guarded by mu
	ended chan struct{} // closed when cmd has ended
	log   bytes.Buffer  // of cmd; valid after ended is closed
}

// start starts the server if it isn't running, and waits until it is ready.
func (e *engine) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cmd != nil {
		return nil
	}
	cmd, err := e.command()
	if err != nil {
		return err
	}
	e.log.Reset()
	cmd.Stdout, cmd.Stderr = &e.log, &e.log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	e.cmd, e.ended = cmd, ended
	s, err := New(Options{URL: "http://" + serverAddr, Client: &http.Client{Timeout: startTimeout}})
	if err != nil {
		return err
	}
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	again := time.NewTicker(100 * time.Millisecond) // nothing else reports it
	defer again.Stop()
	for {
		select {
		case <-ended:
			e.cmd = nil
			return fmt.Errorf("the server ends while it starts:\n%s", e.log.Bytes())
		case <-late.C:
			_ = cmd.Process.Kill()
			<-ended
			e.cmd = nil
			return fmt.Errorf("the server is not ready after %s:\n%s", startTimeout, e.log.Bytes())
		case <-again.C:
			if s.call(context.Background(), http.MethodGet, "/v1/.well-known/ready", nil, nil) == nil {
				return nil
			}
		}
	}
}

// command returns the server's command line. The server admits clients with the
// key and clients without any key.
func (e *engine) command() (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(serverAddr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(e.binary, "--host", host, "--port", port, "--scheme", "http")
	cmd.Env = []string{
		"HOME=" + e.data, "PATH=" + os.Getenv("PATH"), "PERSISTENCE_DATA_PATH=" + e.data,
		"AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true",
		"AUTHENTICATION_APIKEY_ENABLED=true", "AUTHENTICATION_APIKEY_ALLOWED_KEYS=" + serverKey, "AUTHENTICATION_APIKEY_USERS=tests",
		"DEFAULT_VECTORIZER_MODULE=none", "ENABLE_MODULES=",
		"CLUSTER_HOSTNAME=node1", "CLUSTER_ADVERTISE_ADDR=127.0.0.1", "CLUSTER_BIND_ADDR=127.0.0.1",
		"RAFT_BOOTSTRAP_EXPECT=1", "RAFT_JOIN=node1", "DISABLE_TELEMETRY=true", "GO_PROFILING_DISABLE=true",
	}
	return cmd, nil
}

// stop ends a running server as its operator would.
func (e *engine) stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cmd == nil {
		return nil
	}
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	defer func() { e.cmd = nil }()
	select {
	case <-e.ended:
		return nil
	case <-late.C:
		_ = e.cmd.Process.Kill()
		<-e.ended
		return fmt.Errorf("the server does not end after %s:\n%s", stopTimeout, e.log.Bytes())
	}
}

// running returns the address of the server. The first caller starts it.
func running() (addr string, err error) {
	if own == nil {
		return os.Getenv(addrVariable), nil
	}
	return serverAddr, own.start()
}

func addr(t testing.TB) string {
	t.Helper()
	addr, err := running()
	require.NoError(t, err)
	return addr
}
