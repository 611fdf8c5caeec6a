package mcphybrid

import "slices"

// The indexes that a search of a session asks: one for each catalog, and one for the tools that no catalog
// has indexed. searchsides.go asks them.

// A searchPart is one index of tools that a session sees.
type searchPart struct {
	*catalog
	verdicts *verdicts
	semantic *semantic                        // searches these tools by meaning, or nil
	may      func(*BridgeTool, standing) bool // reports which tools may be found
	only     []bool                           // which documents, or nil for all
	among    []int                            // the same documents
}

// parts returns the indexes in which at least one tool may be found, of one of these
// servers if there are any. The tools that the catalogs have not indexed have an index of
// their own.
func (v *view) parts(among func(*BridgeTool, standing) bool, servers ...string) (list []searchPart) {
	may := v.seenBy(among)
	left := false
	for i, c := range slices.Backward(v.catalogs) {
		list = append(list, v.partOf(i, c, may))
		for _, j := range c.split().unindexed {
			left = left || may(c.tools[j], v.verdicts[i].ofTool(j).standing)
		}
	}
	if left {
		rest := searchPart{catalog: v.unindexed(), may: may}
		of := new(serverVerdicts)
		for _, t := range rest.tools {
			of.of = append(of.of, verdict{standing: v.standing(t)})
		}
		rest.verdicts = &verdicts{catalog: rest.catalog, servers: []*serverVerdicts{of}}
		list = append(list, rest)
	}
	return ofServers(list, servers)
}

// partsWithInline is parts with one index of all tools of each catalog.
func (v *view) partsWithInline(among func(*BridgeTool, standing) bool, servers ...string) (list []searchPart) {
	may := v.seenBy(among)
	for i, c := range slices.Backward(v.catalogs) {
		list = append(list, v.partOf(i, c.withInline(), may))
	}
	return ofServers(list, servers)
}

// partOf returns the part that has the tools of the i-th catalog, which c is, or c with
// another index.
func (v *view) partOf(i int, c *catalog, may func(*BridgeTool, standing) bool) searchPart {
	return searchPart{catalog: c, verdicts: &v.verdicts[i], semantic: v.tenant.of(c.owner).semantic, may: may}
}

// ofServers limits parts to the tools of these servers, if there are any, and drops those in
// which no tool may be found.
func ofServers(parts []searchPart, servers []string) (list []searchPart) {
	for _, p := range parts {
		if len(servers) > 0 {
			p.limit(servers)
		}
		if p.keepsAny() {
			list = append(list, p)
		}
	}
	return list
}

// keepsAny reports whether a tool may be found in p.
func (p *searchPart) keepsAny() bool {
	if p.only != nil {
		return slices.ContainsFunc(p.among, p.keep)
	}
	for doc := range p.indexed() {
		if p.keep(doc) {
			return true
		}
	}
	return false
}

// limit limits p to the tools of these servers.
func (p *searchPart) limit(servers []string) {
	p.only = make([]bool, len(p.indexed()))
	for _, pattern := range servers {
		p.among = append(p.among, p.servers().matching(pattern)...)
	}
	for _, doc := range p.among {
		p.only[doc] = true
	}
}

func (p *searchPart) keep(doc int) bool {
	if p.only != nil && !p.only[doc] {
		return false
	}
	i := p.indexed()[doc]
	return p.may(p.tools[i], p.verdicts.ofTool(i).standing)
}

func (p *searchPart) keepNamed(name string) bool {
	i, ok := p.indexOf(name)
	if !ok {
		return false
	}
	doc, ok := slices.BinarySearch(p.indexed(), i) // a store may have more than is indexed
	return ok && p.keep(doc)
}

func (p *searchPart) document(doc int) *BridgeTool { return p.tools[p.indexed()[doc]] }
