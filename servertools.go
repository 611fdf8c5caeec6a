package mcphybrid

import (
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/search"
)

// A catalog's tools are a list of each server's tools, one server after the other. From one
// catalog to the next, most servers stay as they are, and cost next to nothing:
//
//	servers   a b c          a b d
//	tools     a1 a2 b1 c1    a1 a2 b1 d1    the first three are shared

// A serverTools is what catalogs take of one server, or of a group of tools without a
// connection. It never changes: catalogs share it until the server lists something else.
type serverTools struct {
	server string            // its name
	hide   func(error) error // hides the server's secrets in a problem

	defs     []*definition       // the tools that are not in quarantine, permitted by [Options.Access] or not
	tools    []*BridgeTool       // those that are permitted and for the model, in the server's order
	appTools []*BridgeTool       // those that are permitted and not for the model
	entries  []*resources.Entry  // what else it listed, some of it in quarantine
	changed  []*ChangedError     // what has changed
	problems []error             // others
	needs    map[string][]string // see [ServerConfig.Needs]; nil before the server has listed its tools

	selects map[string]string // see [ServerConfig.ResultSelect]

	instructions string // that may be shown, or ""
	gist         string // of them, in a line

	skilled      bool // it has skills, listed or not
	unlisted     bool // see [ServerConfig.UnlistedResources]
	lists        bool // its tools are known, even if there are none
	declares     bool // a tool says what it needs
	alwaysLoaded bool // a tool is to be always loaded

	number  int            // of the prefix of its names; no other server with tools in a list has it
	indexOf map[string]int // index in tools, by registered name
	version uint64         // of the tools; no other serverTools has it

	once sync.Once
	said *saved.Server // set by once: see line
}

// makeTools makes the tools of the definitions that access permits. It keeps those of old, if
// not nil, whose definition and instructions are the same.
func (s *serverTools) makeTools(owner *owner, access rules.Access, old *serverTools) {
	words := searchedInstructions(s.instructions)
	var tools []*BridgeTool
	for _, d := range s.defs {
		if !access.Permits(d.subject()) {
			continue
		}
		t := &BridgeTool{name: d.registered, def: d, owner: owner, selects: s.selects[d.Own]}
		if words != "" {
			t.instructionWords = &instructionWords{words: words}
		}
		if old != nil {
			if same := old.tool(t.name); same != nil && same.def == d && old.instructions == s.instructions {
				t = same
			}
		}
		if !d.Apps.model {
			s.appTools = append(s.appTools, t)
			continue
		}
		tools = append(tools, t)
		s.declares, s.alwaysLoaded = s.declares || d.Needs != nil || d.BadNeeds != nil, s.alwaysLoaded || d.Always
	}
	s.setTools(tools)
}

// setTools sets the tools.
func (s *serverTools) setTools(tools []*BridgeTool) {
	s.tools, s.indexOf = tools, make(map[string]int, len(tools))
	for i, t := range tools {
		s.indexOf[t.name] = i
	}
	s.version = toolVersions.Add(1)
}

// toolVersions counts what is made of servers' lists, so that each has a number that outlives it.
var toolVersions atomic.Uint64

// tool returns the tool with that registered name, or nil.
func (s *serverTools) tool(name string) *BridgeTool {
	if i, ok := s.indexOf[name]; ok {
		return s.tools[i]
	}
	return nil
}

// onlyTools reports whether there is nothing beside definitions.
func (s *serverTools) onlyTools() bool {
	return len(s.entries)+len(s.changed)+len(s.problems)+len(s.needs) == 0 && !s.skilled && !s.unlisted
}

// hasMore reports whether the server has more for a catalog than its tools' names: problems,
// resources, needs.
func (s *serverTools) hasMore() bool { return s.declares || !s.onlyTools() }

// line returns what sections say of all tools, of which there must be one. All that mention the server
// share it.
func (s *serverTools) line() *saved.Server {
	s.once.Do(func() {
		s.said = s.lineOf(s.tools)
		subject := search.Topic{Server: s.server}
		for _, t := range s.tools {
			subject.Add(t.def.Own)
		}
		s.said.About = subject.String()
	})
	return s.said
}

// lineOf returns what sections say of some of the tools, but for what these are about.
func (s *serverTools) lineOf(tools []*BridgeTool) *saved.Server {
	return &saved.Server{Server: tools[0].def.Server, Tools: len(tools), Tool: tools[0].def.subject(), Gist: s.gist}
}
