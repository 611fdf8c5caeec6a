package adaptertest

import (
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
)

// bridge changes a script for a model that finds and calls tools by fixed ones. It still
// calls one by its name, and once asks for a definition too.
func bridge(steps []modeltest.Step) {
	inline := steps[0].Tools
	for i := range steps {
		st := &steps[i]
		st.Tools = nil
		if st.User == miles {
			continue
		}
		for k, c := range st.Calls {
			if !slices.Contains(inline, c.Name) {
				st.Calls[k] = modeltest.Call{Name: mcphybrid.CallToolName, Arguments: fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.Name, c.Arguments)}
			}
		}
		if st.User == meet {
			st.Calls = append(st.Calls, modeltest.Call{Name: mcphybrid.DescribeToolName, Arguments: `{"names":["mcp_desk__kilometers_to_miles"]}`})
			steps[i+1].Results = append(steps[i+1].Results, `"value":{"type":"number"}`)
		}
	}
	steps[0].Tools = append(inline, mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.PageToolName)
}
