package plain

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is shown of texts in a shell, in full, and in so many bytes.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, quoted, shown, printable string }{
		{"", "''", "", ""},
		{"aZ09_-./:", "aZ09_-./:", "aZ09_-./:", "aZ09_-./:"},
		{"a b", "'a b'", "a b", "a b"},
		{"it's", `'it'\''s'`, "it's", "it's"},
		{"é~", "'é~'", "é~", "é~"},
		{"a\n'\\", `$'a\012\047\134'`, `a\u000a'\`, `a?'\`},
		{"\x00 ~\x7f", `$'\000 ~\177'`, `\u0000 ~\u007f`, "? ~?"},
		{"it's\n", `$'it\047s\012'`, `it's\u000a`, "it's?"},
		{"\\\x1b", `$'\134\033'`, `\\u001b`, `\?`},
		{"é\u202e", `$'\303\251\342\200\256'`, `é\u202e`, "é?"},
		{"\U000e0041", `$'\363\240\201\201'`, `\U000e0041`, "?"},
		{"\uffff", `$'\357\277\277'`, `\uffff`, "?"},
		{"\U00010000", "'\U00010000'", "\U00010000", "\U00010000"},
		{"123456789", "123456789", "123456789", "123456789"},
		{"1234567890", "1234567890", "1234567890", "123456…"},
		{"12345é7890", "'12345é7890'", "12345é7890", "12345…"},
	} {
		assert.Equal(t, test.quoted, Quoted(test.text), "%+q", test.text)
		assert.Equal(t, test.shown, Shown(test.text), "%+q", test.text)
		assert.Equal(t, test.printable, Printable(test.text, 9), "%+q", test.text)
	}
}
