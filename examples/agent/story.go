package main

import "github.com/mcphybrid/mcphybrid"

// demoAccess denies what the script's conversation must not use.
var demoAccess = mcphybrid.Access{Deny: []string{"mcp_*__delete_*"}}

// demoLimit is the limit on the tokens of the script's conversation.
const demoLimit = 1000

// demo is a conversation that covers everything a loop must be ready for. It is
// written from the model's side: what it receives and what it answers.
var demo = []step{
	// Tools that are inline.
	{user: "Remember: on 2026-12-24 we hike 14 km.",
		tools: []string{"mcp_notes__get_note", "mcp_notes__list_notes", "mcp_notes__put_note", "mcp_tool_search"},
		say:   "I'll write that down.", calls: []call{{name: "mcp_notes__put_note", arguments: `{"key":"hike","text":"On 2026-12-24, 14 km"}`}}},
	{results: []string{`Saved "hike".`}, calls: []call{{name: "mcp_notes__get_note", arguments: `{"key":"hike"}`}}},
	{results: []string{"On 2026-12-24, 14 km"}, say: "Noted, and read again: 14 km on 2026-12-24."},

	// A search, then a call by name of a tool that the search did not find.
	{user: "Which day is that, and how long from 2026-11-21?",
		calls: []call{{name: "mcp_tool_search", arguments: `{"query":"which day of the week is a date","max_results":1}`}}},
	{results: []string{`"name":"mcp_calendar__day_of_week"`}, tools: []string{"mcp_calendar__day_of_week"},
		calls: []call{{name: "mcp_calendar__day_of_week", arguments: `{"date":"2026-12-24"}`}}},
	{results: []string{"Thursday"}, say: "A Thursday.",
		calls: []call{{name: "mcp_calendar__days_between", arguments: `{"from":"2026-11-21","to":"2026-12-24"}`}}},
	{results: []string{"33"}, tools: []string{"mcp_calendar__days_between"}, say: "A Thursday, in 33 days."},

	// Parallel calls. One has wrong arguments, which the model corrects.
	{user: "How many miles is that, and what is 3 °C in Fahrenheit?",
		calls: []call{{name: "mcp_tool_search", arguments: `{"query":"convert kilometers to miles; convert temperature celsius to fahrenheit","max_results":2}`}}},
	{results: []string{"mcp_units__kilometers_to_miles"}, tools: []string{"mcp_units__celsius_to_fahrenheit", "mcp_units__kilometers_to_miles"},
		calls: []call{{name: "mcp_units__kilometers_to_miles", arguments: `{"value":"14 km"}`}, {name: "mcp_units__celsius_to_fahrenheit", arguments: `{"value":3}`}}},
	{results: []string{`!/value: is a string, want number`, "37.4"},
		calls: []call{{name: "mcp_units__kilometers_to_miles", arguments: `{"value":14}`}}},
	{results: []string{"8.7"}, say: "14 km are 8.7 miles, and 3 °C are 37.4 °F."},

	// A forbidden tool, and one that does not exist.
	{user: "Delete the note.", calls: []call{{name: "mcp_notes__delete_note", arguments: `{"key":"hike"}`}}},
	{results: []string{"!mcp_notes__delete_note was not called: it is not permitted here."},
		calls: []call{{name: "mcp_notes__remove_note", arguments: `{"key":"hike"}`}}},
	{results: []string{`!There is no tool named "mcp_notes__remove_note".`}, calls: []call{{name: "mcp_notes__list_notes", arguments: `{}`}}},
	{results: []string{`["hike"]`}, say: "I may not delete notes; it is still there."},

	// A deferred tool with wrong arguments, twice. It is not activated until
	// they are right.
	{user: "How heavy are 12 kg in pounds?", calls: []call{{name: "mcp_units__kilograms_to_pounds", arguments: `{"kg":12}`}}},
	{results: []string{`!is missing the property "value"`}, calls: []call{{name: "mcp_units__kilograms_to_pounds", arguments: `{"kg":12}`}}},
	{results: []string{"!STOP"}, calls: []call{{name: "mcp_units__kilograms_to_pounds", arguments: `{"value":12}`}}},
	{results: []string{"26.46"}, tools: []string{"mcp_units__kilograms_to_pounds"}, say: "26.46 pounds."},

	// Text that is not ASCII, in arguments and in results.
	{user: "Sort the packing list: Zelt, Äpfel, brød, 水 and save it.",
		calls: []call{{name: "mcp_tool_search", arguments: `{"query":"sort lines alphabetically","max_results":1}`}}},
	{results: []string{`"mcp_text__sort_lines"`}, tools: []string{"mcp_text__sort_lines"},
		calls: []call{{name: "mcp_text__sort_lines", arguments: `{"lines":["Zelt","Äpfel","brød","水 \"frisch\" 🏔️"]}`}}},
	{results: []string{"brød\nZelt\nÄpfel\n水 \"frisch\" 🏔️"},
		calls: []call{{name: "mcp_notes__put_note", arguments: `{"key":"packing","text":"brød\nZelt\nÄpfel\n水 \"frisch\" 🏔️"}`}}},
	{results: []string{`Saved "packing".`}, say: "Sorted and saved: brød, Zelt, Äpfel, 水 🏔️."},

	// A search that finds nothing.
	{user: "Book a flight.", calls: []call{{name: "mcp_tool_search", arguments: `{"query":"airline ticket reservation"}`}}},
	{results: []string{"No further tool matches."}, say: "I have no tool for flights."},

	// An error by a tool itself, and three calls at once.
	{user: "What is in the note \"food\"? And count the words of the packing list.", calls: []call{{name: "mcp_notes__get_note", arguments: `{"key":"food"}`}}},
	{results: []string{`!there is no note "food"`}, calls: []call{
		{name: "mcp_notes__list_notes", arguments: `{}`},
		{name: "mcp_notes__get_note", arguments: `{"key":"packing"}`},
		{name: "mcp_text__count_words", arguments: `{"text":"brød Zelt Äpfel 水"}`}}},
	{results: []string{`["hike","packing"]`, "水 \"frisch\" 🏔️", "4"}, tools: []string{"mcp_text__count_words"},
		say: "There is no such note. The packing list has 4 words.", tokens: demoLimit + 1},

	// The conversation is too long. A summary replaces it, and the list of
	// tools begins anew with the three that were used last.
	{user: summarize, own: true, say: "A hike of 14 km on 2026-12-24; the packing list is in the note \"packing\"."},
	{user: "How many days before it is 2026-12-20?", anew: true,
		tools: []string{"mcp_notes__get_note", "mcp_notes__list_notes", "mcp_notes__put_note", "mcp_tool_search",
			"mcp_units__kilograms_to_pounds", "mcp_text__sort_lines", "mcp_text__count_words"},
		calls: []call{{name: "mcp_calendar__days_between", arguments: `{"from":"2026-12-20","to":"2026-12-24"}`}}},
	{results: []string{"4"}, tools: []string{"mcp_calendar__days_between"}, say: "Four days before the hike. Have a good one!"},
}
