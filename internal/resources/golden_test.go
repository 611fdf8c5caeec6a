package resources

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// testdata/uris.golden has what URIs can be taken for, and which templates expand to them.
func TestURIsGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What servers may take URIs for: each, the plainest form of one that has a path alone, and the others.\n\n")
	for _, uri := range []string{
		"", "a", "file:///a/b", "FILE:///a", "file://host/a", "file:a", "file:/a", "file:", "file:///a//b/./c/../d", "file:///../a", "file:///a/%2e%2E/b", "file:///a%2fb", "file:///a%252fb", "file:///a%zz", "file:///a%2", "file:///a\\b", "file:///a?x=/../y#z", "file:///a#b?c", "file:///a/", "file:///a/..", "file:///a/.", "file:///..",
		"https://x.test", "HTTPS://X.test/A", "https://x.test:443/a", "https://x.test:0443/a", "https://x.test:444/a", "https://x.test:/a", "https://x.test./a", "https://u:p@x.test/a", "https:x.test/a", "https:///x.test/a", "http://x.test:80?a", "ws://x.test:80/", "wss://x.test:443/", "ftp://x.test:21/a", "https://é.test/a", "https://x%.test/é", "https://x.test/a b", "git://é.test/a", "GIT://x y/a b", "https://x test/a",
		"git://repo/a/../b", "git:repo/a", "git:/repo//a", "git:///repo/a", "git://Repo/A", "GIT://repo", "git://repo/a/./b?c/../d", "git://../a", "a/../b", "/a/../../b", "../a", "a//b", "a:b:c", "1?a:b", "urn:a:b", "//host/a", "?a", "#a",
		"skill://pdf/SKILL.md", "skill://pdf//SKILL.md", "https://x.test/" + strings.Repeat("%25", 20) + "41",
	} {
		forms, err := Forms(uri)
		fmt.Fprintf(&b, "%q %v\n", text.Line(uri, 90), err)
		if !strings.ContainsAny(uri, "?#") && checkPath(uri[strings.Index(uri, ":")+1:]) == nil {
			fmt.Fprintf(&b, "   plainest %q\n", plainest(uri))
		}
		for _, f := range forms {
			if f != uri {
				fmt.Fprintf(&b, "   %q%s\n", text.Line(f, 90), map[bool]string{true: " adds a host"}[addsHost(f, uri)])
			}
		}
	}
	b.WriteString("\nMany and long ones.\n\n")
	for _, uri := range []string{"https://x.test/" + strings.Repeat("a/../", 40) + strings.Repeat("%252e%252e%2f", 20), "git://" + strings.Repeat("a%252f", 30), "file:///" + strings.Repeat("%2e/", 1000), "git:" + strings.Repeat("\\%2e\\", 600)} {
		forms, err := Forms(uri)
		fmt.Fprintf(&b, "%q: %d forms %v\n", text.Line(uri, 60), len(forms), err)
	}
	b.WriteString("\nWhich places could lead out of their folder.\n\n")
	for _, place := range []string{"", ".", "..", "a", "a/b", "a//b", "/a", "a/", "a/.", "a/../b", "a\\b", "a?b", "a#b", "a\x00b", "a%2fb", "a%2e%2e", "%2e%2e/a", "%252e%252e/a", "%25252e%25252e/a", "%2525252e%2525252e/a", "a%3fb", "a%00", "a b", "é"} {
		fmt.Fprintf(&b, "%q %v\n", place, checkPath(place))
	}
	b.WriteString("\nTemplates, and which of these they can expand to: a, a/b, a?x=1, a,b, x/a, x.a, x;a=b, x?a=b&c, x&a=b, x#a/b, é, a%20b, x/, x, and nothing.\n\n")
	uris := []string{"a", "a/b", "a?x=1", "a,b", "x/a", "x.a", "x;a=b", "x?a=b&c", "x&a=b", "x#a/b", "é", "a%20b", "x/", "x", ""}
	for _, s := range []string{
		"{a}", "{+a}", "{#a}", "x{.a}", "x{/a}", "x{;a}", "x{?a}", "x{?a*}", "x{&a}", "x/{a}", "{a}/b", "{a}{b}", "{a*}", "{a,b}", "{a:3}", "{a:9999}", "x", "a/b", "{+a}x", "x{/a,b*}",
		"{", "}", "a}", "{a", "{}", "{a:}", "{a:0}", "{a:01}", "{a:12345}", "{a:x}", "{!a}", "{|a}", "{a b}", "{a-b}", "{a.b}", "{%41}", "{_a}", "{a,}", "{,a}", "{a}}", "{{a}}", "{a*:3}",
		strings.Repeat("{a}", maxExpressions), strings.Repeat("{a}", maxExpressions+1), strings.Repeat("t", maxTemplate), strings.Repeat("t", maxTemplate+1),
	} {
		p, err := parseTemplate(s)
		fmt.Fprintf(&b, "%q %v", text.Line(s, 40), err)
		if err == nil {
			for _, uri := range uris {
				if len(p.parts) > 0 && p.matches(uri) {
					fmt.Fprintf(&b, " %q", uri)
				}
			}
		}
		b.WriteString("\n")
	}
	long, _ := parseTemplate("{+a}")
	fmt.Fprintf(&b, "as long as may be %v, longer %v\n", long.matches(strings.Repeat("a", MaxURI)), long.matches(strings.Repeat("a", MaxURI+1)))
	golden.Compare(t, "uris.golden", b.String())
}

// testdata/items.golden has what is read of elements of lists.
func TestItemsGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What is read of elements of lists, with the begin of the hash, and what is wrong with others.\n\n")
	hashes := make(map[string]string)
	show := func(kind Kind, raw string) {
		it, err := Parse(kind, json.RawMessage(raw), 8<<10)
		fmt.Fprintf(&b, "%s %s\n", kind, text.Line(raw, 300))
		if err != nil {
			fmt.Fprintf(&b, "   error %s\n", text.Line(err.Error(), 300))
			return
		}
		hash := it.Hash()
		same := ""
		if first, ok := hashes[hash]; ok {
			same = ", as that of " + text.Line(first, 60)
		} else {
			hashes[hash] = raw
		}
		copied := *it
		copied.Raw, copied.template, copied.folded = nil, nil, nil
		if m := it.Manifest; m != nil {
			fmt.Fprintf(&b, "   own %q tools %s front %s", m.Own, golden.Text(m.Tools), m.front)
			for _, f := range m.Files {
				fmt.Fprintf(&b, " %s (%q) %d %x…", f.URI, f.Path, f.Size, f.Sum[:2])
			}
			b.WriteString("\n")
			copied.Manifest = nil
		}
		shown := golden.Text(copied)
		if a := it.Annotations; a != nil && a.Priority != nil {
			shown += fmt.Sprintf(" priority %v", *a.Priority)
		}
		fmt.Fprintf(&b, "   %s; %s…%s\n", text.Line(shown, 600), hash[:8], same)
	}
	for _, raw := range []string{
		``, `{`, `null`, `[]`, `{}`, `{"uri":3}`, `{"uri":""}`, `{"uri":"a"}`, `{"uri":"a","name":"n","title":"T","description":"D","mimeType":"text/plain","size":3}`, `{"uri":"a","name":"n","size":4}`, `{"uri":"a","name":"n"}`, `{"uri":"a","name":""}`, `{"uri":"a","name":3}`, `{"uri":"a","title":3,"description":[],"mimeType":{},"size":"x"}`, `{"uri":"a","size":-1}`, `{"uri":"a","size":1.5}`, `{"uri":"a","uri":"b"}`, `{"uri":"a","title":"x","title":"y"}`, `{"uri":"a","other":1,"other":2}`,
		`{"uri":"a\nb"}`, `{"uri":"a\u007fb"}`, `{"uri":"https://é.test"}`, `{"uri":"FILE:///A/../b"}`, `{"uri":"` + strings.Repeat("u", MaxURI) + `"}`, `{"uri":"` + strings.Repeat("u", MaxURI+1) + `"}`, `{"uri":"` + strings.Repeat("u", 9<<10) + `"}`,
		`{"uri":"a","annotations":{"audience":["user","robot","assistant"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}}`, `{"uri":"a","annotations":{"priority":1.1,"lastModified":"yesterday"}}`, `{"uri":"a","annotations":{"priority":-0.1}}`, `{"uri":"a","annotations":{"priority":0}}`, `{"uri":"a","annotations":{"priority":1}}`, `{"uri":"a","annotations":[]}`, `{"uri":"a","annotations":{"audience":"user","priority":0.5}}`, `{"uri":"a","annotations":null}`,
	} {
		show(Resource, raw)
	}
	for _, raw := range []string{`{"name":"n"}`, `{"uriTemplate":"a/{b}"}`, `{"uriTemplate":"A://B/{b}","name":"n","mimeType":"m"}`, `{"uriTemplate":"{"}`, `{"uriTemplate":"{!x}"}`, `{"uriTemplate":"a\u0001"}`, `{"uriTemplate":"a","uri":"b"}`} {
		show(Template, raw)
	}
	for _, raw := range []string{`{"uri":"a"}`, `{"name":"p"}`, `{"name":"p","arguments":[{"name":"a","description":"A","required":true},{"name":"b","title":"B"}]}`, `{"name":"p","arguments":[{"name":"a","description":"A"},{"name":"b","title":"B"}]}`, `{"name":"p","arguments":null}`, `{"name":"p","arguments":{}}`, `{"name":"p","arguments":[3]}`, `{"name":"p\n"}`} {
		show(Prompt, raw)
	}
	sum := strings.Repeat("ab", 32)
	file := func(uri string, size any) string {
		return fmt.Sprintf(`{"uri":%q,"digest":"sha256:%s","size":%v}`, uri, sum, size)
	}
	own := file("skill://s/SKILL.md", 3)
	with := func(front, files string) string {
		return `{"uri":"skill://s/SKILL.md","frontmatter":` + front + `,"resources":` + files + `}`
	}
	plain := `{"name":"s","description":"D"}`
	for _, raw := range []string{
		`{}`, `{"uri":3}`, `{"uri":""}`, `{"uri":"skill://s/SKILL.md"}`, with(`null`, `[]`), with(`[]`, `[]`), with(`{}`, `[]`), with(plain, `[`+own+`]`), with(`{"description":"D","name":"s"}`, `[`+own+`]`), with(`{"name":"s","description":"D","n":1e2}`, `[`+own+`]`), with(`{"name":"s","name":"t"}`, `[]`), with(`{"name":3}`, `[]`), with(`{"name":"s","description":3}`, `[]`), with(`{"name":"other"}`, `[`+own+`]`),
		with(`{"name":"s","tools":"a, b\tc"}`, `[`+own+`]`), with(`{"name":"s","tools":["a","b c"]}`, `[`+own+`]`), with(`{"name":"s","tools":3}`, `[`+own+`]`), with(`{"name":"s","tools":[3]}`, `[`+own+`]`), with(`{"name":"s","metadata":{"tools":"m"}}`, `[`+own+`]`), with(`{"name":"s","tools":null,"metadata":{"tools":["m"]}}`, `[`+own+`]`), with(`{"name":"s","tools":"t","metadata":{"tools":"m"}}`, `[`+own+`]`), with(`{"name":"s","metadata":[]}`, `[`+own+`]`), with(`{"name":"s","metadata":null}`, `[`+own+`]`),
		with(plain, `null`), with(plain, `{}`), with(plain, `"dynamic"`), with(plain, `"static"`), with(plain, `[]`), with(plain, `[`+own+`,`+own+`]`), with(plain, `[`+file("skill://s/z.md", 1)+`,`+own+`,`+file("skill://s/a/b.md", 0)+`]`), with(plain, `[`+own+`,`+file("skill://t/a.md", 1)+`]`), with(plain, `[`+own+`,`+file("skill://s/../a.md", 1)+`]`), with(plain, `[`+own+`,`+file("skill://s/", 1)+`]`), with(plain, `[`+own+`,`+file("skill://s/%2e%2e/a", 1)+`]`), with(plain, `[`+own+`,`+file("skill://s/a", -1)+`]`), with(plain, `[`+own+`,`+file("skill://s/a", "null")+`]`),
		with(plain, `[{"uri":"skill://s/SKILL.md","digest":"sha256:`+sum[2:]+`","size":1}]`), with(plain, `[{"uri":"skill://s/SKILL.md","digest":"sha256:`+sum+`ab","size":1}]`), with(plain, `[{"uri":"skill://s/SKILL.md","digest":"`+sum+`","size":1}]`), with(plain, `[{"uri":"skill://s/SKILL.md","digest":"sha256:`+strings.ToUpper(sum)+`","size":1}]`), with(plain, `[{"uri":"skill://s/SKILL.md","digest":"sha256:`+strings.Repeat("zz", 32)+`","size":1}]`), with(plain, `[{"uri":"skill://s/SKILL.md","size":1}]`),
		with(plain, `[`+file("skill://s/SKILL.md", MaxSkillText)+`]`), with(plain, `[`+file("skill://s/SKILL.md", MaxSkillText+1)+`]`), with(plain, `[`+own+`,`+file("skill://s/a", maxSkillBytes-3)+`]`), with(plain, `[`+own+`,`+file("skill://s/a", maxSkillBytes-2)+`]`), with(plain, `[`+own+`,`+file("skill://s/a", 9e17)+`]`),
		strings.ReplaceAll(with(plain, `[`+own+`]`), "skill://s/", "skill://a/b/s/"), strings.ReplaceAll(with(plain, `[`+own+`]`), "skill://", "repo://"), strings.ReplaceAll(with(plain, `[`+own+`]`), "skill://", "://"), strings.ReplaceAll(with(plain, `[`+own+`]`), "skill://", "skill:"), strings.ReplaceAll(with(plain, `[`+own+`]`), "skill://", "skill://../"), strings.ReplaceAll(with(plain, `[`+own+`]`), "SKILL.md", "skill.md"), `{"uri":"skill://s/SKILL.md","uri":"x","frontmatter":{}}`, strings.Replace(with(plain, `[`+own+`]`), "skill://s/", `skill://\u0001s/`, 1),
	} {
		show(Skill, raw)
	}
	many := func(n int) *Item {
		it, err := Parse(Skill, json.RawMessage(skillText("s", n-1, 1)), 1<<20)
		fmt.Fprintf(&b, "%d files: %v\n", n, err)
		return it
	}
	it := many(maxSkillFiles)
	many(maxSkillFiles + 1)
	fmt.Fprintf(&b, "file f3 %s, none %v\n", it.Manifest.File("skill://s/f3.md").Path, it.Manifest.File("skill://s/f"))
	golden.Compare(t, "items.golden", b.String())
}

// testdata/links.golden has what is read of contents.
func TestLinksGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("Links in contents, and who is remembered to have linked.\n\n")
	link := func(uri string) mcp.Content { return mcp.ResourceLink{Type: "resource_link", URI: uri} }
	many := func(n int) (list []mcp.Content) {
		for i := range n {
			list = append(list, link(fmt.Sprint("u", i)))
		}
		return list
	}
	for _, contents := range [][]mcp.Content{
		nil, {link("a"), link(""), mcp.NewTextContent("a"), link("b\n"), &mcp.ResourceLink{URI: "c"}, (*mcp.ResourceLink)(nil), link("a")}, many(maxLinks), many(maxLinks + 1),
	} {
		uris := Linked(contents)
		fmt.Fprintf(&b, "%d contents: %d, %s\n", len(contents), len(uris), golden.Text(uris[:min(len(uris), 4)]))
	}
	var l *Links
	place := func(server string) Place { return Place{Server: server} }
	to := func(shows string, l *Links, uris ...string) {
		fmt.Fprintf(&b, "%s:", shows)
		for _, uri := range uris {
			fmt.Fprintf(&b, " %s from", uri)
			for _, p := range l.To(uri) {
				fmt.Fprintf(&b, " %s", p.Server)
			}
			b.WriteString(";")
		}
		b.WriteString("\n")
	}
	to("none", l, "a")
	one := l.With(place("x"), []string{"a", "b"})
	two := one.With(place("y"), []string{"b", "c", "b"})
	three := two.With(place("x"), []string{"b"})
	to("one", one, "a", "b", "c")
	to("two", two, "a", "b", "c")
	to("three", three, "a", "b", "c")
	to("two again", two, "a", "b", "c")
	full := three.With(place("x"), Linked(many(maxLinks)))
	to("full", full, "a", "b", "u0", "u99")
	to("full and one", full.With(place("x"), []string{"last"}), "u0", "u1", "last", "b")
	all := l
	for i := range maxPlaces + 1 {
		all = all.With(place(fmt.Sprint("s", i)), []string{fmt.Sprint("r", i)})
	}
	to("many servers", all, "r0", "r1", "r100")
	b.WriteString("\nWhat was read, as the result of a tool.\n\n")
	for _, r := range []*mcp.ReadResourceResult{
		{}, {Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: "a", Text: "t"}, mcp.BlobResourceContents{URI: "b", MIMEType: "image/png", Blob: "AA=="}, mcp.BlobResourceContents{URI: "c", MIMEType: "IMAGE/x", Blob: "AA=="}, mcp.BlobResourceContents{URI: "d", MIMEType: "imagery/png", Blob: "AA=="}, mcp.BlobResourceContents{URI: "e", Blob: "AA=="}}},
	} {
		data, err := json.Marshal(Result(r))
		fmt.Fprintf(&b, "%s %v\n", data, err)
	}
	b.WriteString("\nFiles of a skill, as they come.\n\n")
	f := File{Size: 3, Sum: [32]byte{}}
	copy(f.Sum[:], mustHex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")) // of abc
	for _, r := range []*mcp.ReadResourceResult{
		nil, {}, {Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "abc"}}}, {Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "abd"}}}, {Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "abcd"}}}, {Contents: []mcp.ResourceContents{mcp.BlobResourceContents{Blob: base64.StdEncoding.EncodeToString([]byte("abc"))}}}, {Contents: []mcp.ResourceContents{mcp.BlobResourceContents{Blob: "abc"}}}, {Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "abc"}, mcp.TextResourceContents{Text: "abc"}}},
	} {
		data, err := f.Verify(r)
		fmt.Fprintf(&b, "%q %v\n", data, err)
	}
	other := f
	other.Size = 4
	_, err := other.Verify(&mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "abc"}}})
	fmt.Fprintf(&b, "of another size %v\n", err)
	golden.Compare(t, "links.golden", b.String())
}

func mustHex(s string) []byte {
	var data []byte
	_, err := fmt.Sscanf(s, "%x", &data)
	if err != nil {
		panic(err)
	}
	return data
}
