package adaptertest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// A moment is one request: what must be new in its messages, and the model's answer.
type moment struct {
	news  []string
	calls []modeltest.Call
}

// bridged returns a call through the tool that calls others.
func bridged(name, arguments string) modeltest.Call {
	return modeltest.Call{Name: mcphybrid.CallToolName, Arguments: fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)}
}

func searching(query string) modeltest.Call {
	return modeltest.Call{Name: mcphybrid.SearchToolName, Arguments: fmt.Sprintf(`{"query":%q,"max_results":1}`, query)}
}

// Late tests a runtime whose sessions are by bridge in a conversation of 20 requests in
// which servers come and go, between runs and within one, and another process goes on. Each
// request must begin with all bytes of the one before.
func Late(t *testing.T, r Runtime) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mgr := newDesk(r.Sequential).manager(t)
	bell := func() { require.NoError(t, mgr.AddTools("tower", saying("ring", "Rings the bell.", "It rang."))) }
	unlock := saying("unlock", "Unlocks the door of the cellar.", "")
	unlock.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := mgr.AddTools("cellar", saying("count_barrels", "Counts the barrels.", "7 barrels."))
		return mcp.NewToolResultText("It is open."), err
	}
	require.NoError(t, mgr.AddTools("hall", unlock))

	note, day := bridged("mcp_notes__get_note", `{"key":"hike"}`), bridged("mcp_desk__day_of_week", `{"date":"2026-12-24"}`)
	moments := []moment{
		{[]string{"Remember"}, []modeltest.Call{searching("save a note under a key")}},
		{[]string{"mcp_notes__put_note"}, []modeltest.Call{bridged("mcp_notes__put_note", `{"key":"hike","text":"14 km"}`)}},
		{[]string{"Saved"}, nil},

		{[]string{"Ring the bell", "not by the user", "tower"}, []modeltest.Call{searching("ring the bell")}},
		{[]string{"mcp_tower__ring"}, []modeltest.Call{bridged("mcp_tower__ring", `{}`)}},
		{[]string{"It rang."}, []modeltest.Call{day, note}},
		{[]string{"Thursday", "14 km"}, nil},

		{[]string{"again"}, []modeltest.Call{bridged("mcp_tower__ring", `{}`)}},
		{[]string{"mcp_tower__ring is gone"}, []modeltest.Call{searching("unlock the door of the cellar")}},
		{[]string{"mcp_hall__unlock"}, []modeltest.Call{bridged("mcp_hall__unlock", `{}`), note, bridged("mcp_desk__take_photo", `{}`)}},
		{[]string{"It is open.", "14 km", "A photo", "not by the user", "cellar"}, []modeltest.Call{searching("count barrels")}},
		{[]string{"mcp_cellar__count_barrels"}, []modeltest.Call{bridged("mcp_cellar__count_barrels", `{}`)}},
		{[]string{"7 barrels."}, nil},

		{[]string{"date"}, []modeltest.Call{searching("which day of the week is a date")}},
		{[]string{"mcp_desk__day_of_week"}, []modeltest.Call{day}},
		{[]string{"Thursday"}, nil},

		{[]string{"once more"}, []modeltest.Call{searching("ring the bell")}},
		{[]string{"mcp_tower__ring"}, []modeltest.Call{bridged("mcp_tower__ring", `{}`)}},
		{[]string{"It rang."}, []modeltest.Call{{Name: "mcp_notes__get_note", Arguments: `{"key":"hike"}`}}},
		{[]string{"14 km"}, nil},
	}
	next, seen := 0, 0
	model := func(got modeltest.Request, err error) (modeltest.Step, error) {
		if err != nil {
			return modeltest.Step{}, err
		}
		if next == len(moments) || got.Stream != r.Streams {
			return modeltest.Step{}, fmt.Errorf("request %d, stream %t", next+1, got.Stream)
		}
		var text strings.Builder
		for _, raw := range got.Messages[seen:] {
			text.Write(raw)
		}
		m := moments[next]
		for _, want := range m.news {
			if !strings.Contains(text.String(), want) {
				return modeltest.Step{}, fmt.Errorf("request %d has the new messages %s, want %q in them", next+1, &text, want)
			}
		}
		next, seen = next+1, len(got.Messages)
		st := modeltest.Step{Calls: m.calls}
		for i := range st.Calls {
			st.Calls[i].ID = fmt.Sprintf("call_%d_%d", next, i)
		}
		if m.calls == nil {
			st.Say = fmt.Sprintf("done at %d", next)
		}
		return st, nil
	}
	prefix := &modeltest.Prefix{Next: modeltest.Model(model)}
	srv := httptest.NewServer(prefix)
	defer srv.Close()

	session := mgr.NewSession(r.options())
	host := r.Begin(t, srv.URL, session, nil)
	say := func(message string, at int) {
		answer, err := host.Run(ctx, message)
		require.NoError(t, prefix.Wrong())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("done at %d", at), answer)
	}
	say("Remember: we hike 14 km.", 3)
	bell()
	say("Ring the bell.", 7)
	require.True(t, mgr.RemoveServer("tower"))
	say("Ring it again.", 13)
	restored, _, err := mgr.RestoreSession(session.Save(), r.options())
	require.NoError(t, err)
	session.Close()
	host = r.Begin(t, srv.URL, restored, host)
	say("Which day is the date?", 16)
	bell()
	say("Ring once more.", 20)
	require.Equal(t, 20, prefix.Requests())
	require.Equal(t, mcphybrid.ByBridge, restored.Disclosure())
}

// saying returns a tool that answers with a text.
func saying(name, description, answer string) server.ServerTool {
	return server.ServerTool{Tool: mcp.NewTool(name, mcp.WithDescription(description)), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(answer), nil
	}}
}
