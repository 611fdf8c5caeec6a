package adaptertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// A desk has two MCP servers with the tools of the script.
type desk struct {
	late    bool   // a server comes late
	called  func() // is called at each call of a tool, if not nil
	notes   *server.MCPServer
	things  *server.MCPServer
	waiting chan struct{} // is closed when a call of wait has begun
	stopped chan struct{} // is closed when it was cancelled

	mu    sync.Mutex
	texts map[string]string // of notes
}

// photo is what take_photo returns, in base64.
var photo = func() string {
	red := image.NewRGBA(image.Rect(0, 0, 8, 8))
	draw.Draw(red, red.Bounds(), image.NewUniform(color.RGBA{R: 200, A: 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, red); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}()

func newDesk(sequential bool) *desk {
	d := &desk{
		notes: server.NewMCPServer("notes", "1.0.0"), things: server.NewMCPServer("desk", "1.0.0"),
		waiting: make(chan struct{}), stopped: make(chan struct{}), texts: map[string]string{},
	}
	key := mcp.WithString("key", mcp.Required(), mcp.Description("Key of the note."))
	value := mcp.WithNumber("value", mcp.Required())
	add(d.notes, "put_note", "Saves a note under a key.", d.putNote, key, mcp.WithString("text", mcp.Required()))
	add(d.notes, "get_note", "Returns the note with a key.", d.getNote, key)
	add(d.notes, "delete_note", "Deletes the note with a key.", d.getNote, key)
	add(d.things, "day_of_week", "Tells which day of the week a date is.", dayOfWeek, mcp.WithString("date", mcp.Required(), mcp.Description("As 2006-01-02.")))
	add(d.things, "kilometers_to_miles", "Converts a length from kilometers to miles.", func(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
		return mcp.NewToolResultText(fmt.Sprintf("%.1f", req.GetFloat("value", 0)*0.621371))
	}, value)
	add(d.things, "celsius_to_fahrenheit", "Converts a temperature from Celsius to Fahrenheit.", func(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
		return mcp.NewToolResultText(fmt.Sprintf("%.1f", req.GetFloat("value", 0)*1.8+32))
	}, value)
	add(d.things, "take_photo", "Takes a photo of the desk.", func(context.Context, mcp.CallToolRequest) *mcp.CallToolResult {
		return mcp.NewToolResultImage("A photo of the desk.", photo, "image/png")
	})
	add(d.things, "find_order", "Tells where the order with a number is.", findOrder, mcp.WithInteger("number", mcp.Required()))
	add(d.things, "wait", "Waits for the bell.", d.wait)
	met := make(chan struct{}) // is closed when both are there
	if sequential {
		close(met)
	}
	var came atomic.Int32
	add(d.things, "meet", "Waits for another person.", func(ctx context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
		if came.Add(1) == 2 && !sequential {
			close(met)
		}
		select {
		case <-met:
			return mcp.NewToolResultText(req.GetString("who", "") + " was there.")
		case <-ctx.Done():
			return mcp.NewToolResultError(ctx.Err().Error())
		}
	}, mcp.WithString("who", mcp.Required()))
	return d
}

func add(s *server.MCPServer, name, description string, run func(context.Context, mcp.CallToolRequest) *mcp.CallToolResult, parameters ...mcp.ToolOption) {
	t := mcp.NewTool(name, append(parameters, mcp.WithDescription(description))...)
	s.AddTool(t, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return run(ctx, req), nil
	})
}

func (d *desk) putNote(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := req.GetString("key", "")
	d.texts[key] = req.GetString("text", "")
	return mcp.NewToolResultText(fmt.Sprintf("Saved %q.", key))
}

func (d *desk) getNote(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mcp.NewToolResultText(d.texts[req.GetString("key", "")])
}

func dayOfWeek(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
	date, err := time.Parse(time.DateOnly, req.GetString("date", ""))
	if err != nil {
		return mcp.NewToolResultError(err.Error())
	}
	return mcp.NewToolResultText(date.Weekday().String())
}

// convertAll is a Go tool that calls one of the desk for each value, in the session that calls it.
var convertAll = server.ServerTool{
	Tool: mcp.NewTool("convert_all", mcp.WithDescription("Converts many temperatures."), mcp.WithArray("values", mcp.Required(), mcp.WithNumberItems())),
	Handler: func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		session := mcphybrid.SessionFrom(ctx)
		if session == nil {
			return mcp.NewToolResultError("the call has no session"), nil
		}
		var said []string
		for _, value := range req.GetFloatSlice("values", nil) {
			result, err := session.CallFromCode(ctx, "mcp_desk__celsius_to_fahrenheit", map[string]any{"value": value})
			if err != nil {
				return result, nil
			}
			said = append(said, mcp.GetTextFromContent(result.Content[0]))
		}
		return mcp.NewToolResultText(strings.Join(said, " ")), nil
	},
}

// findOrder says the number as the call has it.
func findOrder(_ context.Context, req mcp.CallToolRequest) *mcp.CallToolResult {
	var in struct{ Number json.RawMessage }
	if err := req.BindArguments(&in); err != nil {
		return mcp.NewToolResultError(err.Error())
	}
	return mcp.NewToolResultText(fmt.Sprintf("Order %s is here.", in.Number))
}

func (d *desk) wait(ctx context.Context, _ mcp.CallToolRequest) *mcp.CallToolResult {
	close(d.waiting)
	<-ctx.Done()
	close(d.stopped)
	return mcp.NewToolResultError(ctx.Err().Error())
}
