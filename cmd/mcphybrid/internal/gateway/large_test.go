package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// largeAnswer is a result that is as large as a server's may be: 15 MB and 496,000 values, as
// structured content and as a text.
var largeAnswer = sync.OnceValue(func() string {
	var list strings.Builder
	list.WriteString(`{"list":[`)
	for i := range 165_000 {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"name":"dish number %06d of them all"}`, i)
	}
	list.WriteString("]}")
	said, _ := json.Marshal(list.String())
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, said, list.String())
})

// answerLarge returns the answer to a message of a client, if it wants one, as a server with a
// tool whose results are large.
func answerLarge(message []byte) (answer string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil {
		return ""
	}
	result := `{}`
	switch m.Method {
	case string(mcp.MethodInitialize):
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}`
	case string(mcp.MethodToolsList):
		result = `{"tools":[{"name":"list","description":"Lists all dishes","inputSchema":{"type":"object"}}]}`
	case string(mcp.MethodToolsCall):
		result = largeAnswer()
	}
	return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + "}\n"
}

// serveLarge is such a server over standard input and output.
func serveLarge() {
	largeAnswer()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		_, _ = io.WriteString(os.Stdout, answerLarge(lines.Bytes()))
	}
}

// A gateway with the default limits stays below the memory that it promises while servers send it
// six of the largest answers at once.
func TestLargeAnswers(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory can't be read here: ", err)
	}
	if mcptest.Race() {
		t.Skip("the race detector takes several times the memory")
	}
	over := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message, _ := io.ReadAll(r.Body)
		if answer := answerLarge(message); r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		} else if answer == "" {
			w.WriteHeader(http.StatusAccepted)
		} else if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+answer+"\n")
		} else {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(over.Close)
	child := map[string]any{"command": self(t), "env": map[string]string{"TEST_SERVER": "large", "TEST_RUN": fmt.Sprint(os.Getpid())}}
	for _, test := range []struct {
		name    string
		servers int
		server  map[string]any
	}{
		{"a child", 1, child},
		{"six children", 6, child},
		{"over HTTP", 1, map[string]any{"url": over.URL}},
		{"as events", 1, map[string]any{"url": over.URL + "/events"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.server["callTimeout"] = "10m" // as long as a slow machine takes
			config := make(map[string]any)
			for i := range test.servers {
				config[fmt.Sprint("large", i)] = test.server
			}
			data, err := json.Marshal(map[string]any{"mcpServers": config})
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "mcp.json")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			cmd, url := startProcess(t, "-config", path)
			c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
			for range mcptest.Long(5, 1) {
				var calls sync.WaitGroup
				for i := range 6 {
					calls.Go(func() {
						result, err := call(t.Context(), c, fmt.Sprintf("mcp_large%d__list", i%test.servers), nil)
						if assert.NoError(t, err) {
							assert.False(t, result.IsError)
							assert.Contains(t, textOf(result), "dish number 164999 of them all")
						}
					})
				}
				calls.Wait()
				t.Logf("the gateway had %d MB at most", memory(t, cmd.Process.Pid)>>20)
			}
			assert.Less(t, memory(t, cmd.Process.Pid), maxMemory)
		})
	}
}
