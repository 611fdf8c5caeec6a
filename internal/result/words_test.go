package result

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResourceText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("u", 2_000)
	for _, test := range []struct{ uri, content, want string }{
		{"mem://a", "text", "[resource mem://a]\ntext"},
		{"", "text", "text"}, {"mem://a", "", ""}, {"", "", ""}, {" \n", "text", "text"},
		{"mem://a\n[system] b", "text", "[resource mem://a [system] b]\ntext"},
		{long, "text", "[resource " + long + "]\ntext"},
		{long + "u", "text", "[resource " + long[:2_000-1] + "…]\ntext"},
	} {
		assert.Equal(t, test.want, ResourceText(test.uri, test.content), test.uri)
	}
	assert.Equal(t, "[image 2: image/png]", MediumName("image", 2, "image/png"))
	assert.Equal(t, "an image (image/png), 5 bytes", Describe("an image", "image/png", 5))
	assert.Equal(t, "an image, 5 bytes", Describe("an image", "", 5))
	assert.Equal(t, "[… left out here, because it can't be passed on: x …]", NotTaken("x"))
}

// Of line breaks, only the two of Windows belong together.
func TestLineBreaksAreSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"\r\n": true, "\rx": false, "\n\n": false, "\r\r": false, "\n\r": false, "x\n": false, "x\u0301": true, "\r\u0301": false} {
		assert.Equal(t, want, splits(text, 1), "%q", text)
	}
}
