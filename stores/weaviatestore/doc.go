// Package weaviatestore keeps the tools of package mcphybrid in Weaviate, for
// searches by words and by meaning, so that they are embedded once for all
// processes of a host and stay there:
//
//	store, err := weaviatestore.New(weaviatestore.Options{URL: "http://localhost:8080"})
//	…
//	mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{Embedder: embedder, Store: store}}
//
// # Tenants
//
// All scopes are tenants of one class, which the first Upsert makes: see
// [TenantName] and [Options]. A tenant is a shard with files, a vector index, an
// inverted index and word statistics of its own. So there is no filter by user
// that could be forgotten, not even a score tells what others have, and to drop
// a scope is to delete files. "system" is a tenant like the others: a class of
// its own would separate it no better, and its code would be another one. Its
// vectors may have another length than those of users anyway.
//
// An object is one tool. Its id is a UUID of version 5 of the tool's ID, its one
// vector has no name, comes from no vectorizer and is compared by its cosine,
// and its properties are
//
//	tool_name      the tool's ID
//	origin         the tool's Server
//	origin_sha256  its hash, for searches in some servers: a filter by text ignores outer spaces
//	text           what is found by words
//	sum            the tool's Sum
//	scope          the scope, also where the tenant has its hash
//	dimensions     the length of the vector, 0 if there is none
//
// # Searches
//
// A search is one GraphQL request of two queries, bm25 and nearVector, whose
// answers [vector.Fuse] puts together. It does not use the hybrid query:
// relativeScoreFusion stretches the scores of each side from the least that it
// found, which becomes 0, to the greatest, which becomes 1. A tool with a
// similarity of 0.995 has the score 0 if it is the last, a bad one 1 if it is
// alone; and no similarity is left that [vector.Query].Least could be
// compared with.
//
// Words are ranked by BM25 among the tools of the scope. They are cut at
// everything but letters and digits and are not stemmed, but for English stop
// words. Japanese or Chinese texts need another tokenization, which
// [Options].Create can set.
//
// Searches compare with every vector of the scope: the index is "flat". That is
// exact and needs no memory for scopes that are not in use. A search of 10,000
// tools with 384 dimensions takes some 20 ms, 6 ms by words alone and 16 ms by
// meaning (2 cores of an AMD EPYC, 2026-11-22); by words half a second in the
// first minute after they were written, until Weaviate has put them into files. A graph (hnsw), which Create can ask
// for, is faster in large scopes and may miss some: of 301 tools, 300 of them
// with equal vectors, it missed the nearest one. Of equal tools the first by ID
// are found, for which as many are asked for as there are, up to 10,000
// (QUERY_MAXIMUM_RESULTS).
//
// # Requests
//
// The store sends its requests with net/http: to /v1/schema and
// /v1/batch/objects, and as GraphQL to /v1/graphql. Words become a quoted string
// of GraphQL, so they can't change the query. Redirects are not followed. An
// answer may have 64 MiB, and what it repeats of the request. Errors name the
// request, its status and the first 300 characters of Weaviate's message. They
// never show the API key. What Options have no field for is up to the Transport
// of [Options].Client: proxies, certificates, other headers, tokens that expire.
//
// # Limits
//
// GraphQL must not be disabled in the server. If the URL leads to another
// server that answers all with 404, searches find nothing, and only Upsert
// tells. Vectors that are the first of a scope and have different lengths are
// only refused if one comes after the other.
//
// The tests run against a Weaviate 1.35.2 of one node. Nothing is proven about
// replicas: there, what was written may be seen a little later.
package weaviatestore
