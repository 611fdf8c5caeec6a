package store

import "context"

// A Document is kept from one run of a program to the next. Its methods may be called
// concurrently. They may use the Manager, but not call Manager.Close, nor Manager.Accept,
// which waits for them. Unless it is for vectors, a call that takes more than 11 seconds has
// failed, and until it returns the Document is not called again.
type Document interface {
	// Load returns what was saved last, or nil if nothing was. Manager.Start, AddServer
	// and AddTools wait for it, so it must not call them.
	Load() ([]byte, error)

	// Save replaces the document with data. If it returns an error, the old document is
	// unchanged. Of several at once, one comes last.
	Save(data []byte) error
}

// A Shared is a [Document] that several processes may change, such as a [File]. The library
// changes it by Update only, unless it is for vectors.
type Shared interface {
	Document

	// Update replaces the document with what change returns for it. Either is nil if
	// there is none. If another Update, in any process that shares the store, changes
	// the document meanwhile, Update calls change once more, with the newest one. If
	// change returns an error, nothing changes, and Update returns that error. The library's
	// ctx ends after 10 seconds.
	Update(ctx context.Context, change func(document []byte) ([]byte, error)) error
}

// A Watched is a [Shared] that tells of its changes, and has parts of its own. Engines that
// replicas share offer it.
type Watched interface {
	Shared

	// Options.Cache keeps parts beside the document. Watch does not tell of them.
	Parts

	// Watch calls changed when it begins, and after each change by any process, until
	// ctx ends; then it returns ctx's error. One call may stand for several changes.
	// While the engine can't be reached, Watch waits, and calls changed once it can.
	Watch(ctx context.Context, changed func()) error
}

// MaxDocument is how many bytes a document may have, and a part.
const MaxDocument = 256 << 20 // enough for the vectors of many thousand tools
