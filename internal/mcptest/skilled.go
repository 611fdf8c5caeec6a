package mcptest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A Skilled server is a real one with tools that also has skills.
type Skilled struct {
	*mcpserver.MCPServer

	Mu     sync.Mutex        // guards the others
	List   []string          // elements of skills/list
	Hidden []string          // elements that skills/get has and skills/list has not
	Gets   []string          // URIs
	Files  map[string]string // by URI
	Blob   bool              // files are sent as blobs
	Reads  []string          // URIs
	Result string            // of skills/list, in place of List
}

func NewSkilled(name string, tools ...mcpserver.ServerTool) *Skilled {
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true), mcpserver.WithResourceCapabilities(false, true),
		mcpserver.WithExtensions(map[string]any{"io.modelcontextprotocol/skills": map[string]any{}}))
	s.AddTools(tools...)
	return &Skilled{MCPServer: s, Files: make(map[string]string)}
}

func (s *Skilled) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var r struct {
		ID     mcp.RequestId
		Method string
		Params struct{ URI string }
	}
	_ = json.Unmarshal(message, &r)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch r.Method {
	case "skills/list":
		result := `{"resultType":"complete","ttlMs":300000,"cacheScope":"public","skills":[` + strings.Join(s.List, ",") + `]}`
		if s.Result != "" {
			result = s.Result
		}
		return mcp.NewJSONRPCResultResponse(r.ID, json.RawMessage(result))
	case "skills/get":
		s.Gets = append(s.Gets, r.Params.URI)
		for _, e := range slices.Concat(s.List, s.Hidden) {
			if strings.HasPrefix(e, fmt.Sprintf(`{"uri":%q,`, r.Params.URI)) {
				return mcp.NewJSONRPCResultResponse(r.ID, json.RawMessage(`{"resultType":"complete","ttlMs":300000,"cacheScope":"public","skill":`+e+`}`))
			}
		}
		return mcp.NewJSONRPCError(r.ID, mcp.INVALID_PARAMS, "No skill is served at "+r.Params.URI, nil)
	case "resources/read":
		text, ok := s.Files[r.Params.URI]
		if !ok {
			break
		}
		s.Reads = append(s.Reads, r.Params.URI)
		if s.Blob {
			return mcp.NewJSONRPCResultResponse(r.ID, mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.BlobResourceContents{URI: r.Params.URI, Blob: base64.StdEncoding.EncodeToString([]byte(text))}}})
		}
		return mcp.NewJSONRPCResultResponse(r.ID, mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: text}}})
	}
	return s.MCPServer.HandleMessage(ctx, message)
}

// Has has the server list a skill of that path, whose front matter has these further members,
// and with these files beside SKILL.md, each a path and a text.
func (s *Skilled) Has(place, text, more string, files ...string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	e := SkillElement(s.Files, place, text, more, files...)
	for i, old := range s.List {
		if strings.Contains(old, `"uri":"skill://`+place+`/SKILL.md","frontmatter"`) {
			s.List[i] = e
			return
		}
	}
	s.List = append(s.List, e)
}

// Hides has the server have a skill, as Has does, that it does not list.
func (s *Skilled) Hides(place, text, more string, files ...string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	e := SkillElement(s.Files, place, text, more, files...)
	s.Hidden = slices.DeleteFunc(s.Hidden, func(old string) bool {
		return strings.HasPrefix(old, `{"uri":"skill://`+place+`/SKILL.md",`)
	})
	s.Hidden = append(s.Hidden, e)
}

// SkillElement returns the element of a list for a skill, and puts its files into to.
func SkillElement(to map[string]string, place, text, more string, files ...string) string {
	name := place[strings.LastIndexByte(place, '/')+1:]
	root := "skill://" + place + "/"
	front := fmt.Sprintf("name: %s\ndescription: Says how to %s\n", name, name)
	var members map[string]json.RawMessage
	_ = json.Unmarshal([]byte("{"+strings.TrimPrefix(more, ",")+"}"), &members)
	for _, member := range slices.Sorted(maps.Keys(members)) {
		front += fmt.Sprintf("%s: %s\n", member, members[member]) // JSON is YAML
	}
	files = append([]string{"SKILL.md", "---\n" + front + "---\n" + text}, files...)
	var listed []string
	for i := 0; i < len(files); i += 2 {
		to[root+files[i]] = files[i+1]
		listed = append(listed, fmt.Sprintf(`{"uri":"%s%s","digest":"sha256:%x","size":%d}`, root, files[i], sha256.Sum256([]byte(files[i+1])), len(files[i+1])))
	}
	return fmt.Sprintf(`{"uri":"%sSKILL.md","frontmatter":{"name":%q,"description":"Says how to %s"%s},"resources":[%s]}`, root, name, name, more, strings.Join(listed, ","))
}

// Relist has the server announce that its lists have changed.
func (s *Skilled) Relist() {
	s.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
}
