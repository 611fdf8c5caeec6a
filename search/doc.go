// Package search ranks documents against queries by the words they share.
//
// An [Index] holds documents. Each [Document] has a server, a name, a title, a
// description, a JSON Schema and hints. The index scores documents by BM25F,
// finds related words with a [Lexicon] and corrects typing errors. It is
// immutable; [Index.With] returns a changed version in microseconds.
//
//	x := search.NewIndex(docs, nil)
//	for _, m := range x.Search("create an issue", 5, nil) {
//		fmt.Println(docs[m.Doc].Name, m.Score)
//	}
//
// [Index.Explain] shows how much each word in each field adds to a score.
// [DetectIntents] guesses from keywords what the writer of a message wants.
//
// The package connects no servers and calls nothing.
package search
