// Package vector keeps what is found by meaning: records with vectors, and the
// search over both words and vectors.
//
// A [Store] holds records in scopes that know nothing of each other.
// [MemoryStore] is one in this process; the modules below stores/ are others,
// and package storetest has the tests that each of them passes. An [Embedder]
// turns texts into vectors; [NewOpenAIEmbedder] and [NewOllamaEmbedder] ask a
// service. [Fuse] and [FuseRanks] put the two sides of a search together. A
// [Cache] keeps vectors from one run to the next, so that no text is embedded
// twice.
//
// The package knows no tools, no servers and no sessions.
package vector
