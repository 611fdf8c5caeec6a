package integration

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// suite runs all scenarios of the official conformance suite for a version of the protocol.
// It returns where the results are, and what the suite says.
func suite(t *testing.T, version string, args ...string) (found, said string) {
	return runSuite(t, append(args, "--suite", "all", "--spec-version", version)...)
}

func runSuite(t *testing.T, args ...string) (found, said string) {
	at, err := installMore("conformance")
	require.NoError(t, err)
	nodes, err := filepath.Glob(filepath.Join(at, "node_modules/node-linux-*/bin/node"))
	require.NoError(t, err)
	require.Len(t, nodes, 1, "the suite needs Node.js 22, which npm installs")
	found = t.TempDir()
	args = append([]string{filepath.Join(at, "node_modules/@modelcontextprotocol/conformance/dist/index.js")}, args...)
	cmd := exec.CommandContext(t.Context(), nodes[0], append(args, "--timeout", "60000", "-o", found)...)
	out, err := cmd.CombinedOutput() // it fails if a check does
	return found, fmt.Sprintf("%s\n%v", out, err)
}

// The official conformance suite tests the library as a client, through the host in
// conformance/main.go. What fails is in conformance/expected.txt, each with its reason; a
// check that fails no more must leave it.
func TestSpecH4ConformanceOfClient(t *testing.T) {
	program := filepath.Join(t.TempDir(), "host")
	require.NoError(t, command(".", nil, "go", "build", "-o", program, "./conformance"))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			found, said := suite(t, version, "client", "--command", program)
			scenarios, failed := conformance(t, found)
			if !assert.Equal(t, expected(t, "expected.txt", version), failed) {
				t.Log(said)
			}
			t.Logf("%s: %d scenarios, %d checks failed or warned", version, scenarios, len(failed))
		})
	}
}

// Scenarios of extensions are not among all of a version. Those of extensions that the
// library knows pass; the others are in conformance/extensions.txt, each with its reason.
func TestSpecH7ConformanceOfExtensions(t *testing.T) {
	program := filepath.Join(t.TempDir(), "host")
	require.NoError(t, command(".", nil, "go", "build", "-o", program, "./conformance"))
	runs := [][]string{{"--suite", "extensions"}}
	for _, of := range []string{"no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"} {
		runs = append(runs, []string{"--scenario", "sep-2640-client-" + of})
	}
	scenarios, failed, all := 0, []string{}, ""
	for _, args := range runs {
		found, said := runSuite(t, append([]string{"client", "--command", program}, args...)...)
		ran, wrong := checksIn(t, found)
		scenarios, failed, all = scenarios+ran, append(failed, wrong...), all+said
	}
	slices.Sort(failed)
	assert.Equal(t, 10, scenarios)
	if !assert.Equal(t, expected(t, "extensions.txt", "extension"), failed) {
		t.Log(all)
	}
	t.Logf("%d scenarios, %d checks failed or warned", scenarios, len(failed))
}

const suiteToken = "the-suites-token"

// The suite tests a server alone and through the gateway. What fails only through it is in
// conformance/gateway.txt, each with its reason; a check that fails no more must leave it.
// The server is that of the Go SDK for the suite; with sessions before 2026-07-28.
func TestSpecH4ConformanceOfGateway(t *testing.T) {
	program := builtFixture(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	throughGateway(t, "gateway.txt", func(version, address string) (cmd *exec.Cmd, path string) {
		return exec.Command(program, "-http", address, fmt.Sprintf("-stateless=%t", version == "2026-07-28")), "/"
	})
}

// As TestSpecH4ConformanceOfGateway, with the server of mcp-go for the suite.
func TestSpecH4ConformanceOfGatewayBeforeMCPGo(t *testing.T) {
	program := builtFixture(t, "github.com/mark3labs/mcp-go/examples/conformance")
	throughGateway(t, "gateway-mcpgo.txt", func(_, address string) (cmd *exec.Cmd, path string) {
		cmd = exec.Command(program)
		cmd.Env = append(os.Environ(), "CONFORMANCE_ADDR="+address)
		return cmd, "/mcp"
	})
}

func builtFixture(t *testing.T, from string) (program string) {
	program = filepath.Join(t.TempDir(), "server")
	require.NoError(t, command(".", nil, "go", "build", "-o", program, from))
	return program
}

// throughGateway has the suite test a server alone and through the gateway. What fails only
// through it must be what the file of expected failures has. A check that is there for any
// version fails now and then, alone as well, and is not counted.
func throughGateway(t *testing.T, file string, serve func(version, address string) (cmd *exec.Cmd, path string)) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			start := func() (url string, stop func()) {
				return startSuiteServer(t, func(address string) (*exec.Cmd, string) { return serve(version, address) })
			}
			alone, end := start()
			found, _ := suite(t, version, "server", "--url", alone)
			scenarios, without := conformance(t, found)
			end()
			behind, stop := start() // one whose lists the suite has not changed yet

			folder := t.TempDir()
			config, tokens := filepath.Join(folder, "mcp.json"), filepath.Join(folder, "tokens.json")
			require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"u": {"type": "http", "url": %q, "protocol": %q, "unlistedResources": true}}}`, behind, version), 0o600))
			require.NoError(t, os.WriteFile(tokens, fmt.Appendf(nil, `{"tokens": [{"name": "suite", "token": %q}]}`, suiteToken), 0o600))
			gateway := startGateway(t, config, "-ask", "-cache", "off", "-log-level", "debug", "-token-file", tokens)
			t.Cleanup(stop) // before the gateway, which must be the last
			found, said := suite(t, version, "server", "--url", renaming(t, gateway, suiteToken))
			through, failed := conformance(t, found)
			assert.Equal(t, scenarios, through)
			unsteady := expected(t, file, "any")
			lost := slices.DeleteFunc(slices.Clone(failed), func(check string) bool {
				return slices.Contains(without, check) || slices.Contains(unsteady, check)
			})
			if !assert.Equal(t, expected(t, file, version), lost) {
				t.Log(said)
			}
			t.Logf("%s: %d scenarios, %d passed alone, %d through the gateway; failed alone: %q; through the gateway: %q",
				version, scenarios, scenarios-failedScenarios(without), through-failedScenarios(failed), without, failed)
		})
	}
}

// failedScenarios counts the scenarios of checks in order.
func failedScenarios(checks []string) int {
	names := make(map[string]bool)
	for _, check := range checks {
		name, _, _ := strings.Cut(check, " ")
		names[name] = true
	}
	return len(names)
}

// startSuiteServer runs a server until the test ends. serve makes a command that listens at an
// address, and says at which path.
func startSuiteServer(t *testing.T, serve func(address string) (cmd *exec.Cmd, path string)) (url string, stop func()) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	cmd, path := serve(address)
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		assert.NoError(t, cmd.Process.Kill())
		assert.Error(t, cmd.Wait(), "killed")
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return "http://" + address + path, stop
}

// conformance returns how many scenarios have results in a folder, and the checks that
// failed, as "scenario check", in order.
func conformance(t *testing.T, folder string) (scenarios int, failed []string) {
	scenarios, failed = checksIn(t, folder)
	require.Greater(t, scenarios, 15)
	return scenarios, failed
}

// checksIn is conformance of any number of scenarios.
func checksIn(t *testing.T, folder string) (scenarios int, failed []string) {
	failed = []string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var checks []struct{ ID, Status string }
		require.NoError(t, json.Unmarshal(raw, &checks), path)
		require.NotEmpty(t, checks, path)
		scenarios++
		name, err := filepath.Rel(folder, filepath.Dir(path))
		require.NoError(t, err)
		name = strings.TrimPrefix(whenItRan.ReplaceAllString(name, ""), "server-") // of a server's results
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				failed = append(failed, name+" "+c.ID)
			}
		}
		return nil
	}))
	slices.Sort(failed)
	return scenarios, slices.Compact(failed)
}

// whenItRan is the end of a folder's name.
var whenItRan = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-\d]+Z$`)

// expected returns the checks of a file that may fail with a version of the protocol, in
// order.
func expected(t *testing.T, file, version string) []string {
	raw, err := os.ReadFile(filepath.Join("conformance", file))
	require.NoError(t, err)
	list := []string{}
	for line := range strings.Lines(string(raw)) {
		if check, reason, ok := strings.Cut(strings.TrimPrefix(line, version+" "), ": "); ok && strings.HasPrefix(line, version) {
			require.NotEmpty(t, strings.TrimSpace(reason))
			list = append(list, check)
		}
	}
	return list
}
