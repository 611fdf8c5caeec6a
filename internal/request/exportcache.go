package request

import (
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/provider"
)

// An ExportCache keeps one tool in the forms in which it was written. Its zero value is
// empty. It may be used concurrently.
type ExportCache struct{ last atomic.Pointer[cached] }

// A cached is the tool in one form, written after those before.
type cached struct {
	form   *Form
	in     Listing
	tool   provider.Tool
	before *cached
}

// Tool returns [Form.Tool] of d, which must always be the same tool.
func (c *ExportCache) Tool(d Described, form *Form, in Listing) (provider.Tool, error) {
	last := c.last.Load()
	for kept := last; kept != nil; kept = kept.before {
		if kept.form == form && kept.in == in {
			return kept.tool, nil
		}
	}
	t, err := form.Tool(d, in)
	if err == nil {
		c.last.CompareAndSwap(last, &cached{form, in, t, last}) // if it fails, the next one keeps it
	}
	return t, err
}
