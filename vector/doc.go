// Package vector stores records with vectors and searches them by words and by
// meaning.
//
// A [Store] holds records in separate scopes. [MemoryStore] keeps them in
// memory; the modules below stores/ use a database. Package storetest has the
// tests that every store must pass. An [Embedder] turns texts into vectors;
// [NewOpenAIEmbedder] and [NewOllamaEmbedder] ask a service over HTTP. [Fuse]
// and [FuseRanks] merge the results by words with those by vector. A [Cache]
// keeps vectors between runs, so that no text is embedded twice.
package vector
