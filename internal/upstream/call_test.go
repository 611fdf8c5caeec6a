package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call over HTTP whose stream announces other tools before the result returns when they
// are listed.
func TestCallWaitsForWhatItEnables(t *testing.T) {
	t.Parallel()
	s := goSDK(refusesAsJSON)
	var called atomic.Int32
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var in struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &in)
		w.Header().Set("Content-Type", "text/event-stream")
		switch in.Method {
		case "tools/call":
			called.Add(1)
			fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", in.ID, greeting)
		case "tools/list":
			tools := `{"name":"greet","inputSchema":{"type":"object"}}`
			for i := range called.Load() {
				tools += fmt.Sprintf(`,{"name":"enabled_%d","inputSchema":{"type":"object"}}`, i)
			}
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[%s]}}\n\n", in.ID, tools)
		default:
			s.ServeHTTP(w, r)
		}
	}), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, Limits{})
	for i := range 5 {
		_, err := srv.call(t.Context(), "greet")
		require.NoError(t, err)
		tools, _ := srv.listed()
		assert.Len(t, tools, 2+i)
	}
}
