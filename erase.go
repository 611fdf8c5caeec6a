package mcphybrid

import (
	"github.com/mcphybrid/mcphybrid/internal/erase"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A SafeText is a text for people that a server may have written. Its methods hide
// the secrets of all configurations and drop characters that are invisible or
// change how others look. The text may still hold anything else, such as HTML or
// lies.
type SafeText struct {
	text   string
	eraser *erase.Eraser
}

// Line returns the text as one line of at most limit characters. A longer one ends
// in an ellipsis.
func (t SafeText) Line(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Line(t.text, limit)
}

// String returns the text as one line of at most 2,000 characters.
func (t SafeText) String() string { return t.Line(text.MaxError) }

// Lines returns the text with its line breaks and the spaces at the beginning of
// each line. It is cut to about limit characters and to 400 lines.
func (t SafeText) Lines(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Lines(t.text, limit)
}

// eraser returns an eraser for the secrets of all servers: one server may repeat
// the secrets of another.
func (m *Manager) eraser() *erase.Eraser { return erase.New(m.secretValues()) }

// secretValues returns the secrets of all servers. A user's Manager includes those
// of its system, whose tools the user sees.
func (m *Manager) secretValues() (values []string) {
	if m.system != nil {
		values = m.system.secretValues()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, src := range m.sources {
		if src.server != nil {
			values = append(values, src.server.Secrets()...)
		}
	}
	return values
}
