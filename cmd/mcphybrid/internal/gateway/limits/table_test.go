package limits

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each limit has a flag of its own, must be positive, and its default otherwise.
func TestEachLimit(t *testing.T) {
	t.Parallel()
	names := []string{"max-connections", "max-sessions", "session-idle", "max-message", "max-messages", "max-values", "max-results", "read-timeout", "write-timeout"}
	parse := func(args ...string) (l Limits) {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		l.AddFlags(flags)
		require.NoError(t, flags.Parse(args))
		return l
	}
	usual := parse()
	assert.NoError(t, usual.Check())
	assert.Equal(t, usual, Limits{}.WithDefaults())
	assert.Equal(t, Limits{Connections: usual.Connections, Sessions: 1000, Idle: 12 * time.Hour, Message: 16 << 20, Messages: 16 << 20, Values: 250_000, Results: 64 << 20, Read: 30 * time.Second, Write: time.Minute}, usual)
	assert.Equal(t, min(1000, descriptors()/2), usual.Connections)
	list := func(l Limits) []any {
		return []any{l.Connections, l.Sessions, l.Idle, l.Message, l.Messages, l.Values, l.Results, l.Read, l.Write}
	}
	for i, name := range names {
		value := func(n int) string {
			if strings.HasPrefix(name, "max-") {
				return fmt.Sprint(n)
			}
			return fmt.Sprint(n, "ns")
		}
		given := parse("-"+name, value(20<<20))
		want := list(usual)
		if strings.HasPrefix(name, "max-") {
			want[i] = 20 << 20
		} else {
			want[i] = time.Duration(20 << 20)
		}
		assert.Equal(t, want, list(given), name)
		assert.Equal(t, given, given.WithDefaults(), name)
		switch name {
		case "max-message":
			assert.EqualError(t, given.Check(), "-max-messages 16777216 is less than -max-message 20971520: such a message could never be read")
			continue
		case "max-messages":
			assert.Error(t, parse("-max-messages", "16777215").Check())
			assert.NoError(t, parse("-max-messages", "16777216").Check())
			continue
		}
		assert.NoError(t, given.Check(), name)
		assert.NoError(t, parse("-"+name, value(1)).Check(), name)
		for _, n := range []int{0, -1} {
			assert.EqualError(t, parse("-"+name, value(n)).Check(), "-"+name+" must be positive")
		}
	}
}
