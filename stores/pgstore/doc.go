// Package pgstore keeps tools in PostgreSQL, with pgvector, for searches by
// words and by meaning.
//
// A [Store] is a [vector.Store] over a pool of connections that the
// host has. [New] makes the extension vector, a schema and its tables where they
// are missing; any number of processes may start at once.
//
// # Tables
//
// Each scope has a table, made by the first Upsert: its name is a hash of the
// scope's, which may be anything, and the table scopes says which is whose.
//
//	mcphybrid.scopes          id, scope, dimensions
//	mcphybrid.tools_3fdb…     id, sum, server, words, embedding, terms
//	mcphybrid.tools_3fdb…_words, …_near    GIN and HNSW, of large scopes
//
// So a statement for one user names a table that has no row of another: no
// filter can be forgotten. Scopes can have vectors of different lengths, to drop
// one is to drop a table, and the rows of a user are next to each other. Rejected
// were one table with a column for the scope, where all of that hangs on a WHERE
// and one HNSW index of one length is filtered after it was asked; and a
// partition for each scope, which has as many tables, and all of them have to be
// planned for. What it costs is five relations for each scope: a thousand scopes
// are made in some seconds. Those who have a hundred thousand should spread them
// over databases.
//
// # Searches
//
// A search is one statement: the candidates by words, those by meaning, and what
// [vector.Fuse] makes of them. Words are found by websearch_to_tsquery, any
// of them, and ranked by ts_rank, which knows nothing of rare words. Where words
// are not separated by spaces, as in Japanese, PostgreSQL finds none.
//
// Small scopes, of at most [Options].IndexAbove tools, have no index but that of
// their IDs: a search reads them all, which is exact. Larger ones get a GIN
// index for the words and an HNSW index for vectors of at most 2000 dimensions.
// HNSW finds nearly all of the nearest, but a filter is applied to what it found,
// and may leave too few. So a search that is narrowed to servers, or wants more
// than 1000 candidates, reads all vectors that pass, and is exact in any scope.
//
// # Writers
//
// All transactions lock first the scope's row in scopes, for themselves if they
// change the scope, and then tools in the order of their IDs: none waits for
// another in a circle. Should PostgreSQL stop one for others' sake, it is begun
// again. The indexes of a scope are made by the Upsert that makes it large;
// other writers wait, searches do not.
//
// # Connections
//
// Statements are not prepared, since each scope has its own, and nothing is left
// in a session: a pooler between may give each transaction another one. The user
// of the database needs the right to make the schema and the extension, if they
// are not there.
package pgstore
