package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A gateway that had its own address among its servers would list itself, again and again. It tells
// its servers an instance of its own, by an extension of MCP that means nothing to others, and
// refuses who tells it that: by whatever address, and through whatever proxy. ancestry.go has the
// same for gateways over standard input and output.

var errItself = errors.New("the address of this server is that of the gateway itself: remove it from the gateway's file")

// itself is what a gateway says of itself.
type itself struct {
	Instance string `json:"instance"`
}

// extensions are those that servers are told of.
func (g *gateway) extensions() map[string]any {
	return map[string]any{upstream.GatewayExtension: itself{g.instance}}
}

// refuseItself makes the front refuse requests of its own gateway.
func (g *gateway) refuseItself(hooks *server.Hooks) {
	hooks.AddOnRequestInitialization(func(_ context.Context, _ any, message any) error {
		raw, _ := message.(json.RawMessage)
		if !bytes.Contains(raw, []byte(g.instance)) {
			return nil
		}
		type capabilities struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
		}
		var r struct {
			Params struct {
				Capabilities capabilities               `json:"capabilities"`
				Meta         map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(raw, &r) != nil {
			return nil // mcp-go says what is wrong
		}
		var since capabilities // 2026-07-28
		_ = json.Unmarshal(r.Params.Meta[mcp.MetaKeyClientCapabilities], &since)
		for _, can := range []capabilities{r.Params.Capabilities, since} {
			var of itself
			if json.Unmarshal(can.Extensions[upstream.GatewayExtension], &of) == nil && of.Instance == g.instance {
				return wire.Refuse(mcp.INVALID_REQUEST, nil, errItself)
			}
		}
		return nil
	})
}
