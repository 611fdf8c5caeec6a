package schema

import (
	"container/list"
	"encoding/json"
	"sync"
)

// MaxRecent is how many bytes the schemas of a [Recent] take, compiled: enough for those
// of some 400 published tools.
const MaxRecent = 5 << 20

// Before a schema is compiled, a Recent takes it to be an ordinary one.
const (
	perSchema = 1000 // bytes that an empty one takes
	perByte   = 10   // bytes that a byte of one takes
)

// A Recent has the validators that were used last. Equal schemas share one, whosever
// they are. Its zero value is empty and may be used concurrently.
type Recent struct {
	mu    sync.Mutex
	of    map[string]*list.Element // by schema
	order list.List                // of entries; the one used last comes first
	bytes int                      // that these take
}

type entry struct {
	schema    string
	validator *Validator
	bytes     int
}

// Of returns the validator of an input schema.
func (r *Recent) Of(schema json.RawMessage) *Validator {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[string(schema)]; e != nil {
		r.order.MoveToFront(e)
		return e.Value.(*entry).validator
	}
	if r.of == nil {
		r.of = make(map[string]*list.Element)
	}
	e := &entry{schema: string(schema)}
	e.validator = newValidator(schema, func(c *compiledSchema) { r.resize(e, len(schema)+perSchema+c.size) })
	r.of[e.schema] = r.order.PushFront(e)
	r.grow(e, perByte*len(schema)+perSchema)
	return e.validator
}

// resize notes how many bytes e takes, if it is still kept and takes more than was thought.
func (r *Recent) resize(e *entry, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept := r.of[e.schema]; kept != nil && kept.Value == e && bytes > e.bytes {
		r.grow(e, bytes)
	}
}

// grow sets the bytes of e and drops what was used longest ago, until the rest has room.
func (r *Recent) grow(e *entry, bytes int) {
	r.bytes += bytes - e.bytes
	e.bytes = bytes
	for r.bytes > MaxRecent && r.order.Len() > 1 {
		last := r.order.Remove(r.order.Back()).(*entry)
		delete(r.of, last.schema)
		r.bytes -= last.bytes
	}
}
