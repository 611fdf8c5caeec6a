package config

import "time"

// Limits bound what servers may take and send: see mcphybrid.Options.Limits. Zero means the
// default, and mcphybrid.NoLimit means no limit, unless the doc of a field says otherwise.
type Limits struct {
	// StartTimeout and CallTimeout hold for servers that have none of their
	// own. They default to 20 seconds (mcphybrid.DefaultStartTimeout) and 60 seconds, and
	// must not be negative.
	StartTimeout time.Duration
	CallTimeout  time.Duration

	// IdleTimeout is how long a server runs without a call before it is
	// stopped; the next call starts it again. Servers in this process are not
	// stopped. If zero or negative, none is.
	IdleTimeout time.Duration

	// Reconnect is how long after a server was lost, or could not be started,
	// it is started again; after each further failure twice as long, up to a
	// minute. A connection that lasted less than a minute counts as a failure, too.
	// If a server was lost, a call of one of its tools starts it at once and waits
	// for it. If the last start failed, the call fails at once; it starts the server
	// in the background if Reconnect has passed.
	//
	// It defaults to 500 ms. If negative, a server that is down stays
	// down, and calls of its tools fail at once, until mcphybrid.Manager.Restart or
	// Login. A call still starts one that rests after IdleTimeout, or that
	// is known from mcphybrid.Options.Cache and was not tried yet.
	Reconnect time.Duration

	// Refresh is how often the tools of a server are listed, besides whenever
	// it says that they have changed. It defaults to 5 minutes. If
	// negative, they are listed only then. If the server says how long its lists are
	// fresh, that counts in its place, from 10 seconds to an hour.
	Refresh time.Duration

	// MaxValues is how many values a message of a server may have, such as a result:
	// members, elements, arrays and objects. They take memory when the message is decoded,
	// up to 175 bytes each, and so up to 84 MB. It defaults to 500,000 and must not be
	// negative. An answer with more is an error of its call. A list may have more, as its
	// elements are decoded one by one.
	MaxValues int

	// MaxMessage is how many bytes a message of a server may have, such as a
	// result. MaxDefinition is how many the definition of one tool, resource or
	// prompt may have. MaxTools is how many of these together a server may list,
	// on at most MaxPages pages. They default to 16 MiB,
	// 256 KiB, 10,000 and 1,000, and must not be negative.
	MaxMessage    int
	MaxDefinition int
	MaxTools      int
	MaxPages      int

	// MaxListing is how many bytes all that one server lists may have together, and
	// MaxCatalog how many all that all servers list; each user's servers are
	// counted apart. A list that exceeds one of them is refused: the server keeps
	// its earlier list, or can't be started. They default to
	// 16 MiB and 64 MiB, and must not be negative.
	MaxListing int
	MaxCatalog int

	// MaxSubscriptions is how many resources of a server sessions may be subscribed to at
	// once: see mcphybrid.Session.SubscribeResource. With protocol 2026-07-28 over HTTP, each is a
	// stream. It defaults to 256 and must not be negative.
	MaxSubscriptions int

	// MaxTimeouts is how many calls in a row a server may leave without an answer
	// within their timeout. Then its calls fail at once with mcphybrid.ErrServerDown, for
	// as long as the call timeout but at most a minute. After this pause one call
	// is sent. If it has no answer either, the next pause is twice as long, up to 8
	// times the first. An answer to any call ends this.
	//
	// It defaults to 3. If negative, calls are always sent.
	MaxTimeouts int

	// MaxUnasked is how many messages a server may send within a second beside
	// its answers: notifications, requests, and what is neither. The
	// connection to one that sends more is given up, as if it was lost.
	// Servers in this process are not counted. It defaults to
	// 1,000 and must not be negative. The bytes of these messages
	// are bounded, too: by MaxMessage at once, and a sixteenth of it per second.
	MaxUnasked int
}
