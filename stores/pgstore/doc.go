// Package pgstore keeps records in PostgreSQL with pgvector and searches them by
// words and by meaning. It also keeps what the replicas of a host share: see [Share].
//
// A [Store] is a [vector.Store] over the host's connection pool. [New] creates the
// extension vector, a schema and its tables if they are missing. Any number of
// processes may call it at once.
//
// # Tables
//
// The first Upsert into a scope creates a table for it. The table's name has a hash
// of the scope's name, which may be any string; the table scopes maps one to the
// other.
//
//	mcphybrid.scopes          id, scope, dimensions
//	mcphybrid.tools_3fdb…     id, sum, server, words, embedding, terms, description, schema_json
//	mcphybrid.tools_3fdb…_words, …_near    GIN and HNSW indexes of large scopes
//
// A statement for one user therefore names a table without rows of other users: there
// is no filter to forget. Scopes can have vectors of different lengths, Drop drops a
// table, and the rows of a user are close to each other. We rejected one table with a
// scope column, where everything depends on a WHERE clause and HNSW filters its
// results only afterwards. We also rejected one partition per scope, which needs as
// many tables and makes the planner look at all of them. The price is five relations
// per scope: creating a thousand scopes takes a few seconds. Hosts with a hundred
// thousand scopes should spread them over several databases.
//
// The last two columns are for other readers; they may be empty. schema_json is the
// text of a JSON value: cast it to jsonb to look into it. The type jsonb would refuse
// some JSON that a server may send.
//
// # Searches
//
// A search is one statement. It collects the candidates by words and by vector and
// merges them like [vector.Fuse]. Words go through websearch_to_tsquery; any of them
// may match. ts_rank ranks the matches and does not weigh rare words higher.
// PostgreSQL can't search languages without spaces between words, such as Japanese.
//
// A scope of at most [Options].IndexAbove records is indexed only by ID: a search
// reads all records and is exact. A larger scope gets a GIN index for words and an
// HNSW index for vectors of at most 2000 dimensions. HNSW finds nearly all of the
// nearest vectors, but a filter applied to its results may leave too few. So a search
// restricted to servers, or with more than 1000 candidates, reads all vectors that
// pass and is exact in any scope.
//
// # Writers
//
// Every transaction first locks the scope's row in scopes, exclusively if it changes
// the scope, and then records in the order of their IDs. This order prevents
// deadlocks. If PostgreSQL still aborts a transaction because of another one, the
// store retries it. The Upsert that makes a scope large creates its indexes;
// meanwhile other writers wait, searches don't.
//
// # What replicas share
//
// A [Shared] has the sessions and documents of the package store, in tables of the same
// schema. It needs no extension.
//
//	mcphybrid.shared_sessions     id, revision, put, state
//	mcphybrid.shared_parts        owner, key, put, data
//	mcphybrid.shared_documents    name, revision, data
//	mcphybrid.shared_revisions    the sequence of all revisions
//
// Each call is one statement, which compares revisions; no transaction waits for a model
// or a merge. What a conversation began with is most of its state, and the same in all that begin
// alike, so it is stored once, as a part, before the state. Who stores a document notifies all watchers in the same statement. Now and
// then, a Put removes sessions that have expired.
//
// # Connections
//
// The store prepares no statements, because each scope has its own, and leaves
// nothing in a session, so a pooler may give each transaction another connection. If
// the schema or the extension is missing, the database user needs the right to create
// it.
package pgstore
