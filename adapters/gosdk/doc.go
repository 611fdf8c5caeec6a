// Package gosdk joins the library with github.com/modelcontextprotocol/go-sdk, MCP's own SDK:
//
//   - [AddSession] gives a Manager the tools of a server to which a client of the SDK is
//     connected.
//   - [AddServer] gives it the tools of a server in this process that was written with the SDK.
//   - [NewServer] offers a session's tools as a server of the SDK.
package gosdk
