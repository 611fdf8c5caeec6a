package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	png  = "\x89PNG\r\n\x1a\n"
	gif  = "GIF89a"
	pdf  = "%PDF-1.7\n"
	wave = "RIFF\x00\x00\x00\x00WAVE"
)

func encoded(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

func blob(uri, mime, data string) mcp.Content {
	return mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: uri, MIMEType: mime, Blob: data})
}

// What a medium is, its bytes say.
func TestMediaAreWhatTheyAre(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		content mcp.Content
		want    part
	}{
		{"as it says", mcp.NewImageContent(encoded(png), "image/png"), part{medium: &medium{"image", "image/png", encoded(png), 8, "."}}},
		{"another image", mcp.NewImageContent(encoded(gif), "image/png"), part{medium: &medium{"image", "image/gif", encoded(gif), 6, "."}}},
		{"no image", mcp.NewImageContent(encoded("\x00\x01"), "image/png"), part{medium: &medium{"image", "application/octet-stream", encoded("\x00\x01"), 2, "."}}},
		{"an unknown image", mcp.NewImageContent(encoded("II*\x00"), "IMAGE/TIFF; x=1"), part{medium: &medium{"image", "image/tiff", encoded("II*\x00"), 4, "."}}},
		{"not in base64", mcp.NewImageContent("no, not", "image/png"), part{medium: &medium{"image", "image/png", "", 7, ""}}},
		{"empty", mcp.NewImageContent("", "image/png"), part{medium: &medium{kind: "image", mime: "image/png"}}},
		{"with line breaks", mcp.NewImageContent("R0lG\r\nODlh", "image/gif"), part{medium: &medium{"image", "image/gif", "R0lGODlh", 6, "."}}},
		{"without padding", mcp.NewImageContent(strings.TrimRight(encoded(png), "="), "image/png"), part{medium: &medium{"image", "image/png", encoded(png), 8, "."}}},
		{"a drawing", mcp.NewImageContent(encoded("<svg/>"), "image/svg+xml"), part{text: "<svg/>"}},
		{"a sound", mcp.NewAudioContent(encoded(wave), "audio/x-wav"), part{medium: &medium{"audio", "audio/wav", encoded(wave), 12, "."}}},
		{"a sound without a head", mcp.NewAudioContent(encoded("\xff\xfb\x90"), "audio/mp3"), part{medium: &medium{"audio", "audio/mpeg", encoded("\xff\xfb\x90"), 3, "."}}},
		{"a file", blob("file:///a/b%20c.pdf", "", encoded(pdf)), part{medium: &medium{"file", "application/pdf", encoded(pdf), 9, "b%20c.pdf"}}},
		{"an image as a resource", blob("x:y", "image/png", encoded(png)), part{medium: &medium{"image", "image/png", encoded(png), 8, "x:y"}}},
		{"a text as a file", blob("file:///a.json", "application/json", encoded(`{"a":"ä"}`)), part{text: "[resource file:///a.json]\n" + `{"a":"ä"}`}},
		{"not UTF-8", blob("u", "text/plain", encoded("a\xff")), part{medium: &medium{"file", "text/plain", encoded("a\xff"), 2, "u"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, partOf(test.content))
		})
	}
}

// Structured content is said once.
func TestStructuredContentIsSaidOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, structured string
		texts            []string
		said             bool
	}{
		{"alone", `{"a":1}`, nil, false},
		{"the same JSON", `{"a":1,"b":[2]}`, []string{"found:", `{ "b": [2], "a": 1 }`}, true},
		{"other JSON", `{"a":1}`, []string{`{"a":2}`}, false},
		{"only its value", `{"content":"Line 1\nline 2"}`, []string{"Line 1\nline 2"}, true},
		{"its value in two texts", `{"content":"Line 1\nline 2"}`, []string{"Line 1", "line 2"}, true},
		{"a number", `{"result":5}`, []string{"5"}, true},
		{"each element", `{"result":[{"a":1},"b"]}`, []string{`{"a":1}`, "b"}, true},
		{"one element is missing", `{"result":[{"a":1},"c"]}`, []string{`{"a":1}`, "b"}, false},
		{"nothing in it", `{"result":[]}`, []string{"none"}, false},
		{"null", `null`, nil, true},
		{"deep", `{"a":{"b":{"c":{"d":"x"}}}}`, []string{"x"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &mcp.CallToolResult{RawStructuredContent: json.RawMessage(test.structured)}
			for _, s := range test.texts {
				r.Content = append(r.Content, mcp.NewTextContent(s))
			}
			out, err := ExportResult(r, Anthropic)
			require.NoError(t, err)
			assert.Equal(t, !test.said, strings.Contains(string(out.JSON), string(text.Quote(test.structured))), "%s", out.JSON)
			assert.Nil(t, out.Losses)
		})
	}
	decoded, err := ExportResult(&mcp.CallToolResult{StructuredContent: map[string]any{"b": 1, "a": "<"}}, OpenAIChat)
	require.NoError(t, err)
	assert.Equal(t, `{"a":"\u003c","b":1}`, decoded.Text)
}

func TestResultErrors(t *testing.T) {
	t.Parallel()
	_, err := ExportResult(nil, MCP)
	assert.EqualError(t, err, "mcphybrid: there is no result to export")
	_, err = ExportResult(mcp.NewToolResultText("a"), "yaml")
	assert.EqualError(t, err, `mcphybrid: there is no format "yaml"`)
	bad := &mcp.CallToolResult{StructuredContent: badJSON{}, Content: []mcp.Content{mcp.NewTextContent("a"), mcp.ToolUseContent{Input: badJSON{}}}}
	_, err = ExportResult(bad, MCP)
	assert.ErrorContains(t, err, "mcphybrid: the result is not JSON: ")
	out, err := ExportResult(bad, Gemini)
	require.NoError(t, err)
	assert.Equal(t, []string{"content 1: content, 0 bytes, left out", "structured content: content, 0 bytes, left out"}, out.Losses)
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestManyLosses(t *testing.T) {
	t.Parallel()
	r := new(mcp.CallToolResult)
	for range maxLosses + 5 {
		r.Content = append(r.Content, mcp.NewAudioContent(encoded(wave), "audio/wav"))
	}
	out, err := ExportResult(r, Anthropic)
	require.NoError(t, err)
	require.Len(t, out.Losses, maxLosses+1)
	assert.Equal(t, "content 0: audio (audio/wav), 12 bytes, left out", out.Losses[0])
	assert.Equal(t, "and 5 more", out.Losses[maxLosses])
}

func TestToolReferences(t *testing.T) {
	t.Parallel()
	for f, name := range map[Format]string{Anthropic: "tool_name", OpenAIChat: "name"} {
		assert.Empty(t, ToolReferences(f, nil))
		assert.Equal(t, []json.RawMessage{
			json.RawMessage(`{"type":"tool_reference","` + name + `":"b"}`), json.RawMessage(`{"type":"tool_reference","` + name + `":"a\"<"}`),
		}, ToolReferences(f, []string{"b", `a"<`}))
	}
	for _, f := range []Format{MCP, OpenAIResponses, Gemini, "none"} {
		assert.Nil(t, ToolReferences(f, []string{"b"}))
	}
}

// Whatever a server sends, each provider gets JSON with a text, and what it lacks is
// told.
func FuzzResult(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"R0lGODlh","mimeType":"image/gif"},{"type":"audio","data":"/w==","mimeType":"audio/mpeg"}],"isError":true}`)
	f.Add(`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","blob":"YQ=="}},{"type":"resource_link","uri":"x","name":"\ud800"}],"structuredContent":{"a":[1.0]}}`)
	f.Add(`{"content":[{"type":"text","text":" "},{"type":"resource","resource":{"uri":"\u0000","text":"error"}}],"_meta":{"mcphybrid/found":["a"]}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		var r mcp.CallToolResult
		if json.Unmarshal([]byte(raw), &r) != nil {
			return
		}
		for _, format := range []Format{MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
			out, err := ExportResult(&r, format)
			require.NoError(t, err)
			require.True(t, json.Valid(out.JSON), "%s", out.JSON)
			require.NotEmpty(t, strings.TrimSpace(out.Text))
			require.Equal(t, r.IsError, out.IsError)
			for _, part := range out.Media {
				require.True(t, json.Valid(part), "%s", part)
			}
			again, err := ExportResult(&r, format)
			require.NoError(t, err)
			require.Equal(t, out, again)
		}
	})
}
