package mcphybrid

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A ResultSelector takes parts of the texts of results by expressions: see package jq. Its
// methods may be called concurrently.
type ResultSelector interface {
	// Select returns what an expression selects in a text, or "" for nothing. The error is
	// for the model: it says in a line what is wrong with the expression or the text.
	Select(ctx context.Context, expression, text string) (selected string, err error)

	// Shape describes in a line what a text consists of, or returns "" for one from which
	// nothing can be selected.
	Shape(text string) string

	// Check returns what is wrong with an expression, whatever the text, or nil. It is
	// asked of those in a [ServerConfig].
	Check(expression string) error
}

// checkSelections returns what is wrong with the ResultSelect of a server, or nil.
func (o *Options) checkSelections(cfg *ServerConfig) error {
	for _, tool := range slices.Sorted(maps.Keys(cfg.ResultSelect)) {
		if o.Select == nil {
			return fmt.Errorf("its ResultSelect for %q needs Options.Select", tool)
		}
		if err := hostcode.Try("Options.Select", func() error { return o.Select.Check(cfg.ResultSelect[tool]) }); err != nil {
			return fmt.Errorf("its ResultSelect for %q: %s", tool, text.Line(err.Error(), maxErrorLength))
		}
	}
	return nil
}

// shapeOf describes a text from which the model may select, or returns "", also when ctx ends.
func (s *Session) shapeOf(ctx context.Context, text string) string {
	selector := s.tenant.opts.Select
	if selector == nil {
		return ""
	}
	shape, _ := hostcode.Detached(ctx, "Options.Select", func() (string, error) { return selector.Shape(text), nil })
	return shape
}

// selectFrom answers with what an expression selects in the text of a result.
func (s *Session) selectFrom(ctx context.Context, id, expression, text string) *mcp.CallToolResult {
	selector := s.tenant.opts.Select
	selected, err := hostcode.Detached(ctx, "Options.Select", func() (string, error) { return selector.Select(ctx, expression, text) })
	if err != nil {
		return mcp.NewToolResultError(textNotSelected(id, err, s.shapeOf(ctx, text)))
	}
	if selected == "" {
		return mcp.NewToolResultText(textNothingSelected(id, s.shapeOf(ctx, text)))
	}
	part, next := result.Page(selected, 0, s.tenant.opts.MaxResult)
	if next < len(selected) {
		part += textSelectLess(next, len(selected))
	}
	return mcp.NewToolResultText(part)
}

// textShape follows a result that was cut and from which parts can be selected.
func textShape(id, shape string) string {
	return fmt.Sprintf("[Result %s is JSON: %s. To get a part of it, call %s with {\"id\": %q, \"select\": \"a jq expression\"}]", id, shape, PageToolName, id)
}

// textSelected follows the part of a result that the host selects; the whole has so many bytes.
func textSelected(id string, total int) string {
	return fmt.Sprintf("[This is a part of result %s. To read all %d bytes of it, call %s with {\"id\": %q}]", id, total, PageToolName, id)
}

// textSelectedFirst follows the first bytes of such a part.
func textSelectedFirst(shown, total int) string {
	return fmt.Sprintf("[… the first %d of %d bytes of what is selected …]", shown, total)
}

// textSelectionFailed follows a result from which nothing could be selected; err may be nil.
func textSelectionFailed(err error) string {
	if err == nil {
		return "[Nothing was selected in this result, so all of it was taken.]"
	}
	return fmt.Sprintf("[Nothing was selected in this result, so all of it was taken: %s.]", text.Line(err.Error(), maxErrorLength))
}

// textNothingSelected answers an expression that selects nothing.
func textNothingSelected(id, shape string) string {
	return fmt.Sprintf("The expression selects nothing in result %s, which is %s.", id, shape)
}

// textSelectLess follows the first bytes of what was selected.
func textSelectLess(shown, total int) string {
	return fmt.Sprintf("\n[… the first %d of %d selected bytes; select less to see the others …]", shown, total)
}
