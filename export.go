package mcphybrid

// The list of tools as a provider takes it: internal/request writes each tool, with internal/dialect for its schema.
// A result is written by provider.ExportResult (provider/result.go): a host calls it with what Session.Call returned.

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/provider"
)

// Export returns [Session.Tools] in the form of a provider, in the same order.
// With [ByProvider], the list also has the deferred tools, marked as such.
//
// Like Tools, and to the byte, the list grows at its end: [Session.Tools] has the
// exceptions. Export fails if the format is unknown, if the provider can't
// take a tool's name, or if the session is ByProvider and the format has no such
// mark. If the provider does not accept that many tools, Export returns the list
// and an error that says so.
func (s *Session) Export(f provider.Format) ([]provider.Tool, error) {
	form, err := request.FormOf(f)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w", err)
	}
	list, err := s.export(remaining(s.show()), form, false)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w", err)
	}
	if err := checkLength(form, list); err != nil {
		return list, fmt.Errorf("mcphybrid: %w", err)
	}
	return list, nil
}

// export returns the tools of items in a form, in the same order. If loads is set, the
// model loads tools by searches that the host answers.
func (s *Session) export(items []listItem, form *request.Form, loads bool) ([]provider.Tool, error) {
	list := make([]provider.Tool, 0, len(items))
	for _, e := range items {
		var t Tool = e.tool
		switch {
		case loads && e.slot == asMeta && e.meta == metaSearch:
			list = append(list, form.SearchTool(metaTool{s, e.meta}))
			continue
		case e.slot == asMeta:
			t = metaTool{s, e.meta}
		case !e.isTool(), loads && e.slot == asDeferred: // an answer to a search has loaded it
			continue
		}
		in := request.Listed
		switch {
		case e.slot == asDeferred:
			in = request.Deferred
		case s.Disclosure() == ByProvider:
			in = request.Beside
		}
		exported, err := exportOnce(t, form, in)
		if err != nil {
			return nil, err
		}
		list = append(list, s.allowCallers(exported, t, form))
	}
	return list, nil
}

// checkLength returns an error if a list is longer than the provider accepts.
func checkLength(form *request.Form, list []provider.Tool) error {
	deferred := 0
	for _, e := range list {
		if e.Deferred {
			deferred++
		}
	}
	return form.Check(len(list), deferred)
}

// exportOnce returns t in a form. It keeps each form of a tool that sessions share.
func exportOnce(t Tool, form *request.Form, in request.Listing) (provider.Tool, error) {
	switch t := t.(type) {
	case *BridgeTool:
		return t.exports.Tool(t, form, in)
	case metaTool:
		if !t.isOwn() {
			return t.shared().export(form, in)
		}
	}
	return form.Tool(t, in)
}

// metaExports keep the meta tools of a tenant in the forms in which they were written, of
// sessions that are not ByBridge and of those that are.
type metaExports [2][metaKinds]request.ExportCache

// export returns t in a form, which it keeps.
func (t tenantMeta) export(form *request.Form, in request.Listing) (provider.Tool, error) {
	kept := &t.of.metaExports[0]
	if t.bridge {
		kept = &t.of.metaExports[1]
	}
	return kept[t.kind].Tool(t, form, in)
}

// allowCallers returns e, which t became, with who may call it. Tools of ours are called by
// the model alone.
func (s *Session) allowCallers(e provider.Tool, t Tool, form *request.Form) provider.Tool {
	if _, ok := t.(*BridgeTool); !ok || len(s.asked.callers) == 0 {
		return e
	}
	return form.WithCallers(e, s.asked.callers)
}
