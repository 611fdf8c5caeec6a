package mcphybrid

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Resource is what a server offers to be read, such as a file or a record, or a
// template of resources. Don't trust its strings, except Server: they come from the
// server. What it points to is shared and must not be changed.
type Resource struct {
	Server      string // the name in its [ServerConfig]
	URI         string // "" for a template
	URITemplate string // of the URIs of resources (RFC 6570); "" for a resource
	Name        string // the URI or the template, if the server gave none
	Registered  string // the name by which patterns as in [Access] know it, beside Name and URI
	Title       string
	Description string
	MIMEType    string
	Size        int64            // in bytes; 0 if the server does not say
	Annotations *mcp.Annotations // nil if there are none; without what is no value of the protocol's
	Raw         json.RawMessage  // the element of the list
}

// A Prompt is a text that a server offers to users, often as a slash command. What is
// said of the strings of a [Resource] holds for its own.
type Prompt struct {
	Server      string
	Name        string
	Registered  string
	Title       string
	Description string
	Arguments   []mcp.PromptArgument
	Raw         json.RawMessage
}

// resourcesOf returns the name under which the trust store has what a server lists beside
// tools. So that has a room of its own, and no tool has its names.
func resourcesOf(server string) string { return server + "\x00resources" }

// An UnknownResourceError says that the session has no such resource or prompt, or
// that several servers have it.
type UnknownResourceError struct {
	Server  string   // that was asked for, or ""
	ID      string   // the URI, or the prompt's name
	Nearest []string // the most similar ones, nearest first; at most three
	Servers []string // if several have it and none was named: those that the session may ask
}

func (e *UnknownResourceError) Error() string {
	id := text.Line(e.ID, text.MaxName)
	switch {
	case e.Servers != nil:
		return fmt.Sprintf("mcphybrid: several servers have %q, name one: %s", id, text.Names(e.Servers))
	case e.Server != "":
		return fmt.Sprintf("mcphybrid: %v: %q of server %q", ErrUnknownResource, id, e.Server)
	}
	return fmt.Sprintf("mcphybrid: %v: %q", ErrUnknownResource, id)
}

// Unwrap returns [ErrUnknownResource].
func (e *UnknownResourceError) Unwrap() error { return ErrUnknownResource }
