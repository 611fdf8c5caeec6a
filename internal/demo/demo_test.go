package demo

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func connect(t *testing.T, s *server.MCPServer) *client.Client {
	c, err := client.NewInProcessClient(s)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.Start(t.Context()))
	_, err = c.Initialize(t.Context(), mcp.InitializeRequest{})
	require.NoError(t, err)
	return c
}

// call returns the text of a result, behind "error: " if it is one.
func call(t *testing.T, c *client.Client, tool, args string) string {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, json.RawMessage(args)
	result, err := c.CallTool(t.Context(), req)
	require.NoError(t, err)
	text := mcp.GetTextFromContent(result.Content[0])
	if result.IsError {
		return "error: " + text
	}
	return text
}

func TestWorks(t *testing.T) {
	files, math, text := connect(t, Files()), connect(t, Math()), connect(t, Text())
	for _, step := range []struct {
		on               *client.Client
		tool, args, want string
	}{
		{files, "write_file", `{"path":"a/b.txt","content":"é"}`, "Wrote 2 bytes to a/b.txt."},
		{files, "write_file", `{"path":"./a/b.txt","content":""}`, "error: ./a/b.txt exists; set overwrite to replace it"},
		{files, "read_file", `{"path":"a/b.txt"}`, "é"},
		{files, "write_file", `{"path":"a/b.txt","content":"hi","overwrite":true}`, "Wrote 2 bytes to a/b.txt."},
		{files, "read_file", `{"path":"a/b.txt","encoding":"base64"}`, "aGk="},
		{files, "read_file", `{"path":"c"}`, "error: c does not exist"},
		{text, "csv_to_json", `{"csv":"a,b\n1,true\nnull,\"x\ny\"\n"}`, `[{"a":"1","b":"true"},{"a":"null","b":"x\ny"}]`},
		{text, "csv_to_json", `{"csv":"a;b\n1;true\nnull;x\n","delimiter":";","infer_types":true}`, `[{"a":1,"b":true},{"a":"null","b":"x"}]`},
		{text, "csv_to_json", `{"csv":""}`, "[]"},
		{text, "csv_to_json", `{"csv":"a,b\n1"}`, "error: record on line 2: wrong number of fields"},
		{math, "solve_linear_system", `{"matrix":[[0,1],[2,1]],"constants":[3,5]}`, "[1,3]"},
		{math, "solve_linear_system", `{"matrix":[[1,2],[2,4]],"constants":[1,2]}`, "error: the system has no unique solution"},
		{math, "solve_linear_system", `{"matrix":[[1,2],[2]],"constants":[1,2]}`, "error: the matrix is not square"},
		{math, "solve_linear_system", `{"matrix":[[1]],"constants":[1,2]}`, "error: there are 1 equations, but 2 constants"},
	} {
		assert.Equal(t, step.want, call(t, step.on, step.tool, step.args), "%s %s", step.tool, step.args)
	}
	assert.Contains(t, call(t, text, "csv_to_json", `{"csv":5}`), "error: ", "its schema wants a string")
}

// A tool that does not work says so. All others are those of the package's doc.
func TestTools(t *testing.T) {
	total, works := 0, []string{}
	for _, s := range []*server.MCPServer{Files(), Issues(), Math(), Text(), Clock(), Units(), Notes()} {
		for _, tool := range s.ListTools() {
			total++
			assert.NotEmpty(t, tool.Tool.Description, tool.Tool.Name)
			assert.NotNil(t, tool.Tool.Annotations.ReadOnlyHint, tool.Tool.Name)
			for name, property := range tool.Tool.InputSchema.Properties {
				assert.NotEmpty(t, property.(map[string]any)["description"], "%s: %s", tool.Tool.Name, name)
			}
			var req mcp.CallToolRequest
			req.Params.Name = tool.Tool.Name
			result, err := tool.Handler(t.Context(), req)
			require.NoError(t, err)
			if text := mcp.GetTextFromContent(result.Content[0]); !result.IsError || text != tool.Tool.Name+" is not implemented in this demo" {
				works = append(works, tool.Tool.Name)
			}
		}
	}
	assert.Equal(t, 150, total)
	assert.ElementsMatch(t, []string{"read_file", "write_file", "csv_to_json", "solve_linear_system"}, works)
}
