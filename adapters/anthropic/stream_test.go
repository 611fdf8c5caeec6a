package mcpanthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// A link passes a model's events on, until one has a text. It counts the requests.
type link struct {
	model    modeltest.Model
	cut      string // or "" for none
	requests int
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.requests++
	l.model.ServeHTTP(&cutter{w, l.cut, false}, r)
}

type cutter struct {
	http.ResponseWriter
	cut   string
	ended bool
}

func (c *cutter) WriteString(event string) (int, error) {
	c.ended = c.ended || c.cut != "" && strings.Contains(event, c.cut)
	if c.ended {
		return 0, io.ErrClosedPipe
	}
	return c.ResponseWriter.Write([]byte(event))
}

func ask(t *testing.T, model http.Handler, message string) (anthropic.Client, *mcphybrid.Session, anthropic.BetaToolRunnerParams) {
	srv := httptest.NewServer(model)
	t.Cleanup(srv.Close)
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: "scripted", MaxTokens: 1000, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(message))},
	}}
	return anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none")), mgr.NewSession(nil), params
}

// An answer that breaks off is an error wherever it does, and none of its calls is made. The
// same run, or another one, sends the request again.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"content_block_start", "text_delta", "tool_use", "message_delta", "message_stop"} {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			calls, answers := 0, 0
			l := &link{model: func(got modeltest.Request, err error) (modeltest.Step, error) {
				answers++
				if answers == 2 { // behind the results of a call
					return modeltest.Step{Say: "I see.", Calls: []modeltest.Call{{ID: "y", Name: "none", Arguments: "{}"}}}, err
				}
				if len(got.Turns) > 3 || answers > 4 {
					err = fmt.Errorf("%d turns", len(got.Turns))
				}
				if answers > 2 {
					return modeltest.Step{Say: "Hi."}, err
				}
				return modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "none", Arguments: "{}"}}}, err
			}}
			client, sess, params := ask(t, l, "Hello.")
			r := mcpanthropic.NewToolRunnerStreaming(&client, sess, params)
			r.Call = func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
				calls++
				l.cut = cut
				return sess.Call(ctx, name, args)
			}
			all := func() (err error) {
				for _, err = range r.All(t.Context()) {
				}
				return err
			}
			require.ErrorContains(t, all(), "broke off")
			require.Len(t, r.Messages(), 3)
			l.cut = ""
			require.NoError(t, all())
			require.Equal(t, "Hi.", r.LastMessage().Content[0].Text)
			require.Len(t, r.Messages(), 4)
			require.Equal(t, 1, calls)
			require.Equal(t, 3, l.requests)
		})
	}
}

// A call gets the arguments as the model wrote them, with all digits and in their order,
// even if they are not JSON. What is sent back is JSON.
func TestArgumentsAsWritten(t *testing.T) {
	t.Parallel()
	for written, streams := range map[string][]bool{`{"z":12345678901234567890,"a":1.50}`: {false, true}, `{"text": `: {true}} {
		for _, stream := range streams {
			t.Run(fmt.Sprintf("%s, stream %t", written, stream), func(t *testing.T) {
				t.Parallel()
				requests := 0
				client, sess, params := ask(t, modeltest.Model(func(_ modeltest.Request, err error) (modeltest.Step, error) {
					if requests++; requests > 1 {
						return modeltest.Step{Say: "Well."}, err
					}
					return modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "none", Arguments: written}}}, err
				}), "Hello.")
				var got []string
				call := func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
					got = append(got, fmt.Sprintf("%s %s", name, args))
					return sess.Call(ctx, name, args)
				}
				if stream {
					r := mcpanthropic.NewToolRunnerStreaming(&client, sess, params)
					r.Call = call
					for _, err := range r.All(t.Context()) {
						require.NoError(t, err)
					}
				} else {
					r := mcpanthropic.NewToolRunner(&client, sess, params)
					r.Call = call
					_, err := r.RunToCompletion(t.Context())
					require.NoError(t, err)
				}
				require.Equal(t, []string{"none " + written}, got)
			})
		}
	}
}
