package snapshot

import (
	"fmt"
	"time"
)

// A LossCause says why a request could not read what the provider's cache had.
type LossCause string

const (
	LossCompact  LossCause = "compact"  // Compact was called, so the list of tools began anew
	LossTools    LossCause = "tools"    // the session's list of tools has grown, or a tool in it went into quarantine
	LossSections LossCause = "sections" // the session's prompt sections have grown
	LossPause    LossCause = "pause"    // the response before is more than 5 minutes ago; providers keep a cache about that long by default
	LossProvider LossCause = "provider" // the session knows of nothing that would explain Loss.Miss
	LossUnknown  LossCause = "unknown"  // the host changed the conversation, or the provider evicted it
)

var lossTexts = map[LossCause]string{
	LossCompact:  "Compact was called",
	LossTools:    "the list of tools has changed",
	LossSections: "the prompt sections have changed",
	LossPause:    "the response before is more than 5 minutes ago",
	LossUnknown:  "the host changed the conversation, or the provider evicted it",
}

// A Loss tells of a request that read less from the provider's cache than the request
// before it in the session had left there.
//
// The request before is taken to have left in the cache the tokens that it read and wrote
// or, once a provider that caches by itself (see provider.Usage.Automatic) has read any
// in this session, all of its input. A request
// that has less input can read only so much. It is a loss if more than 1,152 of these
// tokens were not read: providers cache no prompt below 1,024 tokens, and OpenAI caches
// in steps of 128. So the first request loses nothing. Nor does any request if the
// provider never reports cached tokens: it caches nothing, or does not tell.
type Loss struct {
	At     time.Time // of the call of mcphybrid.Session.CountUsage
	Tokens int       // that were not read though the cache had them; more than 1,152

	// Cause is what the session knows of: the first in the order of the constants
	// which the provider's reason does not rule out. The session can't know whether the
	// host used what it showed, such as the sections.
	Cause LossCause
	Miss  string // see provider.Usage; "" if the provider gave no reason
}

// Why says the cause, and the provider's reason, in a line for people.
func (l Loss) Why() string {
	why := lossTexts[l.Cause]
	if l.Miss == "" {
		return why
	}
	if why != "" {
		why += "; "
	}
	return why + fmt.Sprintf("the provider says %q", l.Miss)
}
