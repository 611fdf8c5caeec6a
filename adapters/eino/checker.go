package eino

import (
	"context"
	"errors"
	"io"

	"github.com/cloudwego/eino/schema"
)

// HasCall reports whether a streamed answer has a call. It is for
// react.AgentConfig.StreamToolCallChecker: the default looks at the first piece only, and so
// takes an answer that says something before it calls for the last one.
func HasCall(_ context.Context, answer *schema.StreamReader[*schema.Message]) (bool, error) {
	defer answer.Close()
	for {
		m, err := answer.Recv()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if len(m.ToolCalls) > 0 {
			return true, nil
		}
	}
}
