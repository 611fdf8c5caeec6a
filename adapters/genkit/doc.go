// Package genkit gives the tools of a session to a call of genkit.Generate, of
// github.com/firebase/genkit/go. Its name is that of Genkit's own package, so give it another
// one where both are imported:
//
//	resp, err := genkit.Generate(ctx, g,
//		ai.WithMessages(history...),
//		ai.WithUse(mcpgenkit.Use(sess, nil)),
//		ai.WithMaxTurns(50),
//	)
package genkit
