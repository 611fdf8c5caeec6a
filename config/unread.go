package config

import (
	"fmt"
	"slices"
	"strings"
)

// unread are permissions, profiles and managed settings, by which clients and those who
// administer them say what servers and tools may do. A host has its own.
var unread = []string{
	"permission", "permissions", // opencode, Claude Code, Cursor
	"agent.tool_permissions", "agent.profiles", // Zed
	"amp.permissions", "amp.mcpPermissions",
	"admin.mcp.config",                                                       // Gemini CLI
	"allowedMcpServers", "deniedMcpServers", "strictPluginOnlyCustomization", // Claude Code
}

// noteUnread tells in one note which of these the file has.
func (doc *document) noteUnread(scopes []object) {
	var found []string
	for _, place := range unread {
		if slices.ContainsFunc(scopes, func(o object) bool { raw, _ := o.at(place); return raw != nil }) {
			found = append(found, fmt.Sprintf("%q", place))
		}
	}
	if found != nil {
		doc.notes.add(`this client also has %s, which is not read: write "disabled" or "disabledTools" into the servers, or let the host decide`, strings.Join(found, ", "))
	}
}
