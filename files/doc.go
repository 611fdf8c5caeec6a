// Package files reads what a host keeps in files: rules for tools, skills, and servers
// as MCP clients write them. A program that does not import it does not link a parser of
// YAML.
package files
