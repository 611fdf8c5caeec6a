// Package eino gives an agent of github.com/cloudwego/eino the tools of a session. Give the
// agent [Model] in place of its chat model, and [ToolsNode] as its tools:
//
//	agent, err := react.NewAgent(ctx, &react.AgentConfig{
//		ToolCallingModel: eino.Model(sess, chat),
//		ToolsConfig:      eino.ToolsNode(sess),
//		MaxStep:          60,
//	})
//
// An adk.ChatModelAgent takes both as well, and so does a graph of one's own.
package eino
