package upstream

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxFirstWords is how many bytes are kept of what a child says before its first message.
const maxFirstWords = 150

// A firstWords reads what a child writes to its standard output, where messages go, and knows
// what it said first. A child that says something else there may be a server that speaks over
// HTTP, or no server.
type firstWords struct {
	io.Reader
	spoke chan struct{} // closed with the first word

	mu   sync.Mutex
	kept []byte // the first words, before the first message: one more byte if there are more
	over bool   // it has sent a message
}

func (f *firstWords) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.isSilent() {
		close(f.spoke)
	}
	if !f.over {
		f.kept = append(f.kept, b[:min(n, maxFirstWords+1-len(f.kept))]...)
	}
	return n, err
}

// isSilent reports whether the child has said nothing yet.
func (f *firstWords) isSilent() bool {
	select {
	case <-f.spoke:
		return false
	default:
		return true
	}
}

// areOver notes that the child has sent a message.
func (f *firstWords) areOver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over, f.kept = true, nil
}

// explain returns err, which ended the attempt to connect, with what the child said in place of
// messages. What it wrote to its standard error tells more.
func (f *firstWords) explain(err error, hide *secrets) error {
	f.mu.Lock()
	said := string(f.kept)
	f.mu.Unlock()
	if len(said) > maxFirstWords {
		said = said[:maxFirstWords] + "…"
	}
	said = text.Line(hide.text(said), maxFirstWords)
	if said == "" || strings.Contains(err.Error(), lastWords) {
		return err
	}
	return fmt.Errorf("%w: %q (%w)", cause.ErrOutput, said, err)
}
