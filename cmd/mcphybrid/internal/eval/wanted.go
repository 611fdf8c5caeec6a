package eval

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

// maxFile is the largest file of queries or hints over running servers, in bytes.
const maxFile = 16 << 20

// readBounded reads a file of at most maxFile bytes.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		err = fmt.Errorf("%s: it has more than %d bytes, the limit", path, maxFile)
	}
	return data, err
}

// parseWanted reads queries over running servers. Each line is a JSON object:
//
//	{"query": …, "relevant": [names of tools], "id": …}
//
// Further members are ignored. Any of the tools is right; see [catalog.find] for their
// names. [] says that no tool answers. An id is only for reports: no other line has it,
// and without one it is "line 3".
func parseWanted(path string, data []byte) ([]query, error) {
	return parseLines(path, data, func(q *query, line int) (id string, err error) {
		q.line, q.ID = line, cmp.Or(q.ID, fmt.Sprintf("line %d", line))
		return q.ID, q.check()
	})
}

// A catalog has the tools of running servers, by each of their names.
type catalog struct {
	tools []*mcphybrid.BridgeTool               // that a search may find
	named [3]map[string][]*mcphybrid.BridgeTool // by server/tool, by registered name, by own name
}

func newCatalog(placements []mcphybrid.Placement) *catalog {
	c := &catalog{}
	for i := range c.named {
		c.named[i] = make(map[string][]*mcphybrid.BridgeTool)
	}
	for _, p := range placements {
		if p.Standing == "hidden" {
			continue
		}
		c.tools = append(c.tools, p.Tool)
		for i, name := range []string{findability.Label(p.Tool), p.Tool.Name(), p.Tool.OriginalName()} {
			c.named[i][name] = append(c.named[i][name], p.Tool)
		}
	}
	return c
}

// find returns the tools that a name means: server/tool, or the registered name, or else
// the tools of that name on any server.
func (c *catalog) find(name string) ([]*mcphybrid.BridgeTool, error) {
	for _, named := range c.named {
		if tools := named[name]; tools != nil {
			return tools, nil
		}
	}
	near := nearest.Names(name, c.labels(), 3)
	if near == nil {
		return nil, fmt.Errorf("no server has a tool %q that may be used", name)
	}
	return nil, fmt.Errorf("no server has a tool %q that may be used; near it are %s", name, strings.Join(near, ", "))
}

func (c *catalog) labels() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range c.tools {
			if !yield(findability.Label(t)) {
				return
			}
		}
	}
}

// wanted returns the tools of each query.
func (c *catalog) wanted(path string, queries []query) ([][]*mcphybrid.BridgeTool, error) {
	if len(c.tools) == 0 {
		return nil, errors.New("no server has a tool that may be used")
	}
	list := make([][]*mcphybrid.BridgeTool, len(queries))
	for i, q := range queries {
		for _, name := range q.Relevant {
			tools, err := c.find(name)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, q.line, err)
			}
			list[i] = append(list[i], tools...)
		}
	}
	return list, nil
}
