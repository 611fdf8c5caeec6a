package modeltest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Providers refuse empty texts.
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	for body, read := range map[string]func([]byte) (Request, error){
		`{"model":"m","messages":[{"role":"system","content":""},{"role":"user","content":"Hi"}]}`:                                    readChat,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`:                                            readChat,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":""}]}]}`:                                         readResponses,
		`{"model":"m","max_tokens":1,"system":[{"type":"text","text":""}],"messages":[{"role":"user","content":"Hi"}]}`:               readMessages,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":""}]}]}`: readMessages,
	} {
		_, err := read([]byte(body))
		assert.ErrorContains(t, err, "empty", body)
	}
}
