// Package store says what outlives a process, and keeps it in files. It has an interface for
// each thing, and a host may implement it over an engine of its own:
//
//	interface  keeps                                 in files    for
//	Document   one document                          File        Options.Cache, Options.TrustStore and other options
//	Shared     one that several processes change     File        the same
//	Watched    one that also tells of its changes                the same
//	Parts      documents that don't change           FileParts   Options.StateParts
//	Tokens     what logins gave, by key              FileTokens  Options.TokenStore
//	Sessions   states of conversations, by id                    the host's own use
//	Leases     who works on a conversation                       the same
//
// # Replicas
//
// The replicas of a host keep [Sessions] in an engine that all of them reach, so that any
// replica goes on with any conversation, and a [Watched] for each document. The modules
// stores/natsstore and stores/pgstore implement them. The package storetest has the tests that
// every implementation must pass.
//
// A replica takes the lease of the conversation and answers a turn in three steps: it gets the
// state, restores the session and lets the model work, and puts what
// [mcphybrid.Session.Save] returned with the revision that it got. If the lease was lost and
// another replica has put a state meanwhile, Put returns [ErrConflict]. The turn can then be done
// again on what the other one left, or given up. An engine that is away has everything fail with
// [ErrUnavailable]; [Retry] asks again.
//
// [mcphybrid.Session.Save]: https://pkg.go.dev/github.com/mcphybrid/mcphybrid#Session.Save
package store
