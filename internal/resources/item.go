// Package resources has what servers list beside their tools: resources, templates
// of resources, prompts and skills. It checks each, and finds them by URI and by words.
package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Kind is one of the four lists.
type Kind uint8

const (
	Resource Kind = iota
	Template
	Prompt
	Skill
	NumKinds
)

var kindNames = [NumKinds]string{"resource", "resource template", "prompt", "skill"}

func (k Kind) String() string { return kindNames[k] }

// isRead reports whether models search for what is of that kind to read it.
func (k Kind) isRead() bool { return k == Resource || k == Template }

const (
	// MaxURI is the greatest length of a URI or a template, in bytes.
	MaxURI = 4 << 10

	// MaxTemplates is how many templates a server may have. Each is tried with a URI
	// that no list has.
	MaxTemplates = 500
)

// An Item is a resource, a template, a prompt or a skill as its server described it, checked
// but not changed. It is immutable. Don't trust its strings.
type Item struct {
	Kind        Kind
	ID          string // the URI, the template of URIs, or the name of a prompt; of a skill, the URI of its SKILL.md
	Name        string // the server's own; if the server gave a resource none, its ID
	Title       string
	Description string
	MIMEType    string
	Size        int64 // of a resource, in bytes; 0 if the server does not say
	Annotations *mcp.Annotations
	Arguments   []mcp.PromptArgument // of a prompt
	Manifest    *Manifest            // of a skill
	Raw         json.RawMessage      // the element of the list

	template *template // of a Template
	folded   *template // the same with its scheme and host in lower case
	forms    []string  // of the URI of a Resource or a Skill, others than itself
}

// Parse checks one element of a list. It fails if the element can't be used: if it is
// too large or not JSON, has no URI, template or name, has one that is malformed, or
// has one of the members that we know twice.
func Parse(kind Kind, raw json.RawMessage, maxBytes int) (*Item, error) {
	if kind == Skill {
		return parseSkill(raw, maxBytes)
	}
	values, twice, err := text.ReadElement(raw, maxBytes, "name", "uri", "uriTemplate", "title", "description", "mimeType", "arguments", "size", "annotations")
	if err != nil {
		return nil, err
	}
	var said [3]string
	for i, member := range []string{"name", "uri", "uriTemplate"} {
		if said[i], err = text.String(member, values[i]); err != nil {
			return nil, err
		}
	}
	title, description, mimeType, arguments, size, annotations := values[3], values[4], values[5], values[6], values[7], values[8]
	it := &Item{Kind: kind, Raw: raw, Name: said[0]}
	member := "name"
	switch kind {
	case Resource:
		it.ID, member = said[1], "uri"
	case Template:
		it.ID, member = said[2], "uriTemplate"
	case Prompt:
		it.ID = said[0]
	}
	if it.ID == "" {
		return nil, fmt.Errorf("the %s is missing", member)
	}
	it.Name = cmp.Or(it.Name, it.ID)
	quoted := text.Line(it.ID, text.MaxName)
	if twice != "" {
		return nil, fmt.Errorf("%q has the member %q more than once", quoted, twice)
	}
	if kind != Prompt {
		if err := checkURI(it.ID); err != nil {
			return nil, fmt.Errorf("the %s %q: %w", member, quoted, err)
		}
	}
	if kind == Resource {
		forms, err := Forms(it.ID)
		if err != nil {
			return nil, fmt.Errorf("the uri %q: %w", quoted, err)
		}
		it.forms = forms[1:]
	}
	if kind == Template {
		t, err := parseTemplate(it.ID)
		if err != nil {
			return nil, fmt.Errorf("the uriTemplate %q: %w", quoted, err)
		}
		it.template = t
		if it.folded, err = parseTemplate(foldHost(it.ID)); err != nil {
			return nil, fmt.Errorf("the uriTemplate %q: %w", quoted, err)
		}
	}
	if kind == Prompt && !text.IsNull(arguments) && json.Unmarshal(arguments, &it.Arguments) != nil {
		return nil, fmt.Errorf("the arguments of %q are malformed", quoted)
	}
	// We ignore a description of the wrong type.
	it.Title, _ = text.String("title", title)
	it.Description, _ = text.String("description", description)
	it.MIMEType, _ = text.String("mimeType", mimeType)
	if json.Unmarshal(size, &it.Size) != nil || it.Size < 0 {
		it.Size = 0
	}
	if json.Unmarshal(annotations, &it.Annotations) != nil {
		it.Annotations = nil // a half-read one would have false hints
	}
	if a := it.Annotations; a != nil { // of others, clients refuse the whole list
		a.Audience = slices.DeleteFunc(a.Audience, func(r mcp.Role) bool { return r != mcp.RoleUser && r != mcp.RoleAssistant })
		if a.Priority != nil && !(*a.Priority >= 0 && *a.Priority <= 1) {
			a.Priority = nil
		}
		if _, err := time.Parse(time.RFC3339, a.LastModified); err != nil {
			a.LastModified = ""
		}
	}
	return it, nil
}

func checkURI(uri string) error {
	if len(uri) > MaxURI {
		return fmt.Errorf("it has %d bytes, more than the limit of %d", len(uri), MaxURI)
	}
	if strings.ContainsFunc(uri, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("it has a control character")
	}
	return nil
}

// Hash returns a hash of what people and models see of the item and what it is read
// by, and of a skill also of its files. A resource's size and annotations are not part of it: they change with its
// content.
func (it *Item) Hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %q %q %q", it.Kind, it.ID, it.Name, it.Title, it.Description, it.MIMEType)
	for _, a := range it.Arguments {
		fmt.Fprintf(h, " %q %q %q %t", a.Name, a.Title, a.Description, a.Required)
	}
	if it.Manifest != nil {
		fmt.Fprintf(h, " %s", it.Manifest.hash())
	}
	return hex.EncodeToString(h.Sum(nil))
}
