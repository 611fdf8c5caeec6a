package config_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mcphybrid/mcphybrid/config"
)

// A file of VS Code asks the user for a value.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "mcphybrid")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mcp.json")
	err = os.WriteFile(path, []byte(`{
		"inputs": [{"id": "key", "type": "promptString", "description": "API key", "password": true}],
		"servers": {
			"weather": {"url": "https://example.com/mcp", "headers": {"X-Key": "${input:key}"}}, // a comment
			"old": {"command": "mcp-old", "disabled": true},
		},
	}`), 0o600)
	if err != nil {
		log.Fatal(err)
	}

	file, err := config.Load(path, &config.Options{
		Input: func(in config.Input) (string, error) {
			fmt.Println("asked for:", in.Description)
			return "the user's answer", nil
		},
	})
	if err != nil {
		log.Print(err)
	}
	fmt.Println("written for:", file.Dialect)
	for _, s := range file.Servers {
		fmt.Println(s, s.Disabled)
	}
	// Output:
	// asked for: API key
	// written for: vscode
	// server "weather" at https://example.com, headers ["X-Key"] false
	// server "old" by "" with 0 arguments, environment [] true
}
