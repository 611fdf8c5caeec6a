// Package mcpopenai gives the models of github.com/openai/openai-go the tools of a session,
// over chat completions ([Chat]) or responses ([Responses]), streamed or not. The model
// sees in the next request of the same turn what a search has found. Both make the calls of
// one answer at once.
package mcpopenai
