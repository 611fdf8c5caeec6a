package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Host declares what the code of the pages relies on: what every host has, and the README's
// own mgr and sess. The README lists them above its first code.
const Host = `package host

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
)

var (
	ctx      context.Context
	base     string    // the host's own system prompt
	messages []json.RawMessage // the conversation so far, as the provider takes it
	message  string    // the user's last one
	model    Model     // the client of a model provider

	cfg  *config.File
	opts mcphybrid.Options
	mgr  *mcphybrid.Manager
	sess *mcphybrid.Session
	turn mcphybrid.Turn // of the next request
)

type (
	ToolCall struct{ ID, Name, Arguments string }

	Reply struct {
		Messages  []json.RawMessage // what the model said, as it is sent again
		ToolCalls []ToolCall
	}

	Model struct{}
)

// Send sends a request, to whose body it adds the model and the like.
func (Model) Send(body map[string]any) Reply { return Reply{} }

// toolResult returns the message that answers a call.
func toolResult(call ToolCall, res *mcp.CallToolResult) json.RawMessage { return nil }
`

// Imports are the packages that parts of programs may use, by name. An import clause
// would be noise in each block.
var Imports = map[string]string{
	"client":    "github.com/mark3labs/mcp-go/client",
	"strings":   "strings",
	"ask":       "github.com/mcphybrid/mcphybrid/ask",
	"config":    "github.com/mcphybrid/mcphybrid/config",
	"context":   "context",
	"errors":    "errors",
	"fmt":       "fmt",
	"http":      "net/http",
	"json":      "encoding/json",
	"log":       "log",
	"mcp":       "github.com/mark3labs/mcp-go/mcp",
	"server":    "github.com/mark3labs/mcp-go/server",
	"slog":      "log/slog",
	"time":      "time",
	"search":    "github.com/mcphybrid/mcphybrid/search",
	"store":     "github.com/mcphybrid/mcphybrid/store",
	"vector":    "github.com/mcphybrid/mcphybrid/vector",
	"debug":     "github.com/mcphybrid/mcphybrid/debug",
	"mcphybrid": "github.com/mcphybrid/mcphybrid",
	"provider":  "github.com/mcphybrid/mcphybrid/provider",
	"files":     "github.com/mcphybrid/mcphybrid/files",
	"jq":        "github.com/mcphybrid/mcphybrid/jq",
}

// Whole reports whether p is a program, and not a part of one.
func (p Piece) Whole() bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", p.Text, parser.PackageClauseOnly)
	return p.Kind == "go" && err == nil && file.Name.Name == "main"
}

// File returns p, a piece of Go, as a file. A part of a program is the body of a function,
// in the package of [Host], with imports of what it uses. The compiler's errors have the
// places of the page.
func (p Piece) File() string {
	if p.Whole() {
		return fmt.Sprintf("//line %s:%d:1\n%s", p.Path, p.Line, p.Text)
	}
	body := fmt.Sprintf("func _() {\n//line %s:%d:1\n%s}\n", p.Path, p.Line, p.Text)
	file, _ := parser.ParseFile(token.NewFileSet(), "", "package host\n"+body, 0)
	used := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && Imports[x.Name] != "" {
				used[x.Name] = true
			}
		}
		return true
	})
	var clause strings.Builder
	for _, name := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&clause, "import %s %q\n", name, Imports[name])
	}
	return "package host\n" + clause.String() + body
}
