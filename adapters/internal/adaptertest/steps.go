package adaptertest

import "github.com/mcphybrid/mcphybrid"

// A step is one request: what must be new in it, and the model's answer.
type step struct {
	// A request has a message of the user, or a result for each call of the step
	// before, in order. Each must contain the text given here. A "!" before the text means
	// that the result must be marked as an error.
	user    string
	results []string
	image   bool // the last result has the photo

	tools  []string // the names that must be new in the list of tools
	back   bool     // nothing of the run before stays in the conversation
	again  bool     // all is as in the request before, whatever user and results are
	broken bool     // the run does not get beyond this step

	away  bool // the model answers with an error
	say   string
	calls []call // the script gives them ids
}

type call struct{ id, name, arguments string }

const (
	miles   = "How many miles is that?"
	meet    = "Have Ann and Bob meet. What is in the note?"
	wait    = "Wait for the bell."
	goOn    = "Never mind. Are you still there?"
	convert = "How warm is 3 °C in Fahrenheit?"
	away    = "the model is away"
)

func steps(r Runtime) []step {
	list := []step{
		// A tool that is inline.
		{user: "Remember: on 2026-12-24 we hike 14 km.",
			tools: []string{"mcp_notes__get_note", "mcp_notes__put_note", "mcp_tool_search"},
			calls: []call{{name: "mcp_notes__put_note", arguments: `{"key":"hike","text":"2026-12-24, 14 km – \"früh\" 🏔️"}`}}},
		{results: []string{`Saved "hike".`}, say: "Noted."},

		// A search. What it finds is in the next request.
		{user: "Which day is that?", say: "I look for a calendar.",
			calls: []call{{name: "mcp_tool_search", arguments: `{"query":"which day of the week is a date","max_results":1}`}}},
		{results: []string{`"name":"mcp_desk__day_of_week"`}, tools: []string{"mcp_desk__day_of_week"},
			calls: []call{{name: "mcp_desk__day_of_week", arguments: `{"date":"2026-12-24"}`}}},
		{results: []string{"Thursday"}, say: "A Thursday."},

		// A tool that no search found, called by name with wrong arguments.
		{user: miles, calls: []call{{name: "mcp_desk__kilometers_to_miles", arguments: `{"value":"14 km"}`}}},
		{results: []string{"!/value: is a string, want number"}, calls: []call{{name: "mcp_desk__kilometers_to_miles", arguments: `{"value":14}`}}},
		{results: []string{"8.7"}, tools: []string{"mcp_desk__kilometers_to_miles"}, say: "8.7 miles."},

		// A tool that may not be used.
		{user: "Delete the note.", calls: []call{{name: "mcp_notes__delete_note", arguments: `{"key":"hike"}`}}},
		{results: []string{"!mcp_notes__delete_note was not called: it is not permitted here."}, say: "I may not."},

		{user: "What does the desk look like?", calls: []call{{name: "mcp_desk__take_photo", arguments: `{}`}}},
		{results: []string{"A photo of the desk."}, image: true, tools: []string{"mcp_desk__take_photo"}, say: "Red."},

		// Calls at once: each of two ends when the other one has begun.
		{user: meet, calls: []call{
			{name: "mcp_desk__meet", arguments: `{"who":"Ann"}`},
			{name: "mcp_notes__get_note", arguments: `{"key":"hike"}`},
			{name: "mcp_desk__meet", arguments: `{"who":"Bob"}`}}},
		{results: []string{"Ann was there.", "2026-12-24, 14 km – \"früh\" 🏔️", "Bob was there."}, tools: []string{"mcp_desk__meet"}, say: "They met."},

		{user: wait, broken: true, calls: []call{{name: "mcp_desk__wait", arguments: `{}`}}},
		{user: goOn, back: true, tools: []string{"mcp_desk__wait"}, say: "I am."},

		{user: convert, calls: []call{{name: "mcp_tool_search", arguments: `{"query":"convert celsius to fahrenheit","max_results":1}`}}},
		{results: []string{`"name":"mcp_desk__celsius_to_fahrenheit"`}, tools: []string{"mcp_desk__celsius_to_fahrenheit"}, broken: true, away: true},
		{again: true, calls: []call{{name: "mcp_desk__celsius_to_fahrenheit", arguments: `{"value":3}`}}},
		{results: []string{"37.4"}, say: "37.4 °F."},
	}
	if r.Disclosure == mcphybrid.ByBridge {
		bridge(list)
	}
	if r.Forgets {
		for i, st := range list {
			if st.again {
				list[i].again, list[i].back, list[i].user = false, true, convert
			}
		}
	}
	return list
}
