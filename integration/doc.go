// Package integration has no code but tests: they run a mcphybrid.Manager
// against published MCP servers, over standard input and output and over HTTP.
package integration
