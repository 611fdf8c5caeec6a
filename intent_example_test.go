package mcphybrid_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
)

// Detect the intent of a message with the host's own table, and search for tools
// with the keywords of that intent.
func ExampleSession_Search_byIntent() {
	table := append(search.DefaultIntents(), search.IntentWords{
		Intent: "book_room", Keywords: []string{"meeting room", "Besprechungsraum", "会議室"},
	})
	intents := search.DetectIntents("Is a meeting room free? Then send a message to the team.", table)
	for _, i := range intents {
		fmt.Printf("%s %.2f %q\n", i.Name, i.Confidence, i.Keywords)
	}

	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	defer mgr.Close()
	if err := mgr.AddTools("office",
		server.ServerTool{Tool: mcp.NewTool("reserve", mcp.WithDescription("Reserves a room for a meeting"))},
		server.ServerTool{Tool: mcp.NewTool("post", mcp.WithDescription("Posts a message to a channel"))},
	); err != nil {
		log.Fatal(err)
	}
	sess := mgr.NewSession(nil)
	for _, i := range intents {
		for _, hit := range sess.Search(strings.Join(i.Keywords, " "), 1) {
			fmt.Println(i.Name, hit.Tool.Name())
		}
	}
	// Output:
	// send_message 0.75 ["send a message"]
	// book_room 0.75 ["meeting room"]
	// send_message mcp_office__post
	// book_room mcp_office__reserve
}
