package adaptertest

import (
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
)

const (
	miles   = "How many miles is that?"
	meet    = "Have Ann and Bob meet. What is in the note?"
	wait    = "Wait for the bell."
	goOn    = "Never mind. Are you still there?"
	convert = "How warm is 3 °C in Fahrenheit?"
)

func steps(r Runtime) []modeltest.Step {
	list := []modeltest.Step{
		// A tool that is inline.
		{User: "Remember: on 2026-12-24 we hike 14 km.",
			Tools: []string{"mcp_notes__get_note", "mcp_notes__put_note", "mcp_tool_search"},
			Calls: []modeltest.Call{{Name: "mcp_notes__put_note", Arguments: `{"key":"hike","text":"2026-12-24, 14 km – \"früh\" 🏔️"}`}}},
		{Results: []string{`Saved "hike".`}, Say: "Noted."},

		// A search. What it finds is in the next request.
		{User: "Which day is that?", Say: "I look for a calendar.",
			Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"which day of the week is a date","max_results":1}`}}},
		{Results: []string{`"name":"mcp_desk__day_of_week"`}, Tools: []string{"mcp_desk__day_of_week"},
			Calls: []modeltest.Call{{Name: "mcp_desk__day_of_week", Arguments: `{"date":"2026-12-24"}`}}},
		{Results: []string{"Thursday"}, Say: "A Thursday."},

		// A tool that no search found, called by name with wrong arguments.
		{User: miles, Calls: []modeltest.Call{{Name: "mcp_desk__kilometers_to_miles", Arguments: `{"value":"14 km"}`}}},
		{Results: []string{"!/value is a string, but must be a number"}, Calls: []modeltest.Call{{Name: "mcp_desk__kilometers_to_miles", Arguments: `{"value":14}`}}},
		{Results: []string{"8.7"}, Tools: []string{"mcp_desk__kilometers_to_miles"}, Say: "8.7 miles."},

		// A tool that may not be used.
		{User: "Delete the note.", Calls: []modeltest.Call{{Name: "mcp_notes__delete_note", Arguments: `{"key":"hike"}`}}},
		{Results: []string{"!mcp_notes__delete_note was not called: it is not permitted here."}, Say: "I may not."},

		{User: "What does the desk look like?", Calls: []modeltest.Call{{Name: "mcp_desk__take_photo", Arguments: `{}`}}},
		{Results: []string{"A photo of the desk."}, Images: []string{photo}, Tools: []string{"mcp_desk__take_photo"}, Say: "Red."},

		// Calls at once: each of two ends when the other one has begun.
		{User: meet, Calls: []modeltest.Call{
			{Name: "mcp_desk__meet", Arguments: `{"who":"Ann"}`},
			{Name: "mcp_notes__get_note", Arguments: `{"key":"hike"}`},
			{Name: "mcp_desk__meet", Arguments: `{"who":"Bob"}`}}},
		{Results: []string{"Ann was there.", "2026-12-24, 14 km – \"früh\" 🏔️", "Bob was there."}, Tools: []string{"mcp_desk__meet"}, Say: "They met."},

		// A number that a float does not hold.
		{User: "Where is order 9007199254740993?", Calls: []modeltest.Call{{Name: "mcp_desk__find_order", Arguments: `{"number":9007199254740993}`}}},
		{Results: []string{"Order 9007199254740993 is here."}, Tools: []string{"mcp_desk__find_order"}, Say: "Here."},

		// A Go tool that calls others for the model, as that of the module codemode does.
		{User: "How warm are 3 and 20 °C in Fahrenheit?", Calls: []modeltest.Call{{Name: "mcp_code__convert_all", Arguments: `{"values":[3,20]}`}}},
		{Results: []string{"37.4 68.0"}, Tools: []string{"mcp_code__convert_all"}, Say: "37.4 and 68 °F."},

		{User: wait, Broken: true, Calls: []modeltest.Call{{Name: "mcp_desk__wait", Arguments: `{}`}}},
		{User: goOn, Back: true, Tools: []string{"mcp_desk__wait"}, Say: "I am."},

		{User: convert, Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"convert celsius to fahrenheit","max_results":1}`}}},
		{Results: []string{`"name":"mcp_desk__celsius_to_fahrenheit"`}, Tools: []string{"mcp_desk__celsius_to_fahrenheit"}, Broken: true, Away: true},
		{Again: true, Calls: []modeltest.Call{{Name: "mcp_desk__celsius_to_fahrenheit", Arguments: `{"value":3}`}}},
		{Results: []string{"37.4"}, Say: "37.4 °F."},
	}
	if r.Rounds {
		for i := range list {
			for k, text := range list[i].Results {
				list[i].Results[k] = strings.ReplaceAll(text, "9007199254740993", "9007199254740992")
			}
		}
	}
	if r.by() == mcphybrid.ByBridge {
		bridge(list)
	}
	if r.Disclosure == mcphybrid.ByProvider {
		search(list)
	}
	if r.Forgets {
		for i, st := range list {
			if st.Again {
				list[i].Again, list[i].Back, list[i].User = false, true, convert
			}
		}
	}
	return list
}
