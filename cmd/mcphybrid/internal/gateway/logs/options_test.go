package logs

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The flags have defaults, and the form is one of two.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args             []string
		calls, arguments bool
		says             string
	}{
		{nil, true, false, "level=INFO msg=hello a=1\n"},
		{[]string{"-log-format", "text", "-log-arguments"}, true, true, "level=INFO msg=hello a=1\n"},
		{[]string{"-log-format", "json", "-log-calls=false"}, false, false, `"level":"INFO","msg":"hello","a":1}` + "\n"},
	} {
		var o Options
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		o.AddFlags(flags)
		require.NoError(t, flags.Parse(test.args))
		assert.Equal(t, [2]bool{test.calls, test.arguments}, [2]bool{o.Calls, o.Arguments}, test.args)
		book := new(mcptest.Log)
		log, lines, err := o.Open(book)
		require.NoError(t, err)
		log.Info("hello", "a", 1)
		lines.Flush(time.Minute)
		assert.True(t, strings.HasSuffix(book.String(), test.says), book.String())
	}
	log, lines, err := (&Options{format: "xml"}).Open(new(mcptest.Log))
	assert.EqualError(t, err, `-log-format "xml": must be text or json`)
	assert.Nil(t, log)
	assert.Nil(t, lines)
}

// Words of servers in a log do nothing to the terminal that shows it, in either form.
func TestLogOnATerminal(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"text": `error="\u009b2J\u202e\x7f"`, "json": `"error":"\u009b2J\u202e\u007f"`} {
		var b strings.Builder
		log, err := (&Options{format: format}).logger(&b)
		require.NoError(t, err)
		log.Info("hello", "error", "\u009b2J\u202e\x7f")
		assert.Contains(t, b.String(), want)
	}
}
