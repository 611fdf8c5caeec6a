package adaptertest

import (
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
)

// search changes a script for a model that searches by OpenAI's tool_search. What it finds
// is in a namespace of its server; what it calls by name without a search is not.
func search(steps []modeltest.Step) {
	first := steps[0].Tools
	first[slices.Index(first, mcphybrid.SearchToolName)] = modeltest.ToolSearch
	loaded := make(map[string]string) // namespaces of tools
	for i := range steps {
		st := &steps[i]
		for k := range st.Calls {
			c := &st.Calls[k]
			c.Namespace = loaded[c.Name]
			if c.Name != mcphybrid.SearchToolName {
				continue
			}
			c.Name = modeltest.ToolSearch
			found := steps[i+1].Tools
			for j, name := range found {
				server, _, _ := strings.Cut(name, "__")
				loaded[name], found[j] = server, server
			}
		}
	}
}
