package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answered is what mcp-go answers if a handler returns that error.
func answered(err error) []byte {
	raw, _ := json.Marshal(mcp.NewJSONRPCError(mcp.NewRequestId(7), mcp.INTERNAL_ERROR, err.Error(), nil))
	return append(raw, '\n')
}

// A Refusal goes out with its code, data and status; the errors of others, and results that
// look like one, as they are.
func TestRefusals(t *testing.T) {
	why := errors.New(`there is no "1"`)
	refusal := Refuse(mcp.INVALID_PARAMS, map[string]any{"uri": `mem://"1"`}, why)
	assert.ErrorIs(t, refusal, why)
	want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"there is no \"1\"","data":{"uri":"mem://\"1\""}}}`
	for name, frame := range map[string]string{"answer": "%s", "event": "event: message\ndata: %s\n\n"} {
		got, found := unmarked(fmt.Appendf(nil, frame, bytes.TrimSpace(answered(refusal))))
		require.NotNil(t, found, name)
		assert.Equal(t, fmt.Sprintf(frame, want), string(got), name)
	}
	answer, found := unmarked(answered(Answer(json.RawMessage(`{"skills":[{"name":"\"<a>\\n\""}]}`))))
	require.NotNil(t, found)
	assert.Equal(t, http.StatusOK, found.status(http.StatusBadRequest))
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":7,"result":{"skills":[{"name":"\"<a>\\n\""}]}}`, string(answer))
	for _, other := range [][]byte{
		answered(errors.New("ABCDEFGHIJKLMNOPQRSTUVWXYZ:{}")), answered(errors.New("x" + refusal.Error())), answered(errors.New(string(mark) + "{")),
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"result":{"message":%q}}`, mark), mark, {},
	} {
		got, found := unmarked(other)
		assert.Nil(t, found)
		assert.Equal(t, other, got)
	}
	for _, err := range []error{refusal, errors.New("broken")} {
		w := httptest.NewRecorder()
		WithEvents(1e9, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			assert.Same(t, out, EventsOf(r.Context()))
			out.Header().Set("Content-Type", "application/json")
			out.WriteHeader(http.StatusOK)
			n, failed := out.Write(answered(err))
			assert.NoError(t, failed)
			assert.Len(t, answered(err), n)
		})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		if err == refusal {
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.JSONEq(t, want, w.Body.String())
		} else {
			assert.Equal(t, http.StatusOK, w.Code)
			assert.Contains(t, w.Body.String(), "broken")
		}
	}
	w := httptest.NewRecorder()
	WithEvents(1e9, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusTeapot) // and nothing more
	})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	assert.Equal(t, http.StatusTeapot, w.Code)
}
