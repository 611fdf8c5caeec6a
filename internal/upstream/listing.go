package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// has reports whether the server says that it has a list. Some of those with older
// protocols, or that say nothing at all, have tools all the same.
func (c *conn) has(kind Kind) bool {
	can := c.client.GetServerCapabilities()
	switch kind {
	case Resources, Templates:
		return can.Resources != nil
	case Prompts:
		return can.Prompts != nil
	case Skills:
		_, ok := can.Extensions[skillsExtension]
		return ok
	}
	return can.Tools != nil || !c.isModern() || can.Resources == nil && can.Prompts == nil
}

// list returns what the server lists, the elements of all pages. Without the tools
// it fails, and without another list it does not, unless the connection is lost or ctx ends.
// The other lists together may take half of the time that the tools leave.
func (c *conn) list(ctx context.Context, limits config.Limits) (list List, err error) {
	l := &listing{limits: limits, taskless: c.isModern(), mirrors: c.isModernHTTP()}
	if c.has(Tools) {
		if err := c.listKind(ctx, l, Tools); err != nil {
			return list, err
		}
	}
	c.mirrored.Store(&l.mirrored)
	inner, half := ctx, time.Duration(0)
	if end, ok := ctx.Deadline(); ok {
		half = time.Until(end) / 2
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, half)
		defer cancel()
	}
	for kind := Resources; kind < NumKinds; kind++ {
		if !c.has(kind) {
			continue
		}
		number, bytes := l.number, l.bytes
		if err := c.listKind(inner, l, kind); err != nil {
			if isLost(err) || ctx.Err() != nil {
				return list, err
			}
			list.Failed[kind] = late(err, half.Round(10*time.Millisecond))
			l.elements[kind], l.number, l.bytes = nil, number, bytes
		}
	}
	list.Elements, list.Instructions, list.Private, list.Changing = l.elements, c.instructions, l.private, c.changing.Load()
	list.Skilled = c.has(Skills)
	c.fresh.Store(int64(l.fresh))
	return list, nil
}

// listKind reads one list. A server that does not know the request has an empty one.
func (c *conn) listKind(ctx context.Context, l *listing, kind Kind) error {
	l.kind = kind
	_, err := c.client.ListTools(context.WithValue(ctx, listingKey{}, l), mcp.ListToolsRequest{})
	if err == nil || errors.Is(err, mcp.ErrMethodNotFound) {
		return nil
	}
	return fmt.Errorf("%s: %w", lists[kind].method, err)
}

// A Kind is what a list of a server has.
type Kind uint8

// skillsExtension is the extension by which a server says that it has skills (SEP-2640, as of
// 2026-09-13).
const skillsExtension = "io.modelcontextprotocol/skills"

// The lists of a server.
const (
	Tools Kind = iota
	Resources
	Templates // of resources
	Prompts
	Skills // by the extension [skillsExtension]
	NumKinds
)

var lists = [NumKinds]struct{ method, member string }{
	{string(mcp.MethodToolsList), "tools"},
	{string(mcp.MethodResourcesList), "resources"},
	{string(mcp.MethodResourcesTemplatesList), "resourceTemplates"},
	{string(mcp.MethodPromptsList), "prompts"},
	{"skills/list", "skills"},
}

// A List is all that a server lists, of one moment.
type List struct {
	Elements [NumKinds][]Element
	Failed   [NumKinds]error // why a list is missing, or nil; that of Tools is always nil
	Skilled  bool            // the server has skills, listed or not
	Private  bool            // the server says that it is for those credentials only with which it was asked for
	Changing bool            // those credentials are not all in the configuration

	Instructions string // how to use the server, as it says; at most MaxInstructions bytes
}

// A listing collects the raw elements of the results of lists, page by page. mcp-go
// gets none of them: its types lose most keywords of a schema, one element that
// they can't hold fails the whole list, and its client keeps every tool that it
// ever saw. All lists are read as that of the tools is, of which mcp-go sees empty pages.
type listing struct {
	limits   config.Limits
	kind     Kind // the list that is read
	elements [NumKinds][]Element
	taskless bool                // the protocol has no tasks as we can execute them
	mirrors  bool                // the protocol sends some arguments as headers too
	mirrored map[string]mcp.Tool // the tools with such arguments; only their names and input schemas
	number   int                 // of all elements
	pages    int                 // of all lists
	bytes    int                 // of all elements
	private  bool                // a page is
	fresh    time.Duration       // how long all pages may be kept, by what the server says; 0 if it says nothing
}

// An Element is one element of a list.
type Element struct {
	Raw     json.RawMessage // as the server sent it; nil if it is too large
	Problem error           // why it can't be used, or nil
}

type listingKey struct{}

// maxMembers is how many members a page may have.
const maxMembers = 1000

// maxCursor is the greatest length of a page's cursor, in bytes. mcp-go keeps
// all cursors of a listing.
const maxCursor = 4 << 10

// ask returns the request for a page of the list that is read. r is one for tools.
func (l *listing) ask(r transport.JSONRPCRequest) transport.JSONRPCRequest {
	r.Method = lists[l.kind].method
	if r.Header != nil {
		r.Header = r.Header.Clone()
		r.Header.Set(mcp.HeaderMethod, r.Method)
	}
	return r
}

// takePage collects the elements of one page. It returns an empty page of tools in its
// place.
func (l *listing) takePage(result json.RawMessage) (json.RawMessage, error) {
	kind, method := l.kind, lists[l.kind].method
	member, what := lists[kind].member, "tools"
	switch kind {
	case Tools:
	case Skills:
		what = "tools, resources, prompts and skills"
	default:
		what = "tools, resources and prompts"
	}
	members, number := sizeOfPage(result, member)
	if l.number += number; l.number > l.limits.MaxTools {
		return nil, fmt.Errorf("it lists more %s than the limit of %d", what, l.limits.MaxTools)
	}
	if members > maxMembers {
		return nil, fmt.Errorf("%s result: it has more members than the limit of %d", method, maxMembers)
	}
	var page map[string]json.RawMessage
	if err := json.Unmarshal(result, &page); err != nil {
		return nil, fmt.Errorf("%s result: %w", method, text.JSONError(result, err))
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(page[member], &elements); err != nil {
		return nil, fmt.Errorf("%s result: %q is not a list", method, member)
	}
	if l.pages++; l.pages > l.limits.MaxPages { // pages may be empty
		return nil, fmt.Errorf("it lists its %s on more pages than the limit of %d", what, l.limits.MaxPages)
	}
	if len(page["nextCursor"]) > maxCursor {
		return nil, fmt.Errorf("the cursor of a page has more bytes than the limit of %d", maxCursor)
	}
	l.takeHints(page)
	for _, raw := range elements {
		if len(raw) > l.limits.MaxDefinition {
			l.elements[kind] = append(l.elements[kind], Element{Problem: definitionTooLarge(len(raw), l.limits.MaxDefinition)})
			continue
		}
		if l.bytes += len(raw); l.bytes > l.limits.MaxListing {
			return nil, fmt.Errorf("its %s have more bytes than the limit of %d", what, l.limits.MaxListing)
		}
		e := Element{Raw: raw}
		if kind == Tools {
			e.Problem = l.toolProblem(raw)
		}
		l.elements[kind] = append(l.elements[kind], e)
	}
	for _, name := range []string{member, "cacheScope", "ttlMs"} { // mcp-go fails on a hint of the wrong type
		delete(page, name)
	}
	page["tools"] = json.RawMessage("[]")
	return json.Marshal(page)
}

// sizeOfPage returns how many members a page has, which is valid JSON, and how many elements
// its lists of a name have together. It decodes nothing: a short element that is decoded takes
// thirty times its bytes.
func sizeOfPage(page json.RawMessage, list string) (members, elements int) {
	s := text.Scan(page)
	if !s.Open('{') {
		return 0, 0
	}
	for ; s.More(); members++ {
		name, _ := s.Text()
		if string(name) != list || s.Next() != '[' {
			s.Skip()
			continue
		}
		for s.Open('['); s.More(); elements++ {
			s.Skip()
		}
	}
	return members, elements
}

// takeHints reads how a page may be cached (SEP-2549, since protocol 2026-07-28).
func (l *listing) takeHints(page map[string]json.RawMessage) {
	var scope mcp.CacheScope
	if json.Unmarshal(page["cacheScope"], &scope) == nil && scope == mcp.CacheScopePrivate {
		l.private = true
	}
	var ms int64
	if json.Unmarshal(page["ttlMs"], &ms) != nil || ms <= 0 {
		return // with 0, the list is stale at once: then Limits.Refresh says how often to ask
	}
	if fresh := time.Duration(min(ms, maxFresh.Milliseconds())) * time.Millisecond; l.fresh == 0 || fresh < l.fresh {
		l.fresh = fresh
	}
}

// toolProblem returns why a tool can't be used, or nil.
func (l *listing) toolProblem(raw json.RawMessage) error {
	problem := l.mirror(raw)
	if l.taskless && needsTask(raw) {
		problem = errNeedsTask
	}
	return problem
}

var errNeedsTask = fmt.Errorf("it is executed as a task only, for which there is no way in protocol %s", mcp.ProtocolVersion20260728)

// needsTask reports whether a tool is executed as a task only.
func needsTask(raw json.RawMessage) bool {
	var in struct {
		Execution mcp.ToolExecution `json:"execution"`
	}
	return bytes.Contains(raw, []byte("taskSupport")) && json.Unmarshal(raw, &in) == nil && in.Execution.TaskSupport == mcp.TaskSupportRequired
}

func definitionTooLarge(size, limit int) error {
	return fmt.Errorf("the definition has %d bytes, more than the limit of %d", size, limit)
}
