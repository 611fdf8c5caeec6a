package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
)

// Each limit on what a server sends, and on how long it takes, accepts what is
// just within it. Beyond it, the error names the server and the limit. (A
// result above MaxResult is not an error: it is cut.)
func TestLimits(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, o Options) error {
		m := NewManager(&o)
		defer m.Close()
		return m.Start(t.Context())
	}
	call := func(t *testing.T, o Options, name string) error {
		m, _ := newTestManager(t, &o)
		_, err := m.Call(t.Context(), name, nil)
		return err
	}
	raw := func(t *testing.T, list string) ServerConfig {
		cfg := raw(t, list)
		cfg.Name = "limited"
		return cfg
	}
	paged := func(n int) ServerConfig {
		s := mcpserver.NewMCPServer("limited", "1", mcpserver.WithPaginationLimit(1))
		for i := range n {
			s.AddTools(echoTool(fmt.Sprint("tool", i), ""))
		}
		return ServerConfig{Name: "limited", InProcess: s}
	}
	waiting := func(o *Options) {
		o.Servers = []ServerConfig{serving("limited", mcpserver.ServerTool{
			Tool: mcp.NewTool("wait"),
			Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if o.Limits.CallTimeout > time.Minute {
					return mcp.NewToolResultText(""), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})}
	}
	for _, test := range []struct {
		name, limit string
		run         func(t *testing.T, over int) error // over is 0 or 1
	}{
		{"MaxTools", "limit of 9", func(t *testing.T, over int) error {
			return start(t, Options{Limits: config.Limits{MaxTools: 9}, Servers: []ServerConfig{inProcess("limited", 9+over)}})
		}},
		{"MaxPages", "limit of 9", func(t *testing.T, over int) error {
			return start(t, Options{Limits: config.Limits{MaxPages: 9}, Servers: []ServerConfig{paged(8 + over)}}) // mcp-go adds an empty page
		}},
		{"MaxDefinition", "limit of 50", func(t *testing.T, over int) error {
			tool := `{"name":"` + strings.Repeat("x", 50-len(`{"name":""}`)+over) + `"}`
			m, _ := newTestManager(t, &Options{Limits: config.Limits{MaxDefinition: 50}, Servers: []ServerConfig{raw(t, `{"tools":[`+tool+`]}`)}})
			return errors.Join(m.Problems()...)
		}},
		{"MaxListing", "limit of 50", func(t *testing.T, over int) error {
			tool := `{"name":"` + strings.Repeat("x", 25-len(`{"name":""}`)) + `"}`
			last := strings.Replace(tool, "x", "y"+strings.Repeat("y", over), 1)
			return start(t, Options{Limits: config.Limits{MaxListing: 50}, Servers: []ServerConfig{raw(t, `{"tools":[`+tool+`,`+last+`]}`)}})
		}},
		{"MaxCatalog", "limit of 75", func(t *testing.T, over int) error {
			tool := `{"name":"` + strings.Repeat("x", 25-len(`{"name":""}`)) + `"}`
			first := raw(t, `{"tools":[`+tool+`]}`)
			first.Name = "first"
			m := NewManager(&Options{Limits: config.Limits{MaxCatalog: 75 - over}, Servers: []ServerConfig{first}})
			defer m.Close()
			_ = m.Start(t.Context())
			err := m.AddServer(t.Context(), raw(t, `{"tools":[`+tool+`,`+strings.Replace(tool, "x", "y", 1)+`]}`))
			if err != nil {
				err = errors.New(strings.Replace(err.Error(), "limit of 74", "limit of 75", 1))
			}
			return err
		}},
		{"MaxTimeouts", "the last 2 calls", func(t *testing.T, over int) error {
			o := Options{Limits: config.Limits{MaxTimeouts: 3 - over, CallTimeout: 20 * time.Millisecond}}
			waiting(&o)
			m, _ := newTestManager(t, &o)
			for range 2 {
				_, _ = m.Call(t.Context(), "mcp_limited__wait", nil)
			}
			st := m.Servers()[0]
			if st.State == StateDegraded { // and not whether a third call is refused: the pause may be over
				return fmt.Errorf("server %q: %w", st.Name, st.Err)
			}
			return nil
		}},
		{"MaxMessage", "limit of 1000", func(t *testing.T, over int) error {
			around := len(`{"result":{"tools":[],"x":""},"jsonrpc":"2.0","id":3}` + "\n")
			list := `{"tools":[],"x":"` + strings.Repeat("x", 1000-around+over) + `"}`
			return start(t, Options{Limits: config.Limits{MaxMessage: 1000}, Servers: []ServerConfig{raw(t, list)}})
		}},
		{"MaxValues", "limit of 100", func(t *testing.T, over int) error {
			const around = `{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"limited","version":"1"}},"content":[{"type":"text","text":""}],"resultType":"complete","structuredContent":{"a":[]}}`
			elements := make([]int, 100+over-text.CountValues([]byte(around))+1)
			return call(t, Options{Limits: config.Limits{MaxValues: 100}, Servers: []ServerConfig{serving("limited", mcpserver.ServerTool{
				Tool: mcp.NewTool("numbers"),
				Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultStructured(map[string]any{"a": elements}, ""), nil
				},
			})}}, "mcp_limited__numbers")
		}},
		{"MaxUnasked", "limit of 9", func(t *testing.T, over int) error {
			cfg := raw(t, `{"tools":[]}`)
			cfg.Env["UNASKED"] = fmt.Sprint(9 + over)
			return start(t, Options{Limits: config.Limits{MaxUnasked: 9}, Servers: []ServerConfig{cfg}})
		}},
		{"MaxSubscriptions", "limit of 1, Limits.MaxSubscriptions", func(t *testing.T, over int) error {
			b := newNoticeboard()
			m, _ := newTestManager(t, &Options{Limits: config.Limits{MaxSubscriptions: 1}, Servers: []ServerConfig{b.config("limited")}})
			for _, uri := range []string{"mem://a", "mem://b"}[:1+over] {
				if _, err := m.Default().SubscribeResource(t.Context(), "", uri, func(string) {}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"StartTimeout", "no answer within 200ms", func(t *testing.T, over int) error {
			o := Options{Servers: []ServerConfig{child(t, "limited", []string{"plain", "silent"}[over])}}
			if over == 1 {
				o.Limits.StartTimeout = 200 * time.Millisecond
			}
			return start(t, o)
		}},
		{"CallTimeout", "no answer within 20ms", func(t *testing.T, over int) error {
			o := Options{Limits: config.Limits{CallTimeout: []time.Duration{time.Hour, 20 * time.Millisecond}[over]}}
			waiting(&o)
			return call(t, o, "mcp_limited__wait")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.NoError(t, test.run(t, 0))
			err := test.run(t, 1)
			assert.ErrorContains(t, err, `server "limited"`)
			assert.ErrorContains(t, err, test.limit)
		})
	}
}
