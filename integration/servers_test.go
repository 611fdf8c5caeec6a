package integration

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// loopbackScript restricts server-everything to one interface.
const loopbackScript = "loopback.cjs"

// A server is one entry of a configuration file.
type server struct {
	name string

	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`

	Timeout     string `json:"timeout,omitempty"`
	CallTimeout string `json:"callTimeout,omitempty"`
}

func script(name string) string {
	return filepath.Join(runDir, "npm/node_modules/@modelcontextprotocol/server-"+name+"/dist/index.js")
}

func everything() server {
	return server{name: "everything", Command: "node", Args: []string{script("everything"), "stdio"}}
}

// filesystem is a server for the files in dir.
func filesystem(dir string) server {
	return server{name: "filesystem", Command: "node", Args: []string{script("filesystem"), dir}}
}

// memory is a server that keeps its data in file.
func memory(file string) server {
	return server{
		name: "memory", Command: "node", Args: []string{script("memory")},
		Env: map[string]string{"MEMORY_FILE_PATH": file},
	}
}

// grafana is a server for a Grafana that does not exist.
func grafana() server {
	return server{
		name: "grafana", Command: filepath.Join(runDir, "grafana/mcp-grafana"), Args: []string{"-t", "stdio"},
		Env: map[string]string{"GRAFANA_URL": "http://127.0.0.1:1", "GRAFANA_SERVICE_ACCOUNT_TOKEN": "dummy"},
	}
}

// everythingHTTP is a server that runs until the end of the test, on a free
// port of 127.0.0.1 and, thanks to loopbackScript, on no other address.
func everythingHTTP(t *testing.T) server {
	t.Helper()
	s, _ := startEverythingHTTP(t)
	return s
}

// startEverythingHTTP returns the server of everythingHTTP and a function that
// kills it and returns when it is gone.
func startEverythingHTTP(t *testing.T) (s server, kill func()) {
	t.Helper()
	return startEverythingHTTPAt(t, "0")
}

// startEverythingHTTPAt is startEverythingHTTP on a given port. The server
// listens when it returns.
func startEverythingHTTPAt(t *testing.T, at string) (s server, kill func()) {
	t.Helper()
	loader, err := filepath.Abs(filepath.Join("servers", loopbackScript))
	require.NoError(t, err)
	cmd := exec.Command("node", "--require", loader, script("everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+at)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	port, portOut, err := os.Pipe()
	require.NoError(t, err)
	defer port.Close()
	cmd.ExtraFiles = []*os.File{portOut} // descriptor 3
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	err = cmd.Start()
	portOut.Close()
	require.NoError(t, err)
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)

	require.NoError(t, port.SetReadDeadline(time.Now().Add(time.Minute)))
	number, err := bufio.NewReader(port).ReadString('\n')
	require.NoError(t, err, "server-everything does not listen: %s", read(log.Name()))
	return server{name: "everything-http", URL: "http://127.0.0.1:" + strings.TrimSpace(number) + "/mcp"}, kill
}

// startPrinting runs a program until the end of the test and returns the line that it
// prints first. The program must end with its standard input.
func startPrinting(t *testing.T, cmd *exec.Cmd) (line string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	require.NoError(t, cmd.Start())
	printing.Store(cmd.Process.Pid, true)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its exit status does not matter
		printing.Delete(cmd.Process.Pid)
		if t.Failed() {
			t.Log(complaints.String())
		}
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", cmd)
	return strings.TrimSpace(line)
}

// fiveServers are all servers, in an order that is neither that of their names
// nor that of their speed at start. The first three have 40 tools.
func fiveServers(t *testing.T) []server {
	t.Helper()
	dir := t.TempDir()
	return []server{
		filesystem(dir), everything(), everythingHTTP(t), memory(filepath.Join(dir, "memory.jsonl")), grafana(),
	}
}

// writeConfig writes a configuration file with servers in the given order.
func writeConfig(t *testing.T, servers ...server) (path string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`{"mcpServers": {`)
	for i, s := range servers {
		if i > 0 {
			b.WriteByte(',')
		}
		entry, err := json.Marshal(s)
		require.NoError(t, err)
		fmt.Fprintf(&b, "\n\t%q: %s", s.name, entry)
	}
	b.WriteString("\n}}\n")
	path = filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// newManager returns a Manager of servers, which it reads from a file and does
// not start. When the test ends, it is closed and must leave nothing.
func newManager(t *testing.T, servers ...server) *mcphybrid.Manager {
	t.Helper()
	return loadManager(t, writeConfig(t, servers...))
}

// loadManager returns a Manager that does not restart servers, so that a test
// sees that they are down.
func loadManager(t *testing.T, path string) *mcphybrid.Manager {
	t.Helper()
	return loadManagerThat(t, path, mcphybrid.Options{Limits: config.Limits{Reconnect: -1}})
}

func loadManagerThat(t *testing.T, path string, opts mcphybrid.Options) *mcphybrid.Manager {
	t.Helper()
	cfg, err := mcphybrid.LoadConfig(path)
	require.NoError(t, err)
	before := goleak.IgnoreCurrent()
	opts.Servers = cfg.Servers
	opts.Limits.StartTimeout = cmp.Or(opts.Limits.StartTimeout, time.Minute) // for a slow machine
	mgr := mcphybrid.NewManager(&opts)
	t.Cleanup(func() {
		assert.NoError(t, mgr.Close())
		assert.Empty(t, children(), "processes left by Close")
		for try := 0; try < 60 && goleak.Find(before) != nil; try++ { // half a second each
		}
		goleak.VerifyNone(t, before)
	})
	return mgr
}

// startManager returns a Manager whose servers have all started.
func startManager(t *testing.T, servers ...server) *mcphybrid.Manager {
	t.Helper()
	mgr := newManager(t, servers...)
	require.NoError(t, mgr.Start(t.Context()))
	return mgr
}

// A caller is a Manager, a Session or anything else with their method Call.
type caller interface {
	Call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)
}

// call makes a call, which must succeed, and returns the text of the result.
func call(t *testing.T, c caller, name string, args any) string {
	t.Helper()
	result, err := c.Call(t.Context(), name, args)
	require.NoError(t, err)
	require.False(t, result.IsError, "%s: %s", name, text(result))
	return text(result)
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		parts = append(parts, mcp.GetTextFromContent(c))
	}
	return strings.Join(parts, "\n")
}

func names(tools []*mcphybrid.BridgeTool) []string {
	list := make([]string, len(tools))
	for i, t := range tools {
		list[i] = t.Name()
	}
	return list
}

// The three messages that ask a server for its tools.
var listMessages = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
}

// listRaw returns the tools that a server lists, byte for byte and without the
// library or mcp-go in between.
func listRaw(t *testing.T, s server) []json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list := listRawStdio
	if s.URL != "" {
		list = listRawHTTP
	}
	message, err := list(ctx, s)
	require.NoError(t, err, s.name)
	var response struct {
		Result struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal(message, &response), s.name)
	require.Empty(t, response.Result.NextCursor, s.name)
	return response.Result.Tools
}

// listRawStdio returns the response to the last of listMessages.
func listRawStdio(ctx context.Context, s server) (response []byte, err error) {
	cmd := exec.CommandContext(ctx, s.Command, s.Args...)
	cmd.Env = os.Environ()
	for key, value := range s.Env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	r := bufio.NewReader(out)
	for _, message := range listMessages {
		if _, err := fmt.Fprintln(in, message); err != nil {
			return nil, err
		}
		if response, err = readResponse(r, message); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// listRawHTTP returns the response to the last of listMessages.
func listRawHTTP(ctx context.Context, s server) (response []byte, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	session := ""
	for _, message := range listMessages {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(message))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		response, err = readResponse(bufio.NewReader(resp.Body), message)
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resp.Status, err)
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	return response, nil
}

// readResponse returns the response to message, or nil if message is a
// notification. Each message in r is one line, after "data: " in a stream of
// events; r has other lines too.
func readResponse(r *bufio.Reader, message string) ([]byte, error) {
	type head struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
	}
	var request head
	if err := json.Unmarshal([]byte(message), &request); err != nil || request.ID == 0 {
		return nil, err
	}
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimPrefix(line, []byte("data: "))
		var got head
		if json.Unmarshal(line, &got) == nil && got.ID == request.ID && got.Method == "" {
			return line, nil
		}
	}
}
