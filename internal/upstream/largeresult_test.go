package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listOf returns JSON of so many values, which is large if they are.
func listOf(values int) string { return `{"a":[` + strings.Repeat("10, ", values-3) + `0]}` }

// What is not large, or has few values, is parsed as mcp-go does.
func TestParseResultAsMCPGo(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"an ordinary one":   `{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":[1,null]},"isError":true,"_meta":{"b":1}}`,
		"a long text":       `{"content":[{"type":"text","text":"` + strings.Repeat("x", largeResult) + `"}],"structuredContent":{"a":1}}`,
		"few long values":   `{"content":[],"structuredContent":["` + strings.Repeat("x", largeResult) + `"]}`,
		"as many as may be": `{"content":[{"type":"text","text":"` + strings.Repeat("x", largeResult) + `"}],"structuredContent":` + listOf(maxDecoded) + `}`,
		"without content":   `{"structuredContent":{}}`,
		"a bad content":     `{"content":[{"type":"none","text":"` + strings.Repeat("x", largeResult) + `"}]}`,
		"nothing":           ``,
	} {
		copied := json.RawMessage(raw)
		want, failed := mcp.ParseCallToolResult(&copied)
		got, err := parseResult(json.RawMessage(raw))
		assert.Equal(t, failed, err, name)
		assert.Equal(t, want, got, name)
	}
}

// Structured content of many values stays as it was sent, whatever the spelling of its name.
func TestParseResultOfManyValues(t *testing.T) {
	content := listOf(maxDecoded + 1)
	require.Equal(t, maxDecoded+1, text.CountValues([]byte(content)))
	for _, raw := range []string{
		`{"content":[{"type":"text","text":"a"}],"structuredContent": ` + content + ` ,"isError":true}`,
		`{"StructuredContent":` + content + `,"content":[{"type":"text","text":"a"}],"isError":true}`,
		`{"structuredContent":{"a":1},"content":[{"type":"text","text":"a"}],"isError":true,"structuredContent":` + content + `}`,
	} {
		got, err := parseResult(json.RawMessage(raw))
		require.NoError(t, err)
		assert.Equal(t, &mcp.CallToolResult{
			Content: []mcp.Content{mcp.NewTextContent("a")}, IsError: true,
			StructuredContent: json.RawMessage(content), RawStructuredContent: json.RawMessage(content),
		}, got)
	}
	_, err := parseResult(json.RawMessage(`{"structuredContent":` + content + `}`))
	assert.ErrorContains(t, err, "content is missing")

	raw := []byte(`{"content":[],"structuredContent":` + listOf(500_000) + `}`)
	assert.Less(t, testing.AllocsPerRun(1, func() { _, _ = parseResult(bytes.Clone(raw)) }), 100.0)
}

// The large result of a request under way goes by mcp-go. Everything else does not.
func TestBypass(t *testing.T) {
	t.Parallel()
	long := `["` + strings.Repeat("x", largeResult) + `"]`
	var request transport.JSONRPCRequest
	request.ID = mcp.NewRequestId(int64(7))
	for name, test := range map[string]struct {
		message string
		taken   bool
	}{
		"a large result":     {`{"jsonrpc":"2.0","id":7,"result":` + long + `}`, true},
		"in another order":   {`{"result":` + long + `, "id": 7 }`, true},
		"a small result":     {`{"jsonrpc":"2.0","id":7,"result":{}}`, false},
		"nobody waits":       {`{"jsonrpc":"2.0","id":8,"result":` + long + `}`, false},
		"another kind of id": {`{"jsonrpc":"2.0","id":"7","result":` + long + `}`, false},
		"an error":           {`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m","data":` + long + `}}`, false},
		"a request":          {`{"jsonrpc":"2.0","id":7,"method":"m","params":` + long + `,"result":` + long + `}`, false},
		"two results":        {`{"jsonrpc":"2.0","id":7,"result":` + long + `,"result":1}`, false},
		"no JSON":            {`{"jsonrpc":"2.0","id":7,"result":` + long + `]`, false},
		"no object":          {long, false},
	} {
		b := newBypass()
		passed := ""
		response, err := b.send(t.Context(), request, func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
			passed = string(b.take([]byte(test.message)))
			return &transport.JSONRPCResponse{Result: json.RawMessage("null")}, nil
		})
		require.NoError(t, err)
		want := "null"
		if test.taken {
			want = long
			assert.Equal(t, `{"jsonrpc":"2.0","id":7,"result":null}`+"\n", passed, name)
		} else {
			assert.Equal(t, test.message, passed, name)
		}
		assert.Equal(t, want, string(response.Result), name)
		assert.Empty(t, b.waiting, name)
	}
	b := newBypass()
	_, err := b.send(t.Context(), request, func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		b.take(fmt.Appendf(nil, `{"id":7,"result":%s}`, long))
		return nil, errors.New("the end")
	})
	assert.EqualError(t, err, "the end")
	assert.Empty(t, b.waiting)
}

// A message gets room by doubling, up to what it may have.
func TestAppendTo(t *testing.T) {
	t.Parallel()
	message := make([]byte, 0, 8)
	for range 100 {
		message = appendTo(message, []byte("12345678"), 800)
	}
	assert.Equal(t, strings.Repeat("12345678", 100), string(message))
	assert.Equal(t, 800, cap(message))
}

// A reader keeps no message that was read: the next may never come.
func TestReaderKeepsNothing(t *testing.T) {
	t.Parallel()
	rest := []byte("message")
	p := make([]byte, 4)
	for range 2 {
		_, err := readFrom(&rest, p, nil)
		require.NoError(t, err)
	}
	assert.Nil(t, rest)
}

// Of a stream of events, all lines are passed on but those with large results, and an error that
// ends it comes last.
func TestEventLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", largeResult)
	b := newBypass()
	b.waiting["7"] = nil
	stream := "event: message\r\ndata: 1\n\n: " + long + "\n" + `data: {"id":7,"result":["` + long + `"]}` + "\r\n\ndata: {\"id\":8,\"result\":[\"" + long + "\"]}\n\nthe rest"
	failed := errors.New("the end")
	lines := &eventLines{large: b, r: bufio.NewReaderSize(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(failed)), 64)}
	passed, err := io.ReadAll(lines)
	assert.Equal(t, failed, err)
	want := strings.Replace(stream, ` {"id":7,"result":["`+long+`"]}`+"\r\n", `{"jsonrpc":"2.0","id":7,"result":null}`+"\n", 1)
	assert.Equal(t, want, string(passed))
	assert.Equal(t, `["`+long+`"]`, string(b.waiting["7"]))
}

// Whatever its size, a caller gets the result that the server sent, with structured content of many values as it
// is: over a stream, where it goes by mcp-go, and in an answer of its own.
func TestCallsWithLargeResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "")
		limits := storyLimits()
		limits.MaxMessage, limits.MaxValues = 4<<20, 1<<20
		srv := s.open(Config{}, limits)
		require.NoError(t, srv.Start(t.Context()))
		sized := func(n int) string {
			head, end := `{"content":[{"type":"text","text":"`, `"}]}`
			return head + strings.Repeat("x", n-len(head)-len(end)) + end
		}
		for name, result := range map[string]string{
			"small": sized(100), "below": sized(largeResult - 1), "just so": sized(largeResult), "above": sized(largeResult + 1), "huge": sized(hugeResult + 1),
			"many values": `{"content":[],"structuredContent":` + listOf(maxDecoded+1) + `}`, "in a large one": strings.TrimSuffix(sized(largeResult), "}") + `,"structuredContent":` + listOf(maxDecoded+1) + `}`, "few in a large one": strings.TrimSuffix(sized(largeResult), "}") + `,"structuredContent":` + listOf(9) + `}`,
			"an error": strings.TrimSuffix(sized(largeResult), "}") + `,"isError":true,"_meta":{"k":"v"}}`,
		} {
			raw := json.RawMessage(result)
			want, err := parseResult(bytes.Clone(raw))
			require.NoError(t, err)
			for _, way := range []string{"result ", `events {"jsonrpc":"2.0","id":$ID,"result":`} {
				said := way + result
				if way != "result " {
					said += "}"
				}
				s.says("tools/call", said)
				got, err := srv.Call(t.Context(), Tool{Name: "a"}, json.RawMessage("{}"))
				require.NoError(t, err, name)
				assert.Equal(t, want.Content, got.Content, name)
				assert.Equal(t, want.IsError, got.IsError, name)
				assert.Equal(t, want.Meta, got.Meta, name)
				a, err := json.Marshal(want.StructuredContent)
				require.NoError(t, err)
				b, err := json.Marshal(got.StructuredContent)
				require.NoError(t, err)
				assert.Equal(t, string(a), string(b), name)
				_, isRaw := got.StructuredContent.(json.RawMessage)
				assert.Equal(t, strings.Contains(result, listOf(maxDecoded+1)) && len(result) > largeResult, isRaw, name)
			}
		}
	})
}
