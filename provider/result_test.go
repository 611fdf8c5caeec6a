package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
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
	for range 100 + 5 {
		r.Content = append(r.Content, mcp.NewAudioContent(encoded(wave), "audio/wav"))
	}
	out, err := ExportResult(r, Anthropic)
	require.NoError(t, err)
	require.Len(t, out.Losses, 100+1)
	assert.Equal(t, "content 0: audio (audio/wav), 12 bytes, left out", out.Losses[0])
	assert.Equal(t, "and 5 more", out.Losses[100])
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

// What each provider takes of each medium. What it does not take is left out, and told.
func TestMediaOfEachProvider(t *testing.T) {
	t.Parallel()
	const lost = "LOST"
	image, sound, mp3 := mcp.NewImageContent(encoded(png), "image/png"), mcp.NewAudioContent(encoded(wave), "audio/wav"), mcp.NewAudioContent(encoded("ID3\x03"), "audio/mpeg")
	contents := []mcp.Content{image, mcp.NewImageContent(encoded(gif), "image/gif"), blob("file:///a/b.pdf", "", encoded(pdf)), sound, mp3}
	for format, want := range map[Format][]string{
		OpenAIChat: {`{"type":"image_url","image_url":{"url":"data:image/png;base64,PNG"}}`, `{"type":"image_url","image_url":{"url":"data:image/gif;base64,GIF"}}`,
			`{"type":"file","file":{"filename":"b.pdf","file_data":"data:application/pdf;base64,PDF"}}`, `{"type":"input_audio","input_audio":{"data":"WAVE","format":"wav"}}`,
			`{"type":"input_audio","input_audio":{"data":"SUQzAw==","format":"mp3"}}`},
		OpenAIResponses: {`{"type":"input_image","image_url":"data:image/png;base64,PNG"}`, `{"type":"input_image","image_url":"data:image/gif;base64,GIF"}`,
			`{"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,PDF"}`, lost, lost},
		Anthropic: {`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PNG"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"GIF"}}`,
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"PDF"}}`, lost, lost},
		Gemini: {`{"inlineData":{"mimeType":"image/png","data":"PNG"}}`, lost, `{"inlineData":{"mimeType":"application/pdf","data":"PDF"}}`, lost, lost},
		Bedrock: {`{"image":{"format":"png","source":{"bytes":"PNG"}}}`, `{"image":{"format":"gif","source":{"bytes":"GIF"}}}`,
			`{"document":{"format":"pdf","name":"file-NAME","source":{"bytes":"PDF"}}}`, lost, lost},
	} {
		for i, c := range contents {
			out, err := ExportResult(&mcp.CallToolResult{Content: []mcp.Content{c}}, format)
			require.NoError(t, err)
			sum := sha256.Sum256([]byte(encoded(pdf)))
			medium := strings.NewReplacer("PNG", encoded(png), "GIF", encoded(gif), "PDF", encoded(pdf), "WAVE", encoded(wave), "NAME", hex.EncodeToString(sum[:4])).Replace(want[i])
			got := string(out.JSON) + string(text.JoinElements(out.Media))
			if want[i] == lost {
				require.Len(t, out.Losses, 1, "%s %d", format, i)
				assert.True(t, strings.HasPrefix(out.Losses[0], "content 0: ") && strings.HasSuffix(out.Losses[0], ", left out"), out.Losses[0])
				continue
			}
			assert.Contains(t, got, medium, "%s %d", format, i)
			assert.Empty(t, out.Losses)
		}
	}
}

// The name of a PDF is one that says nothing, if the server gives none.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a": "a.pdf", "a.pdf": "a.pdf", "": "file.pdf", ".": "file.pdf", "..": "file.pdf", "/": "file.pdf", ".pdf": "file.pdf", "a\nb.pdf": "a b.pdf", "a.b": "a.b.pdf"} {
		assert.Equal(t, want, (&medium{name: name}).file(), "%q", name)
	}
}

// A model that gets no mark for an error is told by the text, once.
func TestFailedResults(t *testing.T) {
	t.Parallel()
	failed := func(contents ...mcp.Content) *mcp.CallToolResult {
		return &mcp.CallToolResult{IsError: true, Content: contents}
	}
	for _, test := range []struct {
		r    *mcp.CallToolResult
		want string
	}{
		{failed(mcp.NewTextContent("no disk"), mcp.NewTextContent("b")), result.FailedPrefix + "no disk\nb"},
		{failed(mcp.NewTextContent("ERROR 5")), "ERROR 5"},
		{failed(mcp.NewTextContent("no error")), result.FailedPrefix + "no error"},
		{failed(), result.FailedPrefix + result.Empty},
	} {
		out, err := ExportResult(test.r, OpenAIChat)
		require.NoError(t, err)
		assert.Equal(t, test.want, out.Text)
		assert.Equal(t, string(text.Quote(test.want)), string(out.JSON))
		assert.True(t, out.IsError)
	}
	out, err := ExportResult(failed(mcp.NewImageContent(encoded(png), "image/png")), OpenAIResponses)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out.Text, strings.TrimSpace(result.FailedPrefix)+"\n"), out.Text)
	assert.Contains(t, string(out.JSON), "input_image")
	for format, want := range map[Format]string{Anthropic: `[{"type":"text","text":"no disk"}]`, Gemini: `{"response":{"error":"no disk"}}`, Bedrock: `[{"text":"no disk"}]`} {
		out, err := ExportResult(failed(mcp.NewTextContent("no disk")), format)
		require.NoError(t, err)
		assert.Equal(t, want, string(out.JSON), format)
		assert.Equal(t, result.FailedPrefix+"no disk", out.Text, format)
	}
	out, err = ExportResult(&mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("fine"), mcp.NewImageContent(encoded(png), "image/png")}}, Gemini)
	require.NoError(t, err)
	assert.Contains(t, string(out.JSON), `{"response":{"output":"fine\n`)
	assert.Contains(t, string(out.JSON), `"parts":[{"inlineData"`)
}

// White space is no text, and is told as lost; an empty text is nothing.
func TestTextsWithoutWords(t *testing.T) {
	t.Parallel()
	out, err := ExportResult(&mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(" \n"), mcp.NewTextContent(""), nil, mcp.NewTextContent("a\xff")}}, Anthropic)
	require.NoError(t, err)
	assert.Equal(t, []string{"content 0: white space, left out"}, out.Losses)
	assert.Equal(t, "a\ufffd", out.Text)
}

// A link is said as MCP has it, without what the server leaves out.
func TestLinksAreSaid(t *testing.T) {
	t.Parallel()
	size := int64(5)
	link := mcp.NewResourceLink("mem://a", "n", "d", "text/plain")
	assert.Equal(t, `{"type":"resource_link","uri":"mem://a","name":"n","description":"d","mimeType":"text/plain"}`, partOf(link).text)
	link = mcp.NewResourceLink("mem://a", "", "", "")
	link.Title, link.Size = "t", &size
	assert.Equal(t, `{"type":"resource_link","uri":"mem://a","title":"t","size":5}`, partOf(link).text)
}

// Structured content that is no JSON, such as a host's middleware makes, is left out.
func TestStructuredContentThatIsNone(t *testing.T) {
	for raw, want := range map[string][]part{"{": nil, "null": nil, `{"a": 1}`: {{at: "structured content", text: `{"a":1}`}}} {
		assert.Equal(t, want, said(nil, &mcp.CallToolResult{RawStructuredContent: json.RawMessage(raw)}), raw)
	}
}
