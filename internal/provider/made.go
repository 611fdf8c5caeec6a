package provider

import "sync/atomic"

// Made keeps the forms of one tool. Its zero value is empty and may be used concurrently.
type Made struct{ last atomic.Pointer[made] }

// A made is one form of a tool, made after others.
type made struct {
	form   string // its name
	in     Listing
	tool   Tool
	before *made
}

// Tool returns [Form.Tool] of d, which must always be the same tool.
func (m *Made) Tool(d Described, form *Form, in Listing) (Tool, error) {
	last := m.last.Load()
	for kept := last; kept != nil; kept = kept.before {
		if kept.form == form.name && kept.in == in {
			return kept.tool, nil
		}
	}
	t, err := form.Tool(d, in)
	if err == nil {
		m.last.CompareAndSwap(last, &made{form.name, in, t, last}) // if it fails, the next one keeps it
	}
	return t, err
}
