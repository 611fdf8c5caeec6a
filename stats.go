package mcphybrid

// Stats counts what a session sees, and what it costs.
type Stats struct {
	Servers  int // that have tools
	Tools    int // inline, deferred and active
	Inline   int
	Deferred int // not active
	Active   int
	Tokens   TokenStats
}

// TokenStats estimates tokens as a quarter of the bytes, rounded up: over 866
// published tools that is 7 % more than the tokens of OpenAI's o200k in sum,
// and within 36 % for each.
type TokenStats struct {
	All      int // the definitions of all tools: what a request costs without deferring
	Inline   int // those of the inline tools and, in search mode, the search tool
	Active   int // those of the active tools
	Sections int // the prompt sections
}

// Stats returns the session's figures.
func (s *Session) Stats() Stats {
	v := s.view()
	var st Stats
	servers := make(map[string]bool)
	active := v.activeSet()
	for _, t := range v.tools {
		if !v.sees(t) {
			continue
		}
		servers[t.def.server] = true
		tokens := definitionTokens(t)
		st.Tools++
		st.Tokens.All += tokens
		switch {
		case v.byName[t.name].inline:
			st.Inline++
			st.Tokens.Inline += tokens
		case active[t]:
			st.Active++
			st.Tokens.Active += tokens
		default:
			st.Deferred++
		}
	}
	if v.searchMode() {
		st.Tokens.Inline += definitionTokens(s.searchTool)
	}
	st.Servers = len(servers)
	st.Tokens.Sections = tokens(len(s.inlineSection(v)) + len(s.searchSection(v)))
	return st
}

// definitionTokens estimates what t costs in a list of tools, as
// {"name":"…","description":"…","inputSchema":…}.
func definitionTokens(t Tool) int {
	const frame = len(`{"name":"","description":"","inputSchema":},`)
	return tokens(frame + len(t.Name()) + len(t.Description()) + len(t.InputSchema()))
}

func tokens(bytes int) int { return (bytes + 3) / 4 }
