package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type answerer struct{ color string }

func (a answerer) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	answer := new(mcp.ElicitationResult)
	if r.Params.Message != "curious asks: "+a.color {
		answer.Action = mcp.ElicitationResponseActionCancel
		return answer, nil
	}
	answer.Action, answer.Content = mcp.ElicitationResponseActionAccept, map[string]any{"color": a.color}
	return answer, nil
}

type rooted struct{}

func (rooted) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///red"}}}, nil
}

// What a server asks reaches the client whose call caused it. Who can't answer has
// declined, or has no roots.
func TestQuestionsPassThrough(t *testing.T) {
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "curious"))
	require.NoError(t, err)
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: cfg.Servers}, web.Options{})
	legacy := client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION)
	for want, opts := range map[string][]client.ClientOption{
		`{"action":"accept","content":{"color":"red"}}`:  {legacy, client.WithElicitationHandler(answerer{"red"})},
		`{"action":"accept","content":{"color":"blue"}}`: {legacy, client.WithElicitationHandler(answerer{"blue"})},
		`{"action":"decline"}`:                           {legacy},
	} {
		color := "red"
		if want == `{"action":"accept","content":{"color":"blue"}}` {
			color = "blue"
		}
		c, _ := connect(t, overHTTP(url), "test", opts...)
		assert.JSONEq(t, want, say(t, c, "mcp_curious__ask", map[string]any{"kind": "elicit", "text": color}))
	}
	for want, opts := range map[string][]client.ClientOption{
		`{"roots":[{"uri":"file:///red"}]}`: {legacy, client.WithRootsHandler(rooted{})},
		`{"roots":[]}`:                      {legacy},
	} {
		// Over HTTP, mcp-go asks for roots on the client's stream of notifications, if it has one.
		c, _ := connect(t, overStdio("-ask", "-config", writeConfig(t, "curious")), "test", opts...)
		assert.JSONEq(t, want, say(t, c, "mcp_curious__ask", map[string]any{"kind": "roots"}))
	}
}

// A client over HTTP with an older protocol is asked for roots, and for a model's answer, on the
// stream that it keeps open. A question waits for that, and if none is opened, it is declined soon.
func TestQuestionsWaitForAStream(t *testing.T) {
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "curious"))
	require.NoError(t, err)
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: cfg.Servers}, web.Options{})
	c, _ := connect(t, overHTTP(url, transport.WithContinuousListening()), "test", client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION), client.WithRootsHandler(rooted{}))
	assert.JSONEq(t, `{"roots":[{"uri":"file:///red"}]}`, say(t, c, "mcp_curious__ask", map[string]any{"kind": "roots"}))

	for _, opens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			book := new(logBook)
			g := newGateway(gatewayOptions{ask: true, log: book.logger()})
			defer g.close()
			<-g.all.Done()
			s := server.NewInProcessSessionWithHandlers("one", nil, nil, rooted{})
			require.NoError(t, g.front.RegisterSession(t.Context(), s))
			ctx := g.front.WithContext(t.Context(), s)
			begins := strings.Replace(ping, `"capabilities":{}`, `"capabilities":{"roots":{},"sampling":{}}`, 1)
			for _, message := range []string{begins, initialized} {
				g.front.HandleMessage(ctx, json.RawMessage(message))
			}
			begun, takes := time.Now(), streamWait
			if opens {
				takes = time.Second
				time.AfterFunc(takes, func() { g.open("one").Attach(make(toldSink, 1), true) })
			}
			from := ask.Asker{Server: "curious", Tool: "ask"}
			roots, err := g.questions().Roots(ctx, from)
			assert.Equal(t, takes, time.Since(begun))
			if opens {
				require.NoError(t, err)
				assert.Len(t, roots, 1)
				return
			}
			assert.ErrorIs(t, err, ask.ErrDeclined)
			assert.ErrorContains(t, err, "keeps no stream open")
			_, err = g.questions().Sample(ctx, from, mcp.CreateMessageParams{})
			assert.ErrorContains(t, err, "keeps no stream open")
			assert.Equal(t, 2*takes, time.Since(begun))
			assert.Contains(t, book.String(), "a question of a server is declined")
		})
	}
}

type refuser struct{}

func (refuser) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return nil, errors.New("the password hunter2 is wrong")
}

// Why a client does not answer a question is its own: the log says only that it did not.
func TestErrorsOfAnswersAreNotLogged(t *testing.T) {
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "curious"))
	require.NoError(t, err)
	book := new(logBook)
	_, url, end := startHTTP(t, gatewayOptions{ask: true, servers: cfg.Servers, log: book.logger(), logCalls: true}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION), client.WithElicitationHandler(refuser{}))
	result, err := call(t.Context(), c, "mcp_curious__ask", map[string]any{"kind": "elicit", "text": "red"})
	require.NoError(t, err)
	assert.NotContains(t, textOf(result), "hunter2")
	book.calls(t, 1)
	require.NoError(t, c.Close())
	end()
	assert.NotContains(t, book.String(), "hunter2")
	assert.Contains(t, book.String(), errNoAnswer.Error())
}
