package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Limits on one call, in bytes.
const (
	maxInput  = 256 << 10
	maxOutput = 1 << 20
)

// Hints about what a tool does to its environment.
var (
	additive   = mcp.WithDestructiveHintAnnotation(false) // only adds, never loses anything
	idempotent = mcp.WithIdempotentHintAnnotation(true)   // a second call changes nothing
)

var required = mcp.Required()

// newServer returns a server that validates arguments against the schemas of
// its tools, so that the tools themselves need not.
func newServer(name, instructions string) *server.MCPServer {
	return server.NewMCPServer(name, "1.0.0",
		server.WithToolCapabilities(false),
		server.WithInstructions(instructions),
		server.WithInputSchemaValidation(),
		server.WithStrictInputSchemaDefault(),
		server.WithRecovery(),
	)
}

// tool adds a tool to s. Each call decodes its arguments into an In, on top
// of the defaults in the schema, and answers with what run returns: a string
// as it is, anything else as JSON, an error as an error result.
func tool[In any](s *server.MCPServer, name, description string, run func(In) (any, error), options ...mcp.ToolOption) {
	t := mcp.NewTool(name, append(options, mcp.WithDescription(description), mcp.WithOpenWorldHintAnnotation(false))...)
	defaults := defaultArguments(t)
	s.AddTool(t, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if n := len(req.Params.RawArguments); n > maxInput {
			return mcp.NewToolResultErrorf("the arguments have %d bytes; at most %d are allowed", n, maxInput), nil
		}
		var in In
		if err := errors.Join(json.Unmarshal(defaults, &in), req.BindArguments(&in)); err != nil {
			return mcp.NewToolResultErrorf("invalid arguments: %v", err), nil
		}
		out, err := run(in)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		text, err := encode(out)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(text), nil
	})
}

// query adds a tool that only reads.
func query[In any](s *server.MCPServer, name, description string, run func(In) (any, error), options ...mcp.ToolOption) {
	tool(s, name, description, run, append(options, mcp.WithReadOnlyHintAnnotation(true), additive, idempotent)...)
}

func defaultArguments(t mcp.Tool) []byte {
	defaults := map[string]any{}
	for name, property := range t.InputSchema.Properties {
		if schema, ok := property.(map[string]any); ok && schema["default"] != nil {
			defaults[name] = schema["default"]
		}
	}
	data, _ := json.Marshal(defaults) // strings, numbers and booleans always marshal
	return data
}

// encode returns v as the text of a result.
func encode(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		data, err := marshal(v)
		if err != nil {
			return "", err
		}
		text = string(data)
	}
	return text, checkOutput(len(text))
}

// marshal returns v as JSON, without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) {
		err = fmt.Errorf("the result is not a finite number: %s", unsupported.Str)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// checkOutput reports an error if n bytes are too many for a result.
func checkOutput(n int) error {
	if n > maxOutput {
		return fmt.Errorf("the result has more than %d bytes", maxOutput)
	}
	return nil
}

// The functions below declare one parameter each.

func str(name, description string, options ...mcp.PropertyOption) mcp.ToolOption {
	return mcp.WithString(name, append(options, mcp.Description(description))...)
}

func num(name, description string, options ...mcp.PropertyOption) mcp.ToolOption {
	return mcp.WithNumber(name, append(options, mcp.Description(description))...)
}

// integer declares a whole number from low to high.
func integer(name, description string, low, high int64, options ...mcp.PropertyOption) mcp.ToolOption {
	return mcp.WithInteger(name, append(options, mcp.Description(description), mcp.Min(low), mcp.Max(high))...)
}

// flag declares a switch that is off unless the caller turns it on.
func flag(name, description string) mcp.ToolOption {
	return mcp.WithBoolean(name, mcp.Description(description), mcp.DefaultBool(false))
}

func strs(name, description string, options ...mcp.PropertyOption) mcp.ToolOption {
	return mcp.WithArray(name, append(options, mcp.Description(description), mcp.WithStringItems(mcp.MinLength(1)), mcp.MaxItems(1000))...)
}

func nums(name, description string, options ...mcp.PropertyOption) mcp.ToolOption {
	return mcp.WithArray(name, append(options, mcp.Description(description), mcp.WithNumberItems(), mcp.MaxItems(10000))...)
}
