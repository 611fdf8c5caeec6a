package main

import (
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
)

// demoAccess denies what the script's conversation must not use.
var demoAccess = mcphybrid.Access{Deny: []string{"mcp_*__delete_*"}}

// demoLimit is the limit on the tokens of the script's conversation.
const demoLimit = 1000

// demo is a conversation that covers everything a loop must be ready for. It is
// written from the model's side: what it receives and what it answers.
var demo = []modeltest.Step{
	// Tools that are inline.
	{User: "Remember: on 2026-12-24 we hike 14 km.",
		Tools: []string{"mcp_notes__get_note", "mcp_notes__list_notes", "mcp_notes__put_note", "mcp_tool_search"},
		Say:   "I'll write that down.", Calls: []modeltest.Call{{Name: "mcp_notes__put_note", Arguments: `{"key":"hike","text":"On 2026-12-24, 14 km"}`}}},
	{Results: []string{`Saved "hike".`}, Calls: []modeltest.Call{{Name: "mcp_notes__get_note", Arguments: `{"key":"hike"}`}}},
	{Results: []string{"On 2026-12-24, 14 km"}, Say: "Noted, and read again: 14 km on 2026-12-24."},

	// A search, then a call by name of a tool that the search did not find.
	{User: "Which day is that, and how long from 2026-11-21?",
		Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"which day of the week is a date","max_results":1}`}}},
	{Results: []string{`"name":"mcp_calendar__day_of_week"`}, Tools: []string{"mcp_calendar__day_of_week"},
		Calls: []modeltest.Call{{Name: "mcp_calendar__day_of_week", Arguments: `{"date":"2026-12-24"}`}}},
	{Results: []string{"Thursday"}, Say: "A Thursday.",
		Calls: []modeltest.Call{{Name: "mcp_calendar__days_between", Arguments: `{"from":"2026-11-21","to":"2026-12-24"}`}}},
	{Results: []string{"33"}, Tools: []string{"mcp_calendar__days_between"}, Say: "A Thursday, in 33 days."},

	// Parallel calls. One has wrong arguments, which the model corrects.
	{User: "How many miles is that, and what is 3 °C in Fahrenheit?",
		Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"convert kilometers to miles; convert temperature celsius to fahrenheit","max_results":2}`}}},
	{Results: []string{"mcp_units__kilometers_to_miles"}, Tools: []string{"mcp_units__celsius_to_fahrenheit", "mcp_units__kilometers_to_miles"},
		Calls: []modeltest.Call{{Name: "mcp_units__kilometers_to_miles", Arguments: `{"value":"14 km"}`}, {Name: "mcp_units__celsius_to_fahrenheit", Arguments: `{"value":3}`}}},
	{Results: []string{`!/value is a string, but must be a number`, "37.4"},
		Calls: []modeltest.Call{{Name: "mcp_units__kilometers_to_miles", Arguments: `{"value":14}`}}},
	{Results: []string{"8.7"}, Say: "14 km are 8.7 miles, and 3 °C are 37.4 °F."},

	// A forbidden tool, and one that does not exist.
	{User: "Delete the note.", Calls: []modeltest.Call{{Name: "mcp_notes__delete_note", Arguments: `{"key":"hike"}`}}},
	{Results: []string{"!mcp_notes__delete_note was not called: it is not permitted here."},
		Calls: []modeltest.Call{{Name: "mcp_notes__remove_note", Arguments: `{"key":"hike"}`}}},
	{Results: []string{`!There is no tool named "mcp_notes__remove_note".`}, Calls: []modeltest.Call{{Name: "mcp_notes__list_notes", Arguments: `{}`}}},
	{Results: []string{`["hike"]`}, Say: "I may not delete notes; it is still there."},

	// A deferred tool with wrong arguments, twice. It is not activated until
	// they are right.
	{User: "How heavy are 12 kg in pounds?", Calls: []modeltest.Call{{Name: "mcp_units__kilograms_to_pounds", Arguments: `{"kg":12}`}}},
	{Results: []string{`!is missing the required property "value"`}, Calls: []modeltest.Call{{Name: "mcp_units__kilograms_to_pounds", Arguments: `{"kg":12}`}}},
	{Results: []string{"!STOP"}, Calls: []modeltest.Call{{Name: "mcp_units__kilograms_to_pounds", Arguments: `{"value":12}`}}},
	{Results: []string{"26.46"}, Tools: []string{"mcp_units__kilograms_to_pounds"}, Say: "26.46 pounds."},

	// Text that is not ASCII, in arguments and in results.
	{User: "Sort the packing list: Zelt, Äpfel, brød, 水 and save it.",
		Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"sort lines alphabetically","max_results":1}`}}},
	{Results: []string{`"mcp_text__sort_lines"`}, Tools: []string{"mcp_text__sort_lines"},
		Calls: []modeltest.Call{{Name: "mcp_text__sort_lines", Arguments: `{"lines":["Zelt","Äpfel","brød","水 \"frisch\" 🏔️"]}`}}},
	{Results: []string{"brød\nZelt\nÄpfel\n水 \"frisch\" 🏔️"},
		Calls: []modeltest.Call{{Name: "mcp_notes__put_note", Arguments: `{"key":"packing","text":"brød\nZelt\nÄpfel\n水 \"frisch\" 🏔️"}`}}},
	{Results: []string{`Saved "packing".`}, Say: "Sorted and saved: brød, Zelt, Äpfel, 水 🏔️."},

	// A search that finds nothing.
	{User: "Book a flight.", Calls: []modeltest.Call{{Name: "mcp_tool_search", Arguments: `{"query":"airline ticket reservation"}`}}},
	{Results: []string{"No further tool matches."}, Say: "I have no tool for flights."},

	// An error by a tool itself, and three calls at once.
	{User: "What is in the note \"food\"? And count the words of the packing list.", Calls: []modeltest.Call{{Name: "mcp_notes__get_note", Arguments: `{"key":"food"}`}}},
	{Results: []string{`!there is no note "food"`}, Calls: []modeltest.Call{
		{Name: "mcp_notes__list_notes", Arguments: `{}`},
		{Name: "mcp_notes__get_note", Arguments: `{"key":"packing"}`},
		{Name: "mcp_text__count_words", Arguments: `{"text":"brød Zelt Äpfel 水"}`}}},
	{Results: []string{`["hike","packing"]`, "水 \"frisch\" 🏔️", "4"}, Tools: []string{"mcp_text__count_words"},
		Say: "There is no such note. The packing list has 4 words.", Tokens: demoLimit + 1},

	// The conversation is too long. A summary replaces it, and the list of
	// tools begins anew with the three that were used last.
	{User: summarize, Say: "A hike of 14 km on 2026-12-24; the packing list is in the note \"packing\"."},
	{User: "How many days before it is 2026-12-20?", Anew: true,
		Tools: []string{"mcp_notes__get_note", "mcp_notes__list_notes", "mcp_notes__put_note", "mcp_tool_search",
			"mcp_units__kilograms_to_pounds", "mcp_text__sort_lines", "mcp_text__count_words"},
		Calls: []modeltest.Call{{Name: "mcp_calendar__days_between", Arguments: `{"from":"2026-12-20","to":"2026-12-24"}`}}},
	{Results: []string{"4"}, Tools: []string{"mcp_calendar__days_between"}, Say: "Four days before the hike. Have a good one!"},
}

// demoOf returns the conversation for a provider's default model. Chat completions take no
// tools in the conversation.
func demoOf(provider string) []modeltest.Step {
	if provider == "openai" {
		return bridged(demo)
	}
	return demo
}

// bridged returns steps for a model that finds and calls the tools that are not inline by
// tools that are always there: the list never changes.
func bridged(steps []modeltest.Step) []modeltest.Step {
	list := slices.Clone(steps)
	for i := range list {
		st := &list[i]
		if i == 0 || st.Anew {
			st.Tools = append(slices.Clip(steps[0].Tools), mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.PageToolName)
		} else {
			st.Tools = nil
		}
		st.Calls = slices.Clone(st.Calls)
		for k, c := range st.Calls {
			if !slices.Contains(steps[0].Tools, c.Name) {
				st.Calls[k] = modeltest.Call{Name: mcphybrid.CallToolName, Arguments: fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.Name, c.Arguments)}
			}
		}
	}
	return list
}

// demoMessages returns what the user says in the demo.
func demoMessages() []string { return messagesOf(demo) }

// messagesOf returns what the user says in steps.
func messagesOf(steps []modeltest.Step) (list []string) {
	for _, st := range steps {
		if st.User != "" && st.User != summarize {
			list = append(list, st.User)
		}
	}
	return list
}

// newScript returns a server that plays a model, in both providers' protocols, and refuses a
// wrong request with the reason.
func newScript(steps ...modeltest.Step) *modeltest.Script {
	return &modeltest.Script{Steps: steps, System: []string{system}, Streams: true}
}
