package files_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/files"
)

// A skill is a file of instructions. The model sees its name and description
// and loads the text when it needs it. The tools that the skill needs become
// active.
func ExampleLoadSkills() {
	dir, err := os.MkdirTemp("", "skills")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "---\nname: trip\ndescription: How we plan a trip.\ntools: [weather_in_Oslo]\n---\nAsk for the weather first.\n"
	path := filepath.Join(dir, "trip", "SKILL.md")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		log.Fatal(err)
	}

	skills, err := files.LoadSkills(dir)
	if err != nil {
		log.Print(err) // names each file that can't be used; skills has the others
	}
	weather := server.NewMCPServer("weather", "1")
	weather.AddTool(mcp.NewTool("weather_in_Oslo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("Snow"), nil
	})
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: []mcphybrid.ServerConfig{{Name: "weather", InProcess: weather}},
		Inline:  mcphybrid.InlineOptions{Max: -1}, // defer all tools
	})
	defer mgr.Close()
	if err := mgr.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := mgr.SetSkills(skills); err != nil {
		log.Print(err)
	}
	sess := mgr.NewSession(nil)
	res, err := sess.Call(context.Background(), mcphybrid.SkillLoadToolName, `{"name": "trip"}`)
	fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	fmt.Println(sess.ActiveTools()[0].Name())
	// Output:
	// Skill trip. It uses these tools, which are active now: mcp_weather__weather_in_Oslo.
	//
	// Ask for the weather first. <nil>
	// mcp_weather__weather_in_Oslo
}
