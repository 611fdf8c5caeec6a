// Package weaviatestore keeps the records of package mcphybrid in Weaviate and searches
// them by words and by vector, so that all processes of a host share them and embed
// each text once:
//
//	store, err := weaviatestore.New(weaviatestore.Options{URL: "http://localhost:8080"})
//	…
//	mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{Embedder: embedder, Store: store}}
//
// # Tenants
//
// All scopes are tenants of one class, which the first Upsert creates; see [TenantName]
// and [Options]. A tenant is a shard with its own files, vector index, inverted index
// and word statistics. So there is no filter by user to forget, scores reveal nothing
// about other tenants, and Drop deletes files. "system" is a tenant like the others: a
// separate class would isolate it no better and need separate code. Tenants may have
// vectors of different lengths.
//
// An object is one record. Its id is a UUID of version 5 of the record's ID. Its single
// vector has no name and no vectorizer and is compared by cosine. Its properties are
//
//	tool_name      the record's ID
//	origin         the record's Server
//	origin_sha256  the hash of origin, for searches in some servers: a filter by text ignores outer spaces
//	text           the text for the search by words
//	sum            the record's Sum
//	scope          the scope, even if the tenant's name is a hash
//	dimensions     the length of the vector, 0 if there is none
//	description    the record's Description, for other readers
//	schema_json    the record's Schema, as a text; likewise
//
// The store adds the last two to a class that an earlier version made.
//
// # Searches
//
// A search is one GraphQL request with two queries, bm25 and nearVector. [vector.Fuse]
// merges their answers. The store does not use the hybrid query, because its
// relativeScoreFusion stretches the scores of each side to 0 to 1: a record with a
// similarity of 0.995 scores 0 if it is the last, and a bad one scores 1 if it is the
// only one. It also returns no similarity to compare with [vector.Query].Least.
//
// Words are ranked by BM25 among the records of the scope. Weaviate splits texts at
// everything except letters and digits, does not stem, and removes English stop words.
// Japanese or Chinese texts need another tokenization, which [Options].Create can set.
//
// A search compares the query with every vector of the scope: the index is "flat". It
// is exact and needs no memory for idle scopes. A search of 10,000 records with 384
// dimensions takes about 20 ms, of which words take 6 ms and vectors 16 ms (2 cores of
// an AMD EPYC, 2026-11-22). In the first minute after a write, until Weaviate has
// flushed it to files, words take half a second. Create can select a graph index
// (hnsw). It is faster in large scopes but may miss records: in a test of 301 records,
// of which 300 had equal vectors, it missed the nearest one. To return ties in the
// order of IDs, the store asks for all of them, up to 10,000
// (QUERY_MAXIMUM_RESULTS).
//
// # Requests
//
// The store sends requests with net/http to /v1/schema, /v1/batch/objects and
// /v1/graphql. It sends words as a quoted GraphQL string, so they can't change the
// query. It does not follow redirects. An answer may have 64 MiB, plus what it repeats
// of the request. Errors contain the request, its status and the first 300 characters
// of Weaviate's message, but never the API key. For proxies, certificates, further
// headers or expiring tokens, set the Transport of [Options].Client.
//
// # Limits
//
// The server must not disable GraphQL. If the URL leads to another server that answers
// everything with 404, searches find nothing and only Upsert returns an error. If two
// concurrent calls write the first vectors of a scope with different lengths, neither
// is refused.
//
// The tests run against Weaviate 1.35.2 on one node. They prove nothing about replicas,
// where a write may become visible a little later.
package weaviatestore
