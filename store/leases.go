package store

import (
	"context"
	"errors"
)

// ErrLeaseLost is the cause with which the context of a lease ends when the engine has not
// confirmed it in time, or another holder has it.
var ErrLeaseLost = errors.New("the lease is lost")

// Leases let one holder at a time work on a conversation, whichever process it is in: a message
// that reaches two replicas is answered by one, and the other finds the answer. The methods may
// be called concurrently.
//
// A lease says who may begin something. It takes nothing back: a call that runs when a lease is
// lost may still have its effect. [Sessions.Put] refuses what a former holder puts.
type Leases interface {
	// Lease waits until nobody holds the lease with that id, takes it and keeps it until
	// release is called or held ends. While held lasts, nobody else has the lease. It ends with
	// ctx, at release, and with the cause [ErrLeaseLost]: see [context.Cause]. A host passes it
	// to the calls that it makes for the conversation.
	//
	// release gives the lease to who waits. It may be called several times, and waits for the
	// engine for a second at most. A holder that dies, or can't reach the engine, keeps its lease
	// for the time that the engine was opened with.
	//
	// Who waits gets the lease in no order. Lease fails with the error of ctx once that has
	// ended, and with [ErrUnavailable] if the engine can't be reached. An id is valid if
	// [CheckID] says so.
	Lease(ctx context.Context, id string) (held context.Context, release func(), err error)
}
