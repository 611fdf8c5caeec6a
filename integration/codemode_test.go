package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/codemode"
	"github.com/mcphybrid/mcphybrid/internal/billing"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/tiktoken"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A codeTask is a task of ten calls, as a model does it by single calls and by scripts.
type codeTask struct {
	name    string
	ask     string
	calls   func(dir string) []modelCall // one in each answer
	scripts func(dir string) []string    // one in each answer
	answer  string                       // what the last script returns
}

type modelCall struct {
	name string
	args map[string]any
}

const people = 10

// orders are the files of the first task: some 2 KB each, as an export has them.
func orders(n int) string {
	var list []map[string]any
	for i := range 12 {
		list = append(list, map[string]any{
			"id": fmt.Sprintf("ord_%03d%02d", n, i), "status": []string{"open", "paid", "shipped"}[(n+i)%3], "total": 100*n + i,
			"currency": "EUR", "customer": fmt.Sprintf("cus_%d", n*7+i), "lines": []string{"article " + fmt.Sprint(i), "delivery"}, "note": "Delivered to the front desk, signed for.",
		})
	}
	raw, _ := json.MarshalIndent(list, "", "  ")
	return string(raw)
}

var codeTasks = []codeTask{
	{
		name: "read ten files, want a sum",
		ask:  "What do the open orders in the ten files orders0.json to orders9.json come to?",
		calls: func(dir string) (list []modelCall) {
			for i := range people {
				list = append(list, modelCall{"mcp_filesystem__read_text_file", map[string]any{"path": filepath.Join(dir, fmt.Sprintf("orders%d.json", i))}})
			}
			return list
		},
		scripts: func(dir string) []string {
			return []string{
				`return search("select:mcp_filesystem__read_text_file")`,
				`let sum = 0;
for (let i = 0; i < 10; i++) {
  const {content} = await tools.mcp_filesystem__read_text_file({path: ` + "`" + dir + "/orders${i}.json`" + `});
  for (const order of JSON.parse(content)) if (order.status === "open") sum += order.total;
}
return sum;`,
			}
		},
		answer: "18216",
	},
	{
		name: "look up ten people, want a list",
		ask:  "Which of the ten people person0 to person9 in the knowledge graph work from Lisbon?",
		calls: func(string) (list []modelCall) {
			for i := range people {
				list = append(list, modelCall{"mcp_memory__open_nodes", map[string]any{"names": []string{fmt.Sprintf("person%d", i)}}})
			}
			return list
		},
		scripts: func(string) []string {
			return []string{
				`return search("open nodes of the knowledge graph by name", 2)`,
				`const found = [];
for (let i = 0; i < 10; i++) {
  const {entities} = await tools.mcp_memory__open_nodes({names: [` + "`person${i}`" + `]});
  for (const e of entities) {
    if (e.observations.some(o => o.includes("Lisbon"))) found.push(e.name);
  }
}
return found;`,
			}
		},
		answer: `["person1","person5","person9"]`,
	},
	{
		name: "read a list, write eight entities and a file",
		ask:  "Put each person of people.csv into the knowledge graph with the team as an observation, and write the number of people to count.txt.",
		calls: func(dir string) []modelCall {
			list := []modelCall{{"mcp_filesystem__read_text_file", map[string]any{"path": filepath.Join(dir, "people.csv")}}}
			for i := range 8 {
				list = append(list, modelCall{"mcp_memory__create_entities", map[string]any{"entities": []map[string]any{{"name": fmt.Sprintf("name%d", i), "entityType": "person", "observations": []string{fmt.Sprintf("team %d", i%3)}}}}})
			}
			return append(list, modelCall{"mcp_filesystem__write_file", map[string]any{"path": filepath.Join(dir, "count.txt"), "content": "8"}})
		},
		scripts: func(dir string) []string {
			return []string{
				`return search("select:mcp_filesystem__read_text_file,mcp_memory__create_entities,mcp_filesystem__write_file")`,
				`const {content} = await tools.mcp_filesystem__read_text_file({path: "` + dir + `/people.csv"});
const rows = content.trim().split("\n").slice(1).map(line => line.split(","));
for (const [name, team] of rows) {
  await tools.mcp_memory__create_entities({entities: [{name, entityType: "person", observations: [team]}]});
}
await tools.mcp_filesystem__write_file({path: "` + dir + `/count.txt", content: String(rows.length)});
return rows.length;`,
			}
		},
		answer: "8",
	},
}

// Three tasks of ten calls each take by scripts at most a quarter of what they take by single calls:
// of the tokens of all requests together, and of their prices with the provider's cache, where a
// token that the model writes costs as much as five that it reads.
func TestCodeModeTokens(t *testing.T) {
	counter, err := tiktoken.New("o200k_base")
	require.NoError(t, err)
	for _, task := range codeTasks {
		t.Run(task.name, func(t *testing.T) {
			var single, script map[string]price
			t.Run("single calls", func(t *testing.T) { single = playTask(t, task, false, counter) })
			t.Run("scripts", func(t *testing.T) { script = playTask(t, task, true, counter) })
			for _, r := range codeRules {
				rule, by, of := r.Name, single[r.Name], script[r.Name]
				share := (of.input + 5*of.output) / (by.input + 5*by.output)
				t.Logf("%-26s single calls %8.0f + %5.0f  scripts %8.0f + %5.0f  share %5.1f %%", rule, by.input, by.output, of.input, of.output, 100*share)
				assert.LessOrEqual(t, share, 0.25, rule)
			}
		})
	}
}

var codeRules = []billing.Rule{billing.NoCache, billing.Anthropic, billing.Anthropic55Automatic}

// A price is in tokens of input: those of a cache count by what they cost.
type price struct{ input, output float64 }

// playTask plays a task and returns its price by rule.
func playTask(t *testing.T, task codeTask, byScript bool, counter *tiktoken.Counter) map[string]price {
	dir, err := os.MkdirTemp(runDir, "") // a short name, as that of a user's folder
	require.NoError(t, err)
	for i := range people {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("orders%d.json", i)), []byte(orders(i)), 0o600))
	}
	csv := "name,team\n"
	for i := range 8 {
		csv += fmt.Sprintf("name%d,team %d\n", i, i%3)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "people.csv"), []byte(csv), 0o600))
	mgr := newManager(t, filesystem(dir), memory(filepath.Join(dir, "memory.json")), everything())
	require.NoError(t, mgr.AddTools("code", codemode.Tool(nil)))
	require.NoError(t, mgr.Start(t.Context()))
	var graph []map[string]any
	for i := range people {
		city := []string{"Porto", "Lisbon", "Faro", "Braga"}[i%4]
		graph = append(graph, map[string]any{"name": fmt.Sprintf("person%d", i), "entityType": "person", "observations": []string{
			"works from " + city, "joined in the spring of 2021 after four years in consulting", "prefers written questions over meetings", "looks after the deployment of the billing service",
		}})
	}
	call(t, mgr, "mcp_memory__create_entities", map[string]any{"entities": graph})

	access := mcphybrid.Access{}
	calls := task.calls(dir)
	if byScript {
		access.Allow = []string{"mcp_code__run_script", mcphybrid.PageToolName}
		calls = nil
		for _, s := range task.scripts(dir) {
			calls = append(calls, modelCall{"mcp_code__run_script", map[string]any{"script": s}})
		}
	} else {
		access.Deny = []string{"mcp_code__*"}
	}
	work := mgr.NewSession(nil)
	s := work.NewChild(&mcphybrid.SessionOptions{Access: access})
	messages := []json.RawMessage{message("user", map[string]any{"type": "text", "text": task.ask})}
	prices := make(map[string]price)
	accounts := make([]*billing.Account, len(codeRules))
	for i, r := range codeRules {
		accounts[i] = r.Open()
	}
	reader := billing.NewReader(counter.CountTokens)
	last := ""
	for i := range len(calls) + 1 {
		turn, err := s.Turn(provider.Anthropic, "claude-sonnet-5")
		require.NoError(t, err)
		messages = append(messages, turn.Append...)
		body, err := json.Marshal(turn.Body("You are a helpful assistant.", messages))
		require.NoError(t, err)
		request, err := reader.ReadJSON(provider.Anthropic, body)
		require.NoError(t, err)
		written := message("assistant", map[string]any{"type": "text", "text": "Done: " + last})
		if i < len(calls) {
			written = message("assistant", map[string]any{"type": "tool_use", "id": fmt.Sprint("toolu_", i), "name": calls[i].name, "input": calls[i].args})
		}
		for j, r := range codeRules {
			p := prices[r.Name]
			p.input += accounts[j].Bill(request).Price
			p.output += float64(counter.CountTokens(string(written)))
			prices[r.Name] = p
		}
		if i == len(calls) {
			break
		}
		res, err := s.Call(codemode.WithSession(t.Context(), work), calls[i].name, calls[i].args)
		require.NoError(t, err)
		require.False(t, res.IsError, "%s: %s", calls[i].name, text(res))
		last = text(res)
		messages = append(messages, written, toolResult(fmt.Sprint("toolu_", i), res))
	}
	if byScript {
		assert.Equal(t, task.answer, last)
		assert.Equal(t, 10, work.Stats().Usage.Calls)
		assert.Empty(t, s.ActiveTools())
	}
	return prices
}

func message(role string, block any) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"role": role, "content": []any{block}})
	return raw
}

func toolResult(id string, res *mcp.CallToolResult) json.RawMessage {
	return message("user", map[string]any{"type": "tool_result", "tool_use_id": id, "content": text(res)})
}
