package schema

import (
	"container/list"
	"encoding/json"
	"sync"
)

// MaxRecent is how many bytes of schemas a [Recent] has room for. Compiled, they take
// about ten times as much: 5 MB, with the schemas of 550 published tools.
const MaxRecent = 512 << 10

// perSchema is what an empty schema counts: compiled, it takes a kilobyte.
const perSchema = 100

// A Recent has the validators that were used last. Equal schemas share one, whosever
// they are. Its zero value is empty and may be used concurrently.
type Recent struct {
	mu    sync.Mutex
	of    map[string]*list.Element // by schema
	order list.List                // of entries; the one used last comes first
	bytes int                      // that these count
}

type entry struct {
	schema    string
	validator *Validator
}

// Of returns the validator of an input schema.
func (r *Recent) Of(schema json.RawMessage) *Validator {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[string(schema)]; e != nil {
		r.order.MoveToFront(e)
		return e.Value.(entry).validator
	}
	if r.of == nil {
		r.of = make(map[string]*list.Element)
	}
	e := entry{string(schema), NewValidator(schema)}
	r.of[e.schema] = r.order.PushFront(e)
	r.bytes += len(schema) + perSchema
	for r.bytes > MaxRecent && r.order.Len() > 1 {
		last := r.order.Remove(r.order.Back()).(entry)
		delete(r.of, last.schema)
		r.bytes -= len(last.schema) + perSchema
	}
	return e.validator
}
