package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTemplateMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ template, yes, no string }{
		{"mem://a/{id}", "mem://a/1 mem://a/x%2Fy mem://a/ mem://a/a,b", "mem://a mem://a/1/2 mem://a/1?q mem://b/1 xmem://a/1"},
		{"file:///{+path}", "file:///a/b file:///a?b#c", "file:// file:///a%zz\\"},
		{"mem://{a}/{b}.txt", "mem://x/y.txt mem:///.txt mem://x/y.txt.txt", "mem://x/y.md mem://x.txt"},
		{"mem://x{?q,p*}", "mem://x mem://x?q=1&p=2", "mem://x/y mem://y?q=1"},
		{"mem://x{/seg*}", "mem://x mem://x/a/b", "mem://x?a"},
		{"mem://x{#frag}", "mem://x#a/b", "y"},
		{"{scheme:4}:x", "demo:x", "demo:y /:x"},
		{"plain", "plain", "plains"},
	} {
		tmpl, err := parseTemplate(test.template)
		require.NoError(t, err, test.template)
		for _, uri := range strings.Fields(test.yes) {
			assert.True(t, tmpl.matches(uri), "%s %s", test.template, uri)
		}
		for _, uri := range strings.Fields(test.no) {
			assert.False(t, tmpl.matches(uri), "%s %s", test.template, uri)
		}
	}
	for _, bad := range []string{"{", "}", "{}", "{a", "{a b}", "{|a}", "{a:}", "{a:0}", "{a:99999}", "{a,}", "a}b{c}"} {
		_, err := parseTemplate(bad)
		assert.Error(t, err, bad)
	}
}

// The worst template takes time in proportion to its parts and to the URI.
func TestTemplateIsBounded(t *testing.T) {
	t.Parallel()
	mcptest.Quick(t, 10*time.Second, func() {
		for range 20 {
			tmpl, err := parseTemplate(strings.Repeat("{+a*,b*}aa", 16))
			require.NoError(t, err)
			assert.False(t, tmpl.matches(strings.Repeat("a", 4<<10-1)+"{"))
		}
	})
	tmpl, err := parseTemplate("{+a}")
	require.NoError(t, err)
	assert.True(t, tmpl.matches(strings.Repeat("a", 4<<10)))
	assert.False(t, tmpl.matches(strings.Repeat("a", 4<<10+1)))
	for n, ok := range map[int]bool{16: true, 17: false} {
		_, err := parseTemplate(strings.Repeat("{a}", n))
		assert.Equal(t, ok, err == nil, n)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	link := mcp.NewResourceLink("mem://a", "", "", "")
	assert.Equal(t, []string{"mem://a", "mem://a"}, Linked([]mcp.Content{mcp.NewTextContent("x"), link, &link, (*mcp.ResourceLink)(nil), nil, mcp.NewResourceLink("a\nb", "", "", "")}))
	assert.Nil(t, Linked(nil))
	var l *Links
	assert.Nil(t, l.To("mem://a"))
	l = l.With(Place{Server: "x"}, []string{"mem://a", "mem://a"}).With(Place{Server: "y"}, []string{"mem://a"})
	assert.Equal(t, []Place{{Server: "x"}, {Server: "y"}}, l.To("mem://a"))
	many := make([]string, 3*100)
	for i := range many {
		many[i] = strings.Repeat("u", i+1)
	}
	full := l.With(Place{Server: "x"}, many)
	assert.Equal(t, []Place{{Server: "y"}}, full.To("mem://a"), "a server pushes out its own only")
	assert.Empty(t, full.To(many[2*100-1]))
	assert.Equal(t, []Place{{Server: "x"}}, full.To(many[2*100]))
	kept := full.With(Place{Server: "x"}, many[2*100:2*100+1]).With(Place{Server: "x"}, many[:100-1])
	assert.NotEmpty(t, kept.To(many[2*100]), "the one that was linked to last")
	for i := range 100 - 1 {
		kept = kept.With(Place{Server: fmt.Sprint(i)}, []string{"mem://b"})
	}
	assert.Len(t, kept.by, 100)
	assert.Empty(t, kept.To("mem://a"), "the server that linked first is forgotten first")
	assert.NotEmpty(t, kept.To(many[0]))
}

// FuzzParse reads elements of servers. What it accepts is within the limits.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"uri":"mem://a","name":"a","size":5}`, `{"uriTemplate":"mem://{+a*,b:3}{?c}","name":"t"}`, `{"name":"p","arguments":[{"name":"x","required":true}]}`, `{"uri":5}`, `null`, `[]`,
		`{"uri":"skill://x/a/SKILL.md","frontmatter":{"name":"a","description":"A","tools":["b"],"metadata":{"tools":"c d"}},"resources":[{"uri":"skill://x/a/SKILL.md","digest":"sha256:` + strings.Repeat("0", 64) + `","size":5},{"uri":"skill://x/a/b/%41.md","digest":"sha256:` + strings.Repeat("f", 64) + `","size":0}]}`, `{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a"},"resources":"dynamic"}`} {
		for kind := range NumKinds {
			f.Add(byte(kind), []byte(seed), "mem://a/b")
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, raw []byte, uri string) {
		item, err := Parse(Kind(kind%byte(NumKinds)), raw, 4096)
		if err != nil {
			return
		}
		if item.ID == "" || item.Name == "" || item.Kind != Prompt && len(item.ID) > 4<<10 || item.Size < 0 || len(item.Raw) > 4096 {
			t.Fatalf("%+v", item)
		}
		if again, err := Parse(item.Kind, raw, 4096); err != nil || again.Hash() != item.Hash() {
			t.Fatal("another hash", err)
		}
		if m := item.Manifest; (m != nil) != (item.Kind == Skill) {
			t.Fatal("a manifest of what is no skill, or none")
		} else if m != nil {
			root := strings.TrimSuffix(item.ID, "SKILL.md")
			for _, f := range m.Files {
				if len(m.Files) > 512 || f.URI != root+f.Path || f.Size < 0 || m.File(f.URI).Sum != f.Sum || strings.Contains("/"+unescape(f.Path)+"/", "/../") {
					t.Fatalf("%q %+v", item.ID, f)
				}
			}
			if m.File(item.ID) == nil || m.Own == "" {
				t.Fatalf("%+v", m)
			}
			_, _ = m.Files[0].Verify(&mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.BlobResourceContents{Blob: uri}}})
		}
		if item.template != nil {
			item.template.matches(uri)
		}
		closed(t, uri)
	})
}

// Which of two members counts that are spelled alike depends on their order, which the front
// matter does not keep: what was accepted names the same tools.
func TestHashesKnowTheToolsOfASkill(t *testing.T) {
	t.Parallel()
	for _, both := range [][2]string{
		{`"tools":["a"],"Tools":["b"]`, `"Tools":["b"],"tools":["a"]`},
		{`"metadata":{"tools":"a","Tools":"b"}`, `"metadata":{"Tools":"b","tools":"a"}`},
	} {
		var items [2]*Item
		for i, front := range both {
			raw := `{"uri":"skill://s/SKILL.md","frontmatter":{"name":"s","description":"S",` + front + `},"resources":[{"uri":"skill://s/SKILL.md","digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}]}`
			item, err := Parse(Skill, []byte(raw), 4096)
			if err != nil {
				t.Fatal(err)
			}
			items[i] = item
		}
		if slices.Equal(items[0].Manifest.Tools, items[1].Manifest.Tools) || items[0].Hash() == items[1].Hash() {
			t.Error(both, items[0].Manifest.Tools, items[1].Manifest.Tools)
		}
	}
}
