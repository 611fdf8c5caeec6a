package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// demoOptions returns options with four small MCP servers in this process. Of
// their 13 permitted tools, only the first three are inline, so that there is
// something to search for.
func demoOptions() *mcphybrid.Options {
	return &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 3}, Active: mcphybrid.ActiveOptions{Max: 3}, Servers: []mcphybrid.ServerConfig{
		{Name: "notes", InProcess: notesServer()},
		{Name: "calendar", InProcess: calendarServer()},
		{Name: "units", InProcess: unitsServer()},
		{Name: "text", InProcess: textServer()},
	}}
}

// add adds a tool to s whose arguments are an In, and whose result is a text
// or becomes JSON.
func add[In any](s *server.MCPServer, name, description string, run func(In) (any, error), parameters ...mcp.ToolOption) {
	t := mcp.NewTool(name, append(parameters, mcp.WithDescription(description))...)
	s.AddTool(t, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		err := req.BindArguments(&in)
		var out any
		if err == nil {
			out, err = run(in)
		}
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		if text, ok := out.(string); ok {
			return mcp.NewToolResultText(text), nil
		}
		data, err := json.Marshal(out)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(string(data)), nil
	})
}

func text(name, description string) mcp.ToolOption {
	return mcp.WithString(name, mcp.Required(), mcp.Description(description))
}

func number(name, description string) mcp.ToolOption {
	return mcp.WithNumber(name, mcp.Required(), mcp.Description(description))
}

func notesServer() *server.MCPServer {
	type note struct{ Key, Text string }
	s := server.NewMCPServer("notes", "1.0.0")
	var mu sync.Mutex
	notes := map[string]string{}
	add(s, "put_note", "Saves a note under a key, in the place of one that is there.", func(in note) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		notes[in.Key] = in.Text
		return fmt.Sprintf("Saved %q.", in.Key), nil
	}, text("key", "Key of the note."), text("text", "Text of the note."))
	add(s, "get_note", "Returns the note with a key.", func(in note) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if t, ok := notes[in.Key]; ok {
			return t, nil
		}
		return nil, fmt.Errorf("there is no note %q", in.Key)
	}, text("key", "Key of the note."))
	add(s, "list_notes", "Lists the keys of all notes.", func(struct{}) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		keys := []string{}
		for key := range notes {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		return keys, nil
	})
	add(s, "delete_note", "Deletes the note with a key for good.", func(in note) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		delete(notes, in.Key)
		return "Deleted.", nil
	}, text("key", "Key of the note."))
	return s
}

func calendarServer() *server.MCPServer {
	s := server.NewMCPServer("calendar", "1.0.0")
	type dates struct {
		Date, From, To string
		Days           int
	}
	date := func(name string) mcp.ToolOption { return text(name, "A date as YYYY-MM-DD.") }
	add(s, "day_of_week", "Tells which day of the week a date is.", func(in dates) (any, error) {
		t, err := time.Parse(time.DateOnly, in.Date)
		return t.Weekday().String(), err
	}, date("date"))
	add(s, "days_between", "Counts the days from one date to another.", func(in dates) (any, error) {
		from, err1 := time.Parse(time.DateOnly, in.From)
		to, err2 := time.Parse(time.DateOnly, in.To)
		return int(to.Sub(from).Hours() / 24), errors.Join(err1, err2)
	}, date("from"), date("to"))
	add(s, "add_days", "Finds the date a number of days after another, or before it.", func(in dates) (any, error) {
		t, err := time.Parse(time.DateOnly, in.Date)
		return t.AddDate(0, 0, in.Days).Format(time.DateOnly), err
	}, date("date"), mcp.WithInteger("days", mcp.Required()))
	return s
}

func unitsServer() *server.MCPServer {
	s := server.NewMCPServer("units", "1.0.0")
	type value struct{ Value float64 }
	round := func(x float64) float64 { return math.Round(x*100) / 100 }
	add(s, "kilometers_to_miles", "Converts a length or distance from kilometers to miles.", func(in value) (any, error) {
		return round(in.Value / 1.609344), nil
	}, number("value", "Kilometers."))
	add(s, "celsius_to_fahrenheit", "Converts a temperature from degrees Celsius to degrees Fahrenheit.", func(in value) (any, error) {
		return round(in.Value*9/5 + 32), nil
	}, number("value", "Degrees Celsius."))
	add(s, "kilograms_to_pounds", "Converts a weight from kilograms to pounds.", func(in value) (any, error) {
		return round(in.Value / 0.45359237), nil
	}, number("value", "Kilograms."))
	return s
}

func textServer() *server.MCPServer {
	s := server.NewMCPServer("text", "1.0.0")
	type texts struct {
		Text  string
		Lines []string
	}
	add(s, "sort_lines", "Sorts lines alphabetically, without regard to case.", func(in texts) (any, error) {
		slices.SortStableFunc(in.Lines, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
		return strings.Join(in.Lines, "\n"), nil
	}, mcp.WithArray("lines", mcp.Required(), mcp.WithStringItems()))
	add(s, "count_words", "Counts the words of a text.", func(in texts) (any, error) {
		return len(strings.Fields(in.Text)), nil
	}, text("text", "Any text."))
	add(s, "title_case", "Writes the words of a text with capitals.", func(in texts) (any, error) {
		words := strings.Fields(in.Text)
		for i, w := range words {
			r := []rune(w)
			words[i] = strings.ToUpper(string(r[:1])) + string(r[1:])
		}
		return strings.Join(words, " "), nil
	}, text("text", "Any text."))
	return s
}
