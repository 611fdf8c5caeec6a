// Package search ranks documents against queries by their words.
//
// An [Index] holds documents that have fields, as the tools of MCP servers do:
// a server, a name, a description, parameters. It scores them by BM25F, knows
// related words from a [Lexicon], corrects slips of the keyboard, and changes
// by difference: [Index.With] returns the next version in microseconds.
//
//	x := search.NewIndex(docs, nil)
//	for _, m := range x.Search("create an issue", 5, nil) {
//		fmt.Println(docs[m.Doc].Name, m.Score)
//	}
//
// [Index.Explain] says which word in which field gave what. [DetectIntents]
// finds in a message what its writer wants, by keywords.
//
// The package knows no tools, no servers and no sessions.
package search
