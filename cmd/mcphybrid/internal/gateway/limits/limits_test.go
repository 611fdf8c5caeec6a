package limits

import (
	"flag"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limits that nobody set are those of the flags, and others stay.
func TestDefaults(t *testing.T) {
	t.Parallel()
	var byFlags Limits
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	byFlags.AddFlags(flags)
	require.NoError(t, flags.Parse(nil))
	assert.Equal(t, byFlags, Limits{}.WithDefaults())
	assert.Equal(t, Limits{
		Connections: 1000, Sessions: 1000, Idle: 12 * time.Hour, Message: 16 << 20, Messages: 16 << 20, Values: 250_000,
		Results: 64 << 20, Read: 30 * time.Second, Write: time.Minute,
	}, byFlags)
	assert.NoError(t, byFlags.Check())
	require.NoError(t, flags.Parse(strings.Fields("-max-connections 1 -max-sessions 2 -session-idle 3s -max-message 4 -max-messages 5 -max-values 6 -max-results 7 -read-timeout 8s -write-timeout 9s")))
	want := Limits{Connections: 1, Sessions: 2, Idle: 3 * time.Second, Message: 4, Messages: 5, Values: 6, Results: 7, Read: 8 * time.Second, Write: 9 * time.Second}
	assert.Equal(t, want, byFlags)
	assert.Equal(t, want, want.WithDefaults())
}

// Each limit must be positive, and all messages have room for one.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := Limits{Connections: 1, Sessions: 1, Idle: 1, Message: 1, Messages: 1, Values: 1, Results: 1, Read: 1, Write: 1}
	assert.NoError(t, good.Check())
	for name, change := range map[string]func(*Limits, int){
		"max-connections": func(l *Limits, n int) { l.Connections = n }, "max-sessions": func(l *Limits, n int) { l.Sessions = n }, "max-message": func(l *Limits, n int) { l.Message = n },
		"max-values": func(l *Limits, n int) { l.Values = n }, "max-results": func(l *Limits, n int) { l.Results = n }, "session-idle": func(l *Limits, n int) { l.Idle = time.Duration(n) },
		"read-timeout": func(l *Limits, n int) { l.Read = time.Duration(n) }, "write-timeout": func(l *Limits, n int) { l.Write = time.Duration(n) },
	} {
		for _, n := range []int{0, -1} {
			l := good
			change(&l, n)
			assert.EqualError(t, l.Check(), "-"+name+" must be positive")
		}
	}
	l := good
	l.Message = 2
	assert.EqualError(t, l.Check(), "-max-messages 1 is less than -max-message 2: such a message could never be read")
	l.Messages = 2
	assert.NoError(t, l.Check())
}

// Values are counted outside of texts, up to the limit.
func TestCheckValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`5`: 0, `{}`: 1, `{"a":1}`: 2, `{"a":1,"b":[2,3]}`: 6, `"[{,:"`: 0, `["\"[","\\",","]`: 3, `"\`: 0,
	} {
		got, err := Limits{Values: 10}.CheckValues([]byte(text))
		assert.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for n, ok := range map[int]bool{3: true, 4: false} {
		got, err := Limits{Values: 3}.CheckValues([]byte(strings.Repeat("[", n)))
		assert.Equal(t, n, got)
		if ok {
			assert.NoError(t, err)
			continue
		}
		bad := new(Error)
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, http.StatusRequestEntityTooLarge, bad.Status)
		assert.EqualError(t, err, "the message has more than 3 values: see -max-values")
	}
}
