package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxDecoded is how many values structured content may have, in the unit of [text.CountValues],
// that is decoded. Decoded, it takes many times its bytes.
const maxDecoded = 20_000

// A result of more than largeResult bytes is spared copies and decoding. Those of more than
// hugeResult are parsed one at a time, because that takes several times their bytes.
const (
	largeResult = 64 << 10
	hugeResult  = 1 << 20
)

// parsing is held while a huge result is parsed. Nobody waits for it but those who have a huge one
// too, and no code of a host runs meanwhile.
var parsing sync.Mutex

// parseResult returns the result of a tool call. Structured content of more than [maxDecoded]
// values is not decoded: StructuredContent is the same [json.RawMessage] as RawStructuredContent.
// It changes raw.
func parseResult(raw json.RawMessage) (*mcp.CallToolResult, error) {
	if len(raw) <= largeResult {
		return mcp.ParseCallToolResult(&raw)
	}
	if len(raw) > hugeResult {
		parsing.Lock()
		defer parsing.Unlock()
	}
	content := cutContent(raw)
	result, err := mcp.ParseCallToolResult(&raw)
	if err == nil && content != nil {
		result.StructuredContent, result.RawStructuredContent = content, content
	}
	return result, err
}

// cutContent returns the structured content of a result, if it has more than [maxDecoded]
// values, and writes null in its place. Otherwise it returns nil.
func cutContent(result json.RawMessage) json.RawMessage {
	fields, _ := text.Fields(result, "structuredContent")
	content := fields[0]
	if text.CountValues(content) <= maxDecoded {
		return nil
	}
	cut := bytes.Clone(content)
	n := copy(content, "null")
	copy(content[n:], bytes.Repeat([]byte(" "), len(content)-n))
	return cut
}

// A bypass brings large results to those who wait for them. mcp-go's readers of lines and of events
// would copy each four times; they get null in their place.
type bypass struct {
	mu      sync.Mutex
	waiting map[string]json.RawMessage // by the id of a request under way; the value is nil until there is one
}

func newBypass() *bypass { return &bypass{waiting: make(map[string]json.RawMessage)} }

// send sends a request and returns the response.
func (b *bypass) send(ctx context.Context, r transport.JSONRPCRequest, send sendFunc) (*transport.JSONRPCResponse, error) {
	id := fmt.Sprint(r.ID.Value())
	b.mu.Lock()
	b.waiting[id] = nil
	b.mu.Unlock()
	response, err := send(ctx, r)
	b.mu.Lock()
	result := b.waiting[id]
	delete(b.waiting, id)
	b.mu.Unlock()
	if err == nil && response != nil && response.Error == nil && result != nil {
		response.Result = result
	}
	return response, err
}

// take keeps the result in a message of a server, if it is large and somebody waits for it. It
// returns the message for mcp-go, which is a part of the one that it got or short.
func (b *bypass) take(message []byte) []byte {
	if len(message) <= largeResult || !json.Valid(message) {
		return message
	}
	fields, twice := text.Fields(message, "id", "result", "method", "error")
	id, result := fields[0], fields[1]
	if twice != "" || result == nil || fields[2] != nil || fields[3] != nil {
		return message
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.waiting[string(id)]; !ok {
		return message
	}
	b.waiting[string(id)] = result
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":null}`+"\n", id)
}

// An eventLines is a stream of events without large results. It passes on whole
// lines, as mcp-go reads them.
type eventLines struct {
	io.Closer
	r     *bufio.Reader
	large *bypass
	max   int    // bytes of a message
	line  []byte // the rest of the current line
	err   error  // that ended the stream
}

func (e *eventLines) Read(p []byte) (int, error) { return readFrom(&e.line, p, e.next) }

func (e *eventLines) next() error {
	for e.err == nil {
		var chunk []byte
		chunk, e.err = e.r.ReadSlice('\n')
		e.line = appendTo(e.line, chunk, e.max)
		if e.err == nil {
			break
		}
		if e.err == bufio.ErrBufferFull {
			e.err = nil
		}
	}
	if data, ok := bytes.CutPrefix(e.line, []byte(dataField)); ok {
		if short := e.large.take(data); len(short) < len(data) {
			e.line = append([]byte(dataField), short...)
		}
	}
	if len(e.line) > 0 {
		return nil
	}
	return e.err
}
