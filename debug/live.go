package debug

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is how many pages are kept up to date at once. The others stay as
	// they were loaded.
	maxStreams = 32

	// liveEvery is the least time between two looks. A look takes at most 1/liveShare
	// of the time.
	liveEvery = time.Second
	liveShare = 20

	// liveIdle is after how long without a change something is sent all the same, so
	// that a reader who has gone is noticed. One who does not read what is sent is
	// gone after as long.
	liveIdle = 15 * time.Second
)

// live sends the page whenever it has changed, as server-sent events, until the reader
// goes or the Manager is closed.
func (h handler) live(w http.ResponseWriter, r *http.Request) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		http.Error(w, fmt.Sprintf("mcphybrid: %d pages are live already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies
	var was []byte
	sent := time.Now()
	for {
		begun := time.Now()
		_, p := h.answer(r)
		body, err := p.render()
		if err != nil {
			return
		}
		now := bytes.ReplaceAll(body, []byte(string(p.Now())), nil)
		var event bytes.Buffer
		switch {
		case !bytes.Equal(was, now):
			for line := range bytes.Lines(body) {
				fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\r\n"))
			}
			event.WriteByte('\n')
		case time.Since(sent) >= liveIdle:
			event.WriteString(":\n\n")
		}
		if event.Len() > 0 {
			sent = time.Now()
			_ = out.SetWriteDeadline(sent.Add(liveIdle)) // fails where there are no deadlines
			if _, err = w.Write(event.Bytes()); err == nil {
				err = out.Flush()
			}
			_ = out.SetWriteDeadline(time.Time{}) // at a deadline, a stream of HTTP/2 ends even if nothing is written
		}
		if was = now; err != nil || p.Closed {
			return
		}
		select {
		case <-time.After(max(liveEvery, liveShare*time.Since(begun))):
		case <-r.Context().Done():
			return
		}
	}
}
