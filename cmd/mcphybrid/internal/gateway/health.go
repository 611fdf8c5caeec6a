package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/version"
)

// serversByState counts the servers in each state that one is in.
func (g *gateway) serversByState() map[mcphybrid.State]int {
	states := make(map[mcphybrid.State]int)
	for _, s := range g.mgr.Servers() {
		states[s.State]++
	}
	return states
}

func (g *gateway) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// health tells anybody whether the gateway serves. It names nothing, and does not depend on
// the servers: without one of them the others work, and a restart would not bring it back.
func (g *gateway) health(out http.ResponseWriter, _ *http.Request) {
	status, word := http.StatusOK, "ok"
	if g.isDraining() {
		status, word = http.StatusServiceUnavailable, "closing"
	}
	body, err := json.Marshal(map[string]any{"status": word, "servers": g.serversByState()})
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Connection", "close") // a stranger needs it no more
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("Cache-Control", "no-store")
	out.WriteHeader(status)
	_, _ = out.Write(body)
}

// metrics returns the page of metrics, which names servers.
func (g *gateway) metrics(w *web.Site) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", figures.ContentType)
		e := figures.NewExposition(out)
		g.figures.Expose(e)
		g.mu.Lock()
		running := g.running
		g.mu.Unlock()
		e.Gauge("calls_running", "Requests of clients that are being answered.", running)
		e.Gauge("sessions", "Sessions of clients over HTTP.", w.Sessions.Count())
		e.Gauge("connections", "Connections that are open.", w.Door.Count())
		e.Gauge("held_back", "Tools, resources and prompts that are held back until somebody approves them.", len(trust.Quarantined(g.mgr)))
		servers := g.mgr.Servers()
		e.Family("server_state", "gauge", "1 for the state that a server is in.")
		for _, s := range servers {
			e.Sample("server_state", 1, "server", s.Name, "state", string(s.State))
		}
		e.Family("server_tools", "gauge", "Tools that a server has.")
		for _, s := range servers {
			e.Sample("server_tools", float64(s.Tools), "server", s.Name)
		}
		e.Family("info", "gauge", "The version of the gateway.")
		e.Sample("info", 1, "version", version.Of())
	})
}
