// Package integration has only tests. They run a mcphybrid.Manager against published MCP
// servers, over standard input and output and over HTTP.
package integration
