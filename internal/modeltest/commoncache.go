package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

// The common rules of providers' caches.
const (
	leastCached   = 1024 // tokens; nothing shorter is cached
	cacheStep     = 128  // tokens; OpenAI reads a multiple of it
	blocksBack    = 20   // blocks that Anthropic looks back from a breakpoint
	bytesPerToken = 4
)

// A CommonCache never forgets, counts four bytes as a token, and has two rules. By
// Anthropic's, what ends at a block with cache_control is cached, nothing else, and found
// again by looking back 20 blocks from such a block. Tools that are deferred count where a
// result refers to them. By OpenAI's, the longest beginning that any earlier request had is
// read in steps of 128 tokens, writing is not billed, and all tools count. Both cache nothing
// below 1,024 tokens.
//
// The zero CommonCache is empty.
type CommonCache struct {
	ends map[[sha256.Size]byte]bool // Anthropic: what was written, by its blocks
	sent [][]byte                   // OpenAI: earlier requests
	last cached
}

// cached is what counts of a request for the loss of the next.
type cached struct {
	head     int // bytes before the messages
	messages []json.RawMessage
	until    int // tokens in the cache behind it
}

// Bill returns the bill of a request and adds it to the cache.
func (c *CommonCache) Bill(r Request) Bill {
	var b Bill
	var head int
	if r.Protocol == Messages {
		b, head = c.byBreakpoint(r)
	} else {
		b, head = c.byPrefix(r)
	}
	is := cached{head, r.Messages, b.Read + b.Written}
	if r.Protocol != Messages {
		is.until = (b.Read + b.Rest) / cacheStep * cacheStep
	}
	b.Lost = c.last.messagesCached() && is.goesOn(c.last) && b.Read*bytesPerToken <= head
	c.last = is
	return b
}

// messagesCached reports whether a message is in the cache.
func (c cached) messagesCached() bool {
	return c.until >= leastCached && c.until*bytesPerToken > c.head
}

// goesOn reports whether the first message is still that of the request before.
func (c cached) goesOn(was cached) bool {
	if len(c.messages) == 0 || len(was.messages) == 0 {
		return false
	}
	a, _, _ := plain(was.messages[0], true)
	b, _, _ := plain(c.messages[0], true)
	return bytes.Equal(a, b)
}

// byBreakpoint bills by Anthropic's rule. The request was read, so it is right.
func (c *CommonCache) byBreakpoint(r Request) (b Bill, head int) {
	list, _ := blocks(r.Body)
	deferred := make(map[string]json.RawMessage)
	ends := make([][sha256.Size]byte, len(list)) // what ends at each block
	sizes := make([]int, len(list))              // bytes until there
	sum, size := [sha256.Size]byte{}, 0
	for i, block := range list {
		text := []byte(block.text)
		if d := (definition{}); i < r.Listed && json.Unmarshal(block.text, &d) == nil && d.Deferred {
			deferred[d.Name], text = block.text, nil
		}
		if block.spoken {
			text = append(bytes.Clone(text), references(block.text, deferred)...)
		} else {
			head += len(text)
		}
		sum, size = sha256.Sum256(append(sum[:], text...)), size+len(text)
		ends[i], sizes[i] = sum, size
	}
	until := 0
	for i, block := range list {
		if block.marks == 0 || sizes[i]/bytesPerToken < leastCached {
			continue
		}
		for k := i; k >= 0 && k > i-blocksBack; k-- {
			if c.ends[ends[k]] {
				b.Read = max(b.Read, sizes[k]/bytesPerToken)
				break
			}
		}
		until = sizes[i] / bytesPerToken
	}
	for i, block := range list {
		if block.marks > 0 && sizes[i]/bytesPerToken >= leastCached {
			if c.ends == nil {
				c.ends = make(map[[sha256.Size]byte]bool)
			}
			c.ends[ends[i]] = true
		}
	}
	b.Written = max(0, until-b.Read)
	b.Rest = size/bytesPerToken - b.Read - b.Written
	return b, head
}

// references returns the definitions of the deferred tools to which the contents of a block
// refer.
func references(text json.RawMessage, deferred map[string]json.RawMessage) (more []byte) {
	at := bytes.IndexByte(text, '{') // behind the role
	if len(deferred) == 0 || at < 0 {
		return nil
	}
	var in struct{ Content json.RawMessage }
	if json.Unmarshal(text[at:], &in) != nil {
		return nil
	}
	for _, raw := range split(in.Content) {
		var p part
		if json.Unmarshal(raw, &p) == nil && p.Type == "tool_reference" {
			more = append(more, deferred[p.ToolName]...)
		}
	}
	return more
}

// byPrefix bills by OpenAI's rule.
func (c *CommonCache) byPrefix(r Request) (b Bill, head int) {
	var text []byte
	for _, tool := range r.Tools[:r.Listed] {
		text = append(text, tool...)
	}
	text = append(text, r.System...)
	head = len(text)
	for _, m := range r.Messages {
		text = append(text, m...)
	}
	for _, was := range c.sent {
		n := 0
		for n < len(was) && n < len(text) && was[n] == text[n] {
			n++
		}
		b.Read = max(b.Read, n/bytesPerToken/cacheStep*cacheStep)
	}
	if b.Read < leastCached {
		b.Read = 0
	}
	b.Rest = len(text)/bytesPerToken - b.Read
	c.sent = append(c.sent, text)
	return b, head
}
