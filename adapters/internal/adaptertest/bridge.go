package adaptertest

import (
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
)

// bridge changes a script for a model that finds and calls tools by fixed ones. It still
// calls one by its name, and once asks for a definition too.
func bridge(steps []step) {
	inline := steps[0].tools
	for i := range steps {
		st := &steps[i]
		st.tools = nil
		if st.user == miles {
			continue
		}
		for k, c := range st.calls {
			if !slices.Contains(inline, c.name) {
				st.calls[k] = call{name: mcphybrid.CallToolName, arguments: fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.name, c.arguments)}
			}
		}
		if st.user == meet {
			st.calls = append(st.calls, call{name: mcphybrid.DescribeToolName, arguments: `{"names":["mcp_desk__kilometers_to_miles"]}`})
			steps[i+1].results = append(steps[i+1].results, `"value":{"type":"number"}`)
		}
	}
	steps[0].tools = append(inline, mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.PageToolName)
}
