package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// grafanaPackage is the only server that is not from npm.
// servers/package-lock.json pins those from npm, with all their dependencies.
const grafanaPackage = "github.com/grafana/mcp-grafana/cmd/mcp-grafana@v1.6.3"

// cacheVariable names the environment variable with the directory to install
// into. The default is .cache.
const cacheVariable = "MCPHYBRID_INTEGRATION_CACHE"

// serversVariable names the environment variable that says npm if mcp-grafana
// need not be built, because no test will start it.
const serversVariable = "MCPHYBRID_INTEGRATION_SERVERS"

// installTimeout bounds each installation. With empty caches on two slow cores,
// building mcp-grafana takes four minutes.
const installTimeout = 8 * time.Minute

// runDir is a directory for this run alone. All paths that the servers get lie
// in it, TMPDIR included. So a process of this run can be recognized by its
// command line or environment, whoever its parent is.
var runDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	defer os.RemoveAll(runDir)
	code := m.Run()
	if left := processes(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "integration: processes are left:", left)
		return 1
	}
	return code
}

// setUp installs what is missing and makes runDir:
//
//	npm      the installed npm packages (a link)
//	grafana  the installed mcp-grafana (a link)
//	…        the tests' temporary directories
func setUp() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("these tests read /proc: they run on Linux, not on %s", runtime.GOOS)
	}
	npm, grafana, err := install()
	if err != nil {
		return err
	}
	if runDir, err = os.MkdirTemp("", "mcphybrid-integration-"); err != nil {
		return err
	}
	if err := os.Setenv("TMPDIR", runDir); err != nil {
		return err
	}
	// The gateway keeps lists in the user's cache folder, where go keeps what it builds.
	built, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	if err := errors.Join(os.Setenv("GOCACHE", strings.TrimSpace(string(built))), os.Setenv("XDG_CACHE_HOME", runDir)); err != nil {
		return err
	}
	if err := os.Symlink(npm, filepath.Join(runDir, "npm")); err != nil {
		return err
	}
	return os.Symlink(grafana, filepath.Join(runDir, "grafana"))
}

// install returns the directories of the installed servers.
func install() (npm, grafana string, err error) {
	for _, program := range []string{"node", "npm", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", "", fmt.Errorf("these tests install and run published servers and need node (20 or newer), npm and go: %w", err)
		}
	}
	cache, unlock, err := openCache()
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if npm, err = ensureNPM(cache, "npm", "servers"); err != nil {
		return "", "", err
	}
	if os.Getenv(serversVariable) == "npm" {
		return npm, filepath.Join(cache, "grafana-not-built"), nil
	}
	grafana, err = ensure(cache, "grafana", grafanaPackage, func(dir string) error {
		return command(dir, []string{"GOBIN=" + dir}, "go", "install", grafanaPackage)
	})
	return npm, grafana, err
}

// installMore returns a link to the directory of further servers, which one test needs:
// those of the folder servers/name.
func installMore(name string) (link string, err error) {
	cache, unlock, err := openCache()
	if err != nil {
		return "", err
	}
	defer unlock()
	more, err := ensureNPM(cache, name, filepath.Join("servers", name))
	if err != nil {
		return "", err
	}
	link = filepath.Join(runDir, name)
	if err := os.Symlink(more, link); !errors.Is(err, fs.ErrExist) { // with -count
		return link, err
	}
	return link, nil
}

// openCache returns the directory to install into, which nobody else uses until unlock.
func openCache() (cache string, unlock func(), err error) {
	cache = os.Getenv(cacheVariable)
	if cache == "" {
		cache = ".cache"
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err = lock(filepath.Join(cache, "lock"))
	return cache, unlock, err
}

// ensureNPM installs what package.json and package-lock.json in a folder name.
func ensureNPM(cache, name, folder string) (dir string, err error) {
	files := make(map[string][]byte)
	for _, name := range []string{"package.json", "package-lock.json"} {
		if files[name], err = os.ReadFile(filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return ensure(cache, name, string(files["package.json"])+string(files["package-lock.json"]), func(dir string) error {
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
		}
		return command(dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
}

// ensure returns the directory in cache for key. If it is not filled yet,
// ensure calls fill with it, and writes a stamp last.
func ensure(cache, name, key string, fill func(dir string) error) (dir string, err error) {
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])
	dir = filepath.Join(cache, name+"-"+hash[:12])
	stamp := filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == hash {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := fill(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(stamp, []byte(hash), 0o644)
}

// lock waits until no other process installs into the same cache.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

func command(dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
