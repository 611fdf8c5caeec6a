package mcphybrid

import (
	"context"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/mcphybrid/mcphybrid/internal/login"
)

// A Store keeps one document from one run of a program to the next. Its methods
// may be called concurrently. They may use the Manager, but not call [Manager.Close], nor
// [Manager.Accept], which waits for them. Unless it is for vectors, a call that takes more
// than 11 seconds has failed, and until it returns the Store is not called again.
type Store interface {
	// Load returns the document that was saved last, or nil if there is none
	// yet. Start, AddServer and AddTools wait for it, so it must not call them.
	Load() ([]byte, error)

	// Save replaces the document with data. If it returns an error, the old
	// document is unchanged.
	Save(data []byte) error
}

// maxStoring is how long a call of a Store may take: a little longer than it may wait for
// other processes.
const maxStoring = document.MaxWait + time.Second

// A SharedStore is a [Store] whose document several processes may change, such as a
// [FileStore]. [Options.Cache], [Options.TrustStore] and the Store of [UsageOptions] are
// changed by Update if they are one. The package shared has more for several processes.
type SharedStore interface {
	Store

	// Update replaces the document with what change returns for it. Either is nil if
	// there is none. If another Update, in any process that shares the store, changes
	// the document meanwhile, Update calls change once more, with the newest one. If
	// change returns an error, nothing changes, and Update returns that error. ctx ends
	// after 10 seconds.
	Update(ctx context.Context, change func(document []byte) ([]byte, error)) error
}

// A TokenStore keeps what logins gave us: one document of at most 64 KiB for each key. A
// key names a user, a server and a hash of its URL, or the client of a ClientSecret.
// Documents have tokens and must be kept secret. Its methods may be called concurrently.
type TokenStore interface {
	// Update calls change once and replaces a document with what it returns. Either
	// is nil if there is none. Until change returns, no other Update of that key may
	// begin, in any process that shares the store: a refresh token can be used once.
	// That takes up to a minute. If change returns an error, nothing changes, and
	// Update returns that error. Nobody waits for an Update whose ctx has ended.
	Update(ctx context.Context, key string, change func(document []byte) ([]byte, error)) error
}

// A PartStore keeps parts: documents that don't change, each under a hash of it, 43 letters,
// digits, "-" and "_". The methods may be called concurrently, and may use the Manager.
//
// [Options.StateParts] is one, and [Options.Cache] may be one, too. Each of them
// needs parts of its own. For the cache, we remove parts. For StateParts, we don't: a part to
// which new states refer is put again after an hour. So if states are kept for a week, drop
// what was not put for a week and an hour. Such parts have at most [Options.MaxState] bytes,
// and results that were cut at most 4 MiB.
type PartStore interface {
	// Put keeps a part or, if it is nil, removes the one with that key.
	Put(key string, part []byte) error

	// Get returns the part with that key, or nil if there is none.
	Get(key string) (part []byte, err error)
}

// FileParts returns a [PartStore] that keeps each part in a file of a folder. Several
// processes may share it. Only the owner of the files may read or write them (mode 0600). Put
// writes a file anew, so its time says when the part was put last. It creates the folder.
func FileParts(folder string) PartStore { return document.Folder(folder) }

// FileTokens returns a [TokenStore] that keeps each document in a file of a folder.
// Several processes may share it. Only the owner of the files may read or write them
// (mode 0600). It creates the folder if need be.
func FileTokens(folder string) TokenStore { return login.Files(folder) }

// FileStore returns a store that keeps its document in a file of at most 256 MiB. The
// file's folder must exist. A crash leaves either the old or the new document. If several
// processes call Save at once, the last one wins. Update locks the file by another one,
// whose name has .lock at the end. It is a [PartStore], too: parts are files in a folder whose
// name has .parts at the end. Only the owner may read or write them (mode 0600). Load reads
// only a regular file. Save replaces the file, even if it is a symbolic link.
func FileStore(path string) SharedStore { return document.File(path) }
