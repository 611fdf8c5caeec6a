package mcphybrid_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Two users of one host each have their own tools on top of the system's.
func ExampleManager_NewUser() {
	mgr := newManager()
	defer mgr.Close()
	for _, user := range []string{"alice", "bob"} {
		own, err := mgr.NewUser(user, nil)
		if err != nil {
			log.Print(err)
			return
		}
		defer own.Close()
		diary := server.ServerTool{
			Tool: mcp.NewTool("read_diary", mcp.WithDescription("Reads the diary of "+user)),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("Dear diary, I am " + user + "."), nil
			},
		}
		if err := own.AddTools("home", diary); err != nil {
			log.Print(err)
			return
		}
		sess := own.NewSession(nil)
		for _, hit := range sess.Search("read the diary, then the weather in Oslo", 2) {
			fmt.Println(hit.Tool.Description())
		}
		res, err := sess.Call(context.Background(), "mcp_home__read_diary", nil)
		fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	}
	fmt.Println(len(mgr.Search("diary", 5)))
	// Output:
	// Reads the diary of alice
	// Tells the weather in Oslo
	// Dear diary, I am alice. <nil>
	// Reads the diary of bob
	// Tells the weather in Oslo
	// Dear diary, I am bob. <nil>
	// 0
}
