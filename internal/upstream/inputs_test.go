package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A result asks for a hundred inputs at most.
func TestInputsAtTheirLimit(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{0: true, 1: true, 100: true, 101: false} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
		}
		err := takeInputs(t.Context(), json.RawMessage(`{"resultType":"input_required","inputRequests":{`+strings.Join(list, ",")+`}}`))
		if ok {
			assert.NoError(t, err, n)
		} else {
			assert.EqualError(t, err, "it asks for more inputs at once than the limit of 100")
		}
	}
	assert.NoError(t, takeInputs(t.Context(), json.RawMessage(`{"content":[{"text":"inputRequests"}]}`)))
	assert.NoError(t, takeInputs(t.Context(), json.RawMessage(`{`)))
}

// A request declares what its caller can answer, of what the client can do; one that declares
// nothing stays.
func TestRequestsDeclareWhatTheirCallersCan(t *testing.T) {
	t.Parallel()
	request := func(params any) transport.JSONRPCRequest {
		return transport.JSONRPCRequest{Method: "tools/call", Params: params}
	}
	meta := func(can string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"name": json.RawMessage(`"a"`), "_meta": json.RawMessage(fmt.Sprintf(`{"x":1,%q:%s}`, mcp.MetaKeyClientCapabilities, can))}
	}
	ctx := broker.Declare(t.Context(), mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}})
	params := meta(`{"sampling":{},"roots":{}}`)
	was := string(params["_meta"])
	got := declare(ctx, request(params))
	said, ok := got.Params.(map[string]json.RawMessage)
	require.True(t, ok)
	assert.JSONEq(t, fmt.Sprintf(`{"x":1,%q:{"sampling":{}}}`, mcp.MetaKeyClientCapabilities), string(said["_meta"]))
	assert.JSONEq(t, `"a"`, string(said["name"]))
	assert.Equal(t, was, string(params["_meta"]), "mcp-go's stay")
	assert.Equal(t, request(params), declare(t.Context(), request(params)), "nobody declared anything")
	for _, other := range []any{nil, "x", map[string]json.RawMessage{}, map[string]json.RawMessage{"_meta": json.RawMessage(`{}`)}, meta("5")} {
		assert.Equal(t, request(other), declare(ctx, request(other)))
	}
}

// A refusal for want of a capability keeps what the server says of it.
func TestMissingCapabilities(t *testing.T) {
	t.Parallel()
	assert.NoError(t, missingCapability(&mcp.JSONRPCErrorDetails{Code: mcp.INTERNAL_ERROR}))
	for data, want := range map[string]string{`{"requiredCapabilities":{"sampling":{}}}`: `{"sampling":{}}`, `{}`: "", `5`: ""} {
		err := missingCapability(&mcp.JSONRPCErrorDetails{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "no", Data: json.RawMessage(data)})
		missing := new(CapabilityError)
		require.ErrorAs(t, err, &missing)
		assert.Equal(t, want, string(missing.Required))
		assert.ErrorContains(t, err, "missing required client capability")
		assert.NotNil(t, errors.Unwrap(err))
	}
}

// A question of a result is known by its name when it is answered. One that can't be read is none.
func TestInputsAreTold(t *testing.T) {
	t.Parallel()
	var got []broker.Input
	b := broker.New(broker.Config{Options: ask.Options{MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 1000, Timeout: time.Hour, Hooks: ask.Hooks{
		Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			in, _ := broker.InputOf(ctx)
			got = append(got, in)
			return nil, nil
		},
	}}})
	t.Cleanup(b.Close)
	ctx, end := b.Begin(t.Context(), "tool")
	defer end(true)
	require.NoError(t, takeInputs(ctx, json.RawMessage(`{"resultType":"complete","inputRequests":{"early":{"method":"roots/list"}}}`)))
	require.NoError(t, takeInputs(ctx, json.RawMessage(`{"resultType":"input_required","inputRequests":{"broken":5,"one":{"method":"roots/list"}}}`)))
	for range 2 {
		_, err := b.ListRoots(ctx, mcp.ListRootsRequest{})
		require.NoError(t, err)
	}
	require.Len(t, got, 2)
	assert.Equal(t, "one", got[0].Name)
	require.NotNil(t, got[0].Round)
	assert.Equal(t, 1, got[0].Round.Questions)
	assert.Empty(t, got[1].Name, "it was asked once")
}
