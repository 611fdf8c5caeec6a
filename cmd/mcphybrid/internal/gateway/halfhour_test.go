package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Thirty minutes beside four dead servers take 20 lines of the log at most. The page says to the
// second since when they are dead, and the alarm of docs/operating.md on the metrics fires: for
// each, once, after five minutes, and not for a server that serves.
func TestHalfAnHourBesideFourDeadServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := new(mcptest.Log)
		dead := []mcphybrid.ServerConfig{
			{Name: "missing", Command: filepath.Join(t.TempDir(), "no-such-program")},
			{Name: "nobody", URL: "http://127.0.0.1:1/mcp"},
			{Name: "moved", URL: "http://moved.example/mcp", HTTPClient: &http.Client{Transport: answering(http.StatusNotFound)}},
			{Name: "refuses", URL: "http://refuses.example/mcp", Headers: map[string]string{"Authorization": "Bearer stale-token"}, HTTPClient: &http.Client{Transport: answering(http.StatusUnauthorized)}},
		}
		g := newGateway(gatewayOptions{
			servers: append(dead, mcphybrid.ServerConfig{Name: "well", InProcess: mcptest.Server("well", mcptest.Echo("a", "A"))}),
			log:     slog.New(slog.NewTextHandler(book, nil)), guide: debug.Guide{File: "mcp.json", Watched: true},
		})
		defer g.close()
		site, err := web.Listen("127.0.0.1:0", web.Options{Metrics: true, Debug: true})
		require.NoError(t, err)
		site.Within(g.opts.limits, g.figures)
		defer site.Door.Close()
		read := func(h http.Handler) string {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
			return w.Body.String()
		}
		metrics, page := g.metrics(site), g.page()

		begun := time.Now()
		pending := make(map[string]time.Time) // since when the expression holds
		fired := make(map[string]time.Duration)
		for time.Since(begun) < 30*time.Minute {
			time.Sleep(15 * time.Second)
			synctest.Wait()
			now := alarming(read(metrics))
			for server := range pending {
				if !now[server] {
					delete(pending, server)
					delete(fired, server)
				}
			}
			for server := range now {
				if pending[server].IsZero() {
					pending[server] = time.Now()
				}
				if _, rings := fired[server]; !rings && time.Since(pending[server]) >= 5*time.Minute {
					fired[server] = time.Since(begun)
				}
			}
		}
		first := 5*time.Minute + 15*time.Second
		assert.Equal(t, map[string]time.Duration{"missing": first, "nobody": first, "moved": first, "refuses": first}, fired)

		body := read(page)
		for _, s := range dead {
			assert.Regexp(t, fmt.Sprintf(`Server %s (?:is down|wants a valid token)[^/]*</b> since <time datetime="%s" data-as="date">[^<]*</time>, <time datetime="[^"]*">30\S*min ago</time>; tried \d\d times`, s.Name, begun.UTC().Format(time.RFC3339)), body)
			assert.Greater(t, states(g)[s.Name].Failures, 25, s.Name)
		}
		lines := book.String()
		assert.LessOrEqual(t, strings.Count(lines, "\n"), 20, lines)
	})
}

// answering is a server that answers every request with a status alone.
type answering int

func (status answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(status), Body: http.NoBody, Request: r, Header: http.Header{}}, nil
}

var stateSample = regexp.MustCompile(`(?m)^mcphybrid_gateway_server_state\{server="([^"]*)",state="(?:down|unauthorized|connecting)"\} 1$`)

// alarming returns the servers for which the expression of docs/operating.md is above 0 in a page
// of metrics.
func alarming(metrics string) map[string]bool {
	servers := make(map[string]bool)
	for _, m := range stateSample.FindAllStringSubmatch(metrics, -1) {
		servers[m[1]] = true
	}
	return servers
}
