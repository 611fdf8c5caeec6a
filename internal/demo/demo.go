// Package demo has seven in-process MCP servers that list 150 tools: four tools work, and
// each other one answers with the error that it is not implemented.
package demo

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// tools has a file for each server, with a tool in each line, as tools/list has it.
//
//go:embed tools/*.jsonl
var tools embed.FS

// Files returns the server "files", with 23 tools. Of these, read_file and write_file work,
// on files in memory.
func Files() *server.MCPServer {
	d := &disk{files: make(map[string]string)}
	return serve("files", "Reads and changes the files of one directory. All paths are relative to it.",
		map[string]handler{"read_file": decode(d.read), "write_file": decode(d.write)})
}

// Issues returns the server "issues", with 22 tools.
func Issues() *server.MCPServer {
	return serve("issues", "Tracks bugs, feature requests and tasks of a project, with comments, labels, milestones and links.", nil)
}

// Math returns the server "math", with 27 tools. Of these, solve_linear_system works.
func Math() *server.MCPServer {
	return serve("math", "Calculates: arithmetic, number theory, statistics, linear algebra and finance.",
		map[string]handler{"solve_linear_system": decode(solve)})
}

// Text returns the server "text", with 25 tools. Of these, csv_to_json works.
func Text() *server.MCPServer {
	return serve("text", "Transforms and analyzes text, JSON and CSV.",
		map[string]handler{"csv_to_json": decode(csvToJSON)})
}

// Clock returns the server "clock", with 18 tools.
func Clock() *server.MCPServer {
	return serve("clock", "Tells the time and calculates with dates, time zones and calendars.", nil)
}

// Units returns the server "units", with 18 tools.
func Units() *server.MCPServer {
	return serve("units", "Converts between units of measurement.", nil)
}

// Notes returns the server "notes", with 17 tools.
func Notes() *server.MCPServer {
	return serve("notes", "Remembers notes under keys, with tags and all their versions.", nil)
}

type handler = server.ToolHandlerFunc

// serve returns a server with the tools of its file, and the handlers of those that work by
// name. It checks arguments against the schemas before a handler gets them.
func serve(name, instructions string, works map[string]handler) *server.MCPServer {
	s := server.NewMCPServer(name, "1.0.0", server.WithToolCapabilities(false), server.WithInstructions(instructions), server.WithInputSchemaValidation())
	f, err := tools.Open("tools/" + name + ".jsonl")
	if err != nil {
		panic(err) // the file is part of the program
	}
	defer f.Close()
	for lines := json.NewDecoder(f); lines.More(); {
		var t mcp.Tool
		if err := lines.Decode(&t); err != nil {
			panic(fmt.Errorf("tools/%s.jsonl: %w", name, err))
		}
		if works[t.Name] != nil {
			s.AddTool(t, works[t.Name])
		} else {
			s.AddTool(t, notImplemented)
		}
	}
	return s
}

func notImplemented(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultErrorf("%s is not implemented in this demo", req.Params.Name), nil
}

// decode returns the handler of a tool that takes an In and answers with a text.
func decode[In any](run func(In) (string, error)) handler {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := req.BindArguments(&in); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		text, err := run(in)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(text), nil
	}
}
