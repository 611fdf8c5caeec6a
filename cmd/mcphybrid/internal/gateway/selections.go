package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/jq"
)

// A selections is jq for the models of all clients. One selection runs at a time, because one
// alone may take some 120 MB and two seconds.
type selections struct {
	jq.Selector
	turn chan struct{} // holds a value while a selection runs
}

func newSelections() *selections { return &selections{turn: make(chan struct{}, 1)} }

const (
	// selectWait is how long a client waits for the selections of others.
	selectWait = 5 * time.Second

	// shapeWait is how long a long result waits before it is told without its shape.
	shapeWait = 200 * time.Millisecond
)

var errBusy = errors.New("selections of others are running: try again later, or read by offset")

func (s *selections) Select(ctx context.Context, expression, text string) (string, error) {
	if !s.begin(ctx, selectWait) {
		return "", errBusy
	}
	defer s.end()
	return s.Selector.Select(ctx, expression, text)
}

func (s *selections) Shape(text string) string {
	if !s.begin(context.Background(), shapeWait) {
		return ""
	}
	defer s.end()
	return s.Selector.Shape(text)
}

// begin reports whether it is the caller's turn, within that time. If so, end must follow.
func (s *selections) begin(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *selections) end() { <-s.turn }
