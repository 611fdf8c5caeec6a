package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

var (
	ErrNotFound = errors.New("there is no such session, or it has expired")
	ErrConflict = errors.New("another process has put or deleted the session meanwhile")
	ErrTooLarge = errors.New("too large for the store")
)

// Sessions keep a state for each conversation. A state is any bytes: what Session.Save
// returned, or a document of the host that has it beside the conversation's messages.
// States are data of users: who reads the engine reads them. The methods may be called
// concurrently. They return ctx's error soon after ctx ends.
//
// An id is valid if [CheckID] says so; for another one, all methods fail. An id gives no
// rights: a host that gets it from a client must check whose it is.
type Sessions interface {
	// Get returns the state that was put last and its revision, which is above 0. If
	// there is none, or it has expired, it fails with ErrNotFound.
	Get(ctx context.Context, id string) (state []byte, revision uint64, err error)

	// Put replaces the state if its revision is still this one, and returns the new
	// revision. 0 means that there must be no state. Otherwise it changes nothing and
	// fails with ErrConflict. If the newest state is equal to this one, whoever put it,
	// Put returns its revision. No two states of one id ever have the same revision.
	//
	// After any other error it is open whether the state is stored, or will be once the
	// engine can be reached. The same Put may be repeated.
	//
	// It changes nothing and fails with ErrTooLarge if the state has more than
	// [MaxState] bytes, or the engine can't take it.
	Put(ctx context.Context, id string, state []byte, revision uint64) (uint64, error)

	// Delete deletes the state, under the same conditions as Put. If there is none, it
	// does nothing. Revision 0 deletes it whatever its revision.
	Delete(ctx context.Context, id string, revision uint64) error

	// List yields the ids of the states that have not expired, in no order. Those that
	// are put or deleted meanwhile may be missing. After an error it ends.
	List(ctx context.Context) iter.Seq2[string, error]
}

const (
	MaxID    = 256      // bytes of an id, or of the name of an engine's document
	MaxState = 64 << 20 // bytes of a state; mcphybrid's have 16 MiB at most, unless Options.MaxState says otherwise
)

// CheckID returns an error unless id is valid UTF-8 without NUL, of 1 to [MaxID] bytes.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("the id is empty")
	case len(id) > MaxID:
		return fmt.Errorf("the id %.20q… has %d bytes, more than %d", id, len(id), MaxID)
	case !utf8.ValidString(id) || strings.ContainsRune(id, 0):
		return fmt.Errorf("the id %q is not UTF-8 without NUL", id)
	}
	return nil
}
