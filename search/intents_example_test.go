package search_test

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/search"
)

// A host adds its own intent to the built-in ones.
func ExampleDetectIntents() {
	table := append(search.DefaultIntents(), search.IntentWords{
		Intent: "book_room", Keywords: []string{"meeting room", "Besprechungsraum", "会議室"},
	})
	for _, message := range []string{
		"Is a meeting room free? Then send a message to the team.",
		"Ist der Besprechungsraum frei?",
		"Thank you!",
	} {
		fmt.Println(message)
		for _, i := range search.DetectIntents(message, table) {
			fmt.Printf("  %s %.2f %q\n", i.Name, i.Confidence, i.Keywords)
		}
	}
	// Output:
	// Is a meeting room free? Then send a message to the team.
	//   send_message 0.75 ["send a message"]
	//   book_room 0.75 ["meeting room"]
	// Ist der Besprechungsraum frei?
	//   book_room 0.50 ["Besprechungsraum"]
	// Thank you!
}
