package result

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// What stands in a result for a provider, beside what the tool said.
const (
	FailedPrefix = "Error: " // before a result, where nothing else says that the call failed
	Empty        = "[The tool returned nothing.]"
)

// maxURI is how many characters of a resource's URI the model gets.
const maxURI = 2_000

// ResourceText returns the text of a resource behind its URI, or alone if it has none.
func ResourceText(uri, content string) string {
	if uri = text.Line(uri, maxURI); uri == "" || content == "" {
		return content
	}
	return "[resource " + uri + "]\n" + content
}

// MediumName names an image, a sound or a file that the model gets beside the text, by its
// number in the result.
func MediumName(kind string, number int, mime string) string {
	return fmt.Sprintf("[%s %d: %s]", kind, number, mime)
}

// Describe says what a content is that has no text. mime may be "".
func Describe(kind, mime string, size int) string {
	if mime = text.Line(mime, text.MaxName); mime != "" {
		kind += " (" + mime + ")"
	}
	return fmt.Sprintf("%s, %d bytes", kind, size)
}

// NotTaken stands in place of a content that the model's provider does not take.
func NotTaken(what string) string {
	return "[… left out here, because it can't be passed on: " + what + " …]"
}
