package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Refusal is an error with a code and data, or the result of a request that mcp-go does not
// know. mcp-go has no way for a handler to return them, so they go through it in the message,
// behind a mark that no one else knows, and are put in their places on the way out.
type Refusal struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    any             `json:"data,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"` // in place of an error

	why error
}

// Refuse returns a Refusal with the message of an error. The data may be nil.
func Refuse(code int, data any, why error) error {
	return &Refusal{Code: code, Data: data, Message: why.Error(), why: why}
}

// Answer returns the error by which mcp-go answers with a result, which is JSON.
func Answer(result json.RawMessage) error { return &Refusal{Result: result} }

// Unwrap returns what Refuse was given.
func (r *Refusal) Unwrap() error { return r.why }

var mark = []byte(rand.Text() + ":")

// Error returns what mcp-go is to say.
func (r *Refusal) Error() string {
	raw, err := json.Marshal(r)
	if err != nil {
		return r.Message
	}
	return string(mark) + string(raw)
}

// unmarked returns an answer of mcp-go with the code and the data of its Refusal, and that.
// Other answers have none and stay.
func unmarked(answer []byte) ([]byte, *Refusal) {
	if !bytes.Contains(answer, mark) {
		return answer, nil
	}
	from, to := bytes.IndexByte(answer, '{'), bytes.LastIndexByte(answer, '}')
	if from < 0 || to < from { // without one
		return answer, nil
	}
	var message struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	refusal := new(Refusal)
	if json.Unmarshal(answer[from:to+1], &message) != nil || !bytes.HasPrefix([]byte(message.Error.Message), mark) ||
		json.Unmarshal([]byte(message.Error.Message)[len(mark):], refusal) != nil {
		return answer, nil
	}
	said := refusal
	if refusal.Result != nil {
		said = nil
	}
	raw, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *Refusal        `json:"error,omitempty"`
		Result  json.RawMessage `json:"result,omitempty"`
	}{message.JSONRPC, message.ID, said, refusal.Result})
	if err != nil {
		return answer, nil
	}
	return append(append(bytes.Clone(answer[:from]), raw...), answer[to+1:]...), refusal
}

// status returns the HTTP status of a Refusal to a client since protocol 2026-07-28.
func (r *Refusal) status(otherwise int) int {
	if r.Result != nil {
		return http.StatusOK
	}
	switch r.Code {
	case mcp.INVALID_PARAMS, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.HEADER_MISMATCH:
		return http.StatusBadRequest
	}
	return otherwise
}
