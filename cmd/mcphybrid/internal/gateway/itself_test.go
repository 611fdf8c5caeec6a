package gateway

import (
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A gateway over HTTP that has its own address among its servers, also that of one server, does not
// list itself, in whatever protocol. Other gateways are servers like any other.
func TestGatewayRefusesItself(t *testing.T) {
	t.Parallel()
	only := mcphybrid.ServerConfig{Name: "x", InProcess: mcptest.Server("x", mcptest.Echo("echo", "Echoes"))}
	other, _, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	g, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{only}}, web.Options{})
	<-g.all.Done()
	for _, protocol := range []string{"", "2025-11-25"} {
		for _, at := range []string{url, url + "/x"} {
			own := mcphybrid.ServerConfig{Name: "own", URL: at, Protocol: protocol}
			require.Error(t, g.mgr.AddServer(t.Context(), g.heard(own)), at)
			require.NoError(t, other.mgr.AddServer(t.Context(), other.heard(own)), at)
			assert.Positive(t, states(other)["own"].Tools)
			other.mgr.RemoveServer("own")
		}
	}
	own := mcphybrid.ServerConfig{Name: "own", URL: url, KeepFailed: true}
	_ = g.mgr.AddServer(t.Context(), g.heard(own))
	st := states(g)["own"]
	require.Error(t, st.Err)
	assert.Contains(t, st.Err.Error(), errItself.Error())
	assert.Zero(t, st.Tools)
	assert.Len(t, g.mgr.Default().InlineTools(), 1)
}
