package mcphybrid

// What a host says and reads of trust: the policy, and the error. review.go holds definitions back
// and accepts them, internal/trust remembers them, and trustHash in serverdefinition.go says what
// counts as a change.

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/scan"
)

// A TrustPolicy says what the Manager does when a server changes the definition
// of a tool: its title, description, schemas, annotations, or what its _meta asks
// of clients. A server that looked harmless when a person approved it may later
// change a definition to steer the model.
type TrustPolicy string

const (
	TrustOff  TrustPolicy = "off"  // ignore the change
	TrustWarn TrustPolicy = "warn" // report it as a [ChangedError]

	// TrustQuarantine reports the change and holds the tool back until
	// [Manager.Accept]. Until then it also holds back the tools that the server
	// adds: one of them could be the changed tool under another name.
	TrustQuarantine TrustPolicy = "quarantine"

	// TrustApprove is TrustQuarantine, and holds back every tool that a server
	// adds after its first list, also one that a process with another policy, which shares
	// [Options.TrustStore], knows already.
	TrustApprove TrustPolicy = "approve"
)

var trustPolicies = []TrustPolicy{TrustOff, TrustWarn, TrustQuarantine, TrustApprove}

// holds reports whether p holds tools back.
func (p TrustPolicy) holds() bool { return p == TrustQuarantine || p == TrustApprove }

func (p TrustPolicy) caution() trust.Caution {
	switch p {
	case TrustQuarantine:
		return trust.Suspect
	case TrustApprove:
		return trust.Always
	}
	return trust.Never
}

// A ChangedError reports a tool, a resource, a template of resources, a prompt or a skill whose
// definition differs from the one that was first seen, or last accepted, or a new one
// that is held back; likewise the instructions of a server. [Manager.Problems] returns it.
type ChangedError struct {
	Server, Tool string          // Tool is the own name of a tool or a prompt, a URI or its template, that of a skill's SKILL.md, or "instructions"
	Kind         string          // "tool", "resource", "resource template", "prompt", "skill", or "text" for instructions
	Name         string          // the registered name; "" for instructions
	Quarantined  bool            // it is held back: it can't be shown or called
	Added        bool            // it is new, and no definition of it is known
	Since        time.Time       // when the known definition was first seen or accepted; zero if there is none
	Was, Is      string          // hashes of the known and of the new definition; Was is empty if there is none
	By           TrustPolicy     // the milder policy under which who shares TrustStore, or did, knows an added one; "" if nobody does
	Definition   json.RawMessage // the new element of the list, or an object with the instructions as description; don't trust its content

	def  *definition       // of a tool
	hide func(error) error // or nil
}

// Error returns one line, in which the secrets of the server's configuration are
// hidden.
func (e *ChangedError) Error() string {
	line := "mcphybrid: " + trust.Change{Kind: e.Kind, Name: e.Tool, Server: e.Server, Added: e.Added, Since: e.Since, Was: e.Was, Is: e.Is}.String()
	if e.Quarantined {
		line += "; " + ErrQuarantined.Error()
	}
	if e.hide != nil {
		line = e.hide(errors.New(line)).Error()
	}
	return line
}

// Unwrap returns [ErrQuarantined] if the tool is held back.
func (e *ChangedError) Unwrap() error {
	if e.Quarantined {
		return ErrQuarantined
	}
	return nil
}

// Marks returns the suspicious text in the new definition, like [Manager.Marks]
// but without the names of other servers' tools.
func (e *ChangedError) Marks() []scan.Mark {
	if e.Kind == resources.Skill.String() {
		return scan.Definition(skillAsDefinition(e.Definition), nil)
	}
	return scan.Definition(e.Definition, nil)
}

// skillAsDefinition returns what a list says of a skill in the form of a definition, which can
// be scanned for suspicious text.
func skillAsDefinition(raw json.RawMessage) json.RawMessage {
	values, _ := text.Fields(raw, "frontmatter")
	return values[0]
}
