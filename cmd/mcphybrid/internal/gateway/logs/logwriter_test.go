package logs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// blockedWriter takes nothing until it is opened.
type blockedWriter struct {
	opened chan struct{}
	book   mcptest.Log
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	<-w.opened
	return w.book.Write(p)
}

// Nobody waits for who does not read the log, and what is kept for them has a limit.
func TestLogWaitsForNobody(t *testing.T) {
	t.Parallel()
	w := &blockedWriter{opened: make(chan struct{})}
	log, l, err := (&Options{format: "json"}).Open(w)
	require.NoError(t, err)
	for i := range 3 * 1000 {
		log.Info("line", "number", i)
	}
	l.Flush(time.Millisecond)
	close(w.opened)
	l.Flush(time.Minute)
	lines := strings.Split(strings.TrimSpace(w.book.String()), "\n")
	last := len(lines) - 1
	assert.LessOrEqual(t, last, 1000+1, "one of them was being written")
	var first, dropped struct {
		Level         string
		Msg           string
		Number, Lines int
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	assert.Zero(t, first.Number)
	require.NoError(t, json.Unmarshal([]byte(lines[last]), &dropped), "in the form of all others")
	assert.Equal(t, "WARN", dropped.Level)
	assert.Equal(t, "lines of the log were dropped: nobody read them", dropped.Msg)
	assert.Equal(t, 3*1000-last, dropped.Lines)
}
