// Package langchaingo gives a model of github.com/tmc/langchaingo the tools of a session.
// An [Agent] is the loop between the two:
//
//	agent := langchaingo.Agent{Session: sess, Model: llm}
//	messages, err = agent.Run(ctx, append(messages, llms.TextParts(llms.ChatMessageTypeHuman, question)))
//
// [Request] and [Answer] are its parts, for a loop of one's own.
package langchaingo
