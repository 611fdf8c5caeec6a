package mcphybrid

import (
	"github.com/mcphybrid/mcphybrid/config"
)

// A ServerConfig describes one MCP server: its Name, how to reach it, by Command, URL or
// InProcess, and which of its Tools to use. [config.Server] says what each field does.
//
//	mcphybrid.ServerConfig{Name: "files", Command: "npx", Args: []string{"-y", "files-server", "/srv"}}
//	mcphybrid.ServerConfig{Name: "crm", URL: "https://crm.example/mcp", Headers: map[string]string{"X-Key": key}}
//	mcphybrid.ServerConfig{Name: "own", InProcess: server, Tools: mcphybrid.Access{Deny: []string{"delete_*"}}}
type ServerConfig = config.Server

// LoadConfig reads the servers from a file of an MCP client, such as mcp.json: see
// [config.Load], which has options. LoadServers of the package files also reads YAML.
func LoadConfig(path string) (*config.File, error) { return config.Load(path, nil) }
