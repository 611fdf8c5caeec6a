package provider

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Result is the result of a call as a provider takes it. The host adds the id of the call.
type Result struct {
	// JSON is, by format:
	//   - [OpenAIChat]: the content of a tool message: a string, or a list for a search of
	//     a session by provider
	//   - [OpenAIResponses]: the output of a function_call_output, a list
	//   - [Anthropic]: the content of a tool_result, a list
	//   - [Gemini]: a functionResponse without name and id. Models before Gemini 3
	//     refuse its parts, which hold images and PDFs.
	//   - [Bedrock]: the content of a toolResult, a list
	//   - [MCP]: a CallToolResult
	JSON json.RawMessage

	// Text is the result as one text, never "". Each image, sound or file has a line in
	// it. The text of an error begins with "Error: ", unless it begins with "error" anyway, and so
	// does JSON where the provider has no mark for errors, as OpenAI.
	Text string

	// Media is, with [OpenAIChat], what a tool message can't hold: parts for a user
	// message behind the tool messages of the turn. Each image, sound or file follows a
	// text part that names it. A host leaves out what its model does not take, such as
	// sounds. Media is nil in other formats.
	Media []json.RawMessage

	// IsError reports whether the tool failed. Anthropic has is_error for it, and
	// Bedrock the status "error".
	IsError bool

	// Losses says what of the result is neither in JSON nor in Media, such as a sound
	// for Anthropic. Each entry begins with the place, such as "content 2", counted from 0. In the
	// place of each, the model reads that it was left out. Losses is nil if nothing was
	// lost. It does not mention what no model reads, such as annotations and _meta.
	Losses []string
}

// ExportResult returns the result of a call in the form of a provider. The order stays.
// A resource becomes its text behind its URI, or a file; a link becomes its JSON.
// Structured content becomes a text, unless the texts say the same. An image counts as
// what its bytes are, whatever its server says, since providers refuse a request for
// a wrong type.
//
// If r answers a search of a session by provider, it loads the tools that were found, for
// Anthropic and chat completions.
//
// ExportResult fails if r is nil or can't be written as JSON, or if the format is unknown.
func ExportResult(r *mcp.CallToolResult, f Format) (Result, error) {
	if err := f.check(); err != nil {
		return Result{}, err
	}
	if r == nil {
		return Result{}, errors.New("mcphybrid: there is no result to export")
	}
	return resultForms[f].write(r)
}

// ToolReferences returns the content of a result that answers a search for tools: one
// block for each of names, in order. The API then loads those deferred tools of the
// request. Anthropic rejects a name that is not among the request's tools, and a request
// that defers all of its tools. [ExportResult] returns them for the search tool.
//
// It is nil unless the format is [Anthropic] or [OpenAIChat].
func ToolReferences(f Format, names []string) []json.RawMessage {
	return resultForms[f].references(names)
}

// A resultForm says how a provider takes results. As of November 2026, by the providers'
// SDKs and documentation:
//
//   - OpenAI's chat completions: a tool message has texts only. Images, sounds and files
//     stand in a user's message. No mark for errors.
//   - OpenAI's responses: a list of texts, images and files. No mark for errors.
//   - Anthropic: a list of texts, images and documents. It refuses texts of white space.
//   - Gemini: an object with "output" or "error", and parts, which models before Gemini 3
//     refuse.
//   - Bedrock: a list of texts, images and documents, each document with a name that no
//     other of the request has.
//
// Where they take images, these are PNG, JPEG, WebP and, but for Gemini, GIF. Other files
// than PDF are taken only as texts, since nothing tells what they are.
type resultForm struct {
	media  func(*medium) json.RawMessage // returns nil for what it does not take; nil takes nothing
	marks  bool                          // it has a mark for errors, so that the text needs none
	refers string                        // where a reference to a tool has its name; "" if it takes none
	set    func(list []piece, r *Result) // sets JSON and Media; nil for MCP's own form
}

var resultForms = map[Format]resultForm{
	MCP:             {marks: true},
	OpenAIChat:      {media: chatMedium, refers: "name", set: aside},
	OpenAIResponses: {media: inputMedium, set: inputs},
	Anthropic:       {media: block, marks: true, refers: "tool_name", set: blocks},
	Gemini:          {media: inlineData, marks: true, set: functionResponse},
	Bedrock:         {media: converseMedium, marks: true, set: converseBlocks},
}

// maxLosses bounds the losses of a hostile result.
const maxLosses = 100

// A piece is a part as a provider takes it. The text of a medium names it.
type piece struct {
	text   string
	medium json.RawMessage // or nil
}

// write returns a result in the form. It fails if r can't be written as JSON.
func (f resultForm) write(r *mcp.CallToolResult) (out Result, err error) {
	found := result.Found(r)
	out.IsError = r.IsError
	var list []piece
	number := 0
	lose := func(p part, what string) { out.Losses = append(out.Losses, p.at+": "+what+", left out") }
	for _, p := range said(partsOf(r), r) {
		m := p.medium
		var taken json.RawMessage
		if m != nil && m.data != "" && f.media != nil {
			taken = f.media(m)
		}
		switch {
		case m == nil && strings.TrimSpace(p.text) != "":
			list = append(list, piece{text: strings.ToValidUTF8(p.text, "\ufffd")})
		case m == nil && p.text != "":
			lose(p, "white space")
		case m == nil:
		case taken != nil:
			number++
			list = append(list, piece{result.MediumName(m.kind, number, m.mime), taken})
		default:
			what := result.Describe(m.kind, m.mime, m.size)
			lose(p, what)
			list = append(list, piece{text: result.NotTaken(what)})
		}
	}
	if list == nil {
		list = []piece{{text: result.Empty}}
	}
	failed := list
	if r.IsError {
		failed = marked(list)
	}
	out.Text = joined(failed)
	if !f.marks {
		list = failed
	}
	if more := len(out.Losses) - maxLosses; more > 0 {
		out.Losses = append(out.Losses[:maxLosses], fmt.Sprintf("and %d more", more))
	}
	switch {
	case f.set == nil:
		out.Losses = nil
		if out.JSON, err = json.Marshal(r); err != nil {
			return Result{}, fmt.Errorf("mcphybrid: the result is not JSON: %w", err)
		}
	case f.refers != "" && found != nil:
		out.JSON = text.JoinElements(f.references(found))
	default:
		f.set(list, &out)
	}
	return out, err
}

// marked returns list with a first text that says that the call failed.
func marked(list []piece) []piece {
	first := list[0]
	switch {
	case first.medium != nil:
		return append([]piece{{text: strings.TrimSpace(result.FailedPrefix)}}, list...)
	case strings.HasPrefix(strings.ToLower(first.text), "error"):
		return list
	}
	return append([]piece{{text: result.FailedPrefix + first.text}}, list[1:]...)
}

func joined(list []piece) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.text
	}
	return strings.Join(texts, "\n")
}

// object returns an object with these names and values in turn.
func object(namesAndValues ...any) json.RawMessage {
	var members []text.Member
	for i := 0; i < len(namesAndValues); i += 2 {
		m := text.Member{Name: namesAndValues[i].(string)}
		switch v := namesAndValues[i+1].(type) {
		case string:
			m.Value = text.Quote(v)
		case json.RawMessage:
			m.Value = v
		}
		members = append(members, m)
	}
	return text.JoinMembers(members)
}

func inputs(list []piece, r *Result) { r.JSON = parts(list, "input_text") }
func blocks(list []piece, r *Result) { r.JSON = parts(list, "text") }

// parts returns a list of parts, in which a text is of the type given.
func parts(list []piece, textType string) json.RawMessage {
	var elements []json.RawMessage
	for _, p := range list {
		if p.medium == nil {
			p.medium = object("type", textType, "text", p.text)
		}
		elements = append(elements, p.medium)
	}
	return text.JoinElements(elements)
}

// aside writes the texts as one and the media, each behind its name, in a list for the
// user's next message.
func aside(list []piece, r *Result) {
	r.JSON = text.Quote(r.Text)
	for _, p := range list {
		if p.medium != nil {
			r.Media = append(r.Media, object("type", "text", "text", p.text), p.medium)
		}
	}
}

func converseBlocks(list []piece, r *Result) {
	var elements []json.RawMessage
	for _, p := range list {
		if p.medium == nil {
			p.medium = object("text", p.text)
		}
		elements = append(elements, p.medium)
	}
	r.JSON = text.JoinElements(elements)
}

func functionResponse(list []piece, r *Result) {
	var media []json.RawMessage
	for _, p := range list {
		if p.medium != nil {
			media = append(media, p.medium)
		}
	}
	name := "output"
	if r.IsError {
		name = "error"
	}
	members := []any{"response", object(name, joined(list))}
	if media != nil {
		members = append(members, "parts", text.JoinElements(media))
	}
	r.JSON = object(members...)
}

// What each provider takes.

func chatMedium(m *medium) json.RawMessage {
	switch {
	case m.isImage():
		return object("type", "image_url", "image_url", object("url", m.url()))
	case m.mime == pdfType:
		return object("type", "file", "file", object("filename", m.file(), "file_data", m.url()))
	case m.mime == "audio/wav":
		return object("type", "input_audio", "input_audio", object("data", m.data, "format", "wav"))
	case m.mime == "audio/mpeg":
		return object("type", "input_audio", "input_audio", object("data", m.data, "format", "mp3"))
	}
	return nil
}

func inputMedium(m *medium) json.RawMessage {
	switch {
	case m.isImage():
		return object("type", "input_image", "image_url", m.url())
	case m.mime == pdfType:
		return object("type", "input_file", "filename", m.file(), "file_data", m.url())
	}
	return nil
}

func block(m *medium) json.RawMessage {
	kind := "image"
	switch {
	case m.mime == pdfType:
		kind = "document"
	case !m.isImage():
		return nil
	}
	return object("type", kind, "source", object("type", "base64", "media_type", m.mime, "data", m.data))
}

func inlineData(m *medium) json.RawMessage {
	if m.mime == pdfType || m.isImage() && m.mime != "image/gif" {
		return object("inlineData", object("mimeType", m.mime, "data", m.data))
	}
	return nil
}

func converseMedium(m *medium) json.RawMessage {
	source := object("bytes", m.data)
	switch {
	case m.isImage():
		return object("image", object("format", strings.TrimPrefix(m.mime, "image/"), "source", source))
	case m.mime == pdfType:
		sum := sha256.Sum256([]byte(m.data)) // a name of the server could say something to the model
		return object("document", object("format", "pdf", "name", fmt.Sprintf("file-%x", sum[:4]), "source", source))
	}
	return nil
}

const pdfType = "application/pdf"

// isImage reports whether m is one of the images that providers take.
func (m *medium) isImage() bool {
	switch m.mime {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return true
	}
	return false
}

func (m *medium) url() string { return "data:" + m.mime + ";base64," + m.data }

// file returns the name of a PDF.
func (m *medium) file() string {
	name := strings.TrimSuffix(text.Line(m.name, text.MaxName), ".pdf")
	if strings.Trim(name, "./") == "" {
		name = "file"
	}
	return name + ".pdf"
}

// references returns blocks that load deferred tools, or nil if the provider takes none.
func (f resultForm) references(names []string) []json.RawMessage {
	if f.refers == "" {
		return nil
	}
	blocks := make([]json.RawMessage, len(names))
	for i, name := range names {
		blocks[i] = object("type", "tool_reference", f.refers, name)
	}
	return blocks
}
