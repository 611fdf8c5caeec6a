package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry returns what a server lists.
func entry(t *testing.T, server string, kind Kind, raw string) *Entry {
	item, err := Parse(kind, []byte(raw), 1<<20)
	require.NoError(t, err)
	names := rules.Subject{Server: server, Own: item.Name}
	if kind == Resource {
		names.URI, names.Forms = item.ID, item.forms
	}
	return &Entry{Item: item, Names: names}
}

// skill returns a skill of a server with so many files beside its SKILL.md, f0.md and so on.
func skill(t *testing.T, server, name string, files int) *Entry {
	return entry(t, server, Skill, skillText(name, files, 1))
}

func skillText(name string, files, size int) string {
	list := []string{fmt.Sprintf(`{"uri":"skill://%s/SKILL.md","digest":"sha256:%s","size":1}`, name, strings.Repeat("0", 64))}
	for i := range files {
		list = append(list, fmt.Sprintf(`{"uri":"skill://%s/f%d.md","digest":"sha256:%s","size":%d}`, name, i, strings.Repeat("0", 64), size))
	}
	return fmt.Sprintf(`{"uri":"skill://%s/SKILL.md","frontmatter":{"name":%q,"description":"S"},"resources":[%s]}`, name, name, strings.Join(list, ","))
}

func shelf(entries ...*Entry) Owned {
	return Owned{Shelf: NewShelf(nil, entries, nil, func(docs []*search.Document) *search.Index { return search.NewIndex(docs, nil) })}
}

func everything(shelves ...Owned) *View {
	return &View{
		Shelves: shelves, Bar: func(rules.Subject) error { return nil }, BarURI: func(any, rules.Subject) error { return nil },
		Server: func(p Place) (rules.Subject, bool) { return rules.Subject{Server: p.Server}, true },
	}
}

// What bars skills bars no resources.
func TestBarSkillIsForSkills(t *testing.T) {
	t.Parallel()
	v := everything(shelf(entry(t, "s", Resource, `{"uri":"mem://a","name":"a"}`), skill(t, "s", "b", 0)))
	v.BarSkill = func(rules.Subject) error { return errors.New("no skills") }
	_, err := v.Locate(t.Context(), Resource, "", "mem://a", nil)
	assert.NoError(t, err)
	_, err = v.Locate(t.Context(), Skill, "", "skill://b/SKILL.md", nil)
	assert.ErrorContains(t, err, "no skills")
}

// The file of a skill that is held back is not read, in whatever spelling, unless another
// skill that is not held back has it too.
func TestFileOfASkillThatIsHeldBack(t *testing.T) {
	t.Parallel()
	held := skill(t, "s", "b", 1)
	held.Quarantined = errors.New("held back")
	any := entry(t, "s", Template, `{"uriTemplate":"{+x}","name":"t"}`)
	for _, uri := range []string{"skill://b/f0.md", "skill://b/%66%30.md", "skill://b/x/../f0.md"} {
		_, err := everything(shelf(held, any)).Locate(t.Context(), Resource, "", uri, nil)
		assert.ErrorContains(t, err, "held back", uri)
	}
	at, err := everything(shelf(held, any)).Locate(t.Context(), Resource, "", "skill://b/other.md", nil)
	require.NoError(t, err)
	assert.Equal(t, "s", at.Server)

	// One that the server lists as a resource too is as little.
	listed := entry(t, "s", Resource, `{"uri":"skill://b/f0.md","name":"a"}`)
	_, err = everything(shelf(held, listed)).Locate(t.Context(), Resource, "", "skill://b/f0.md", nil)
	assert.ErrorContains(t, err, "held back")
	_, err = everything(shelf(skill(t, "s", "b", 1), listed)).Locate(t.Context(), Resource, "", "skill://b/f0.md", nil)
	assert.NoError(t, err)

	// Another server's skill of that name makes no difference.
	_, err = everything(shelf(skill(t, "a", "b", 1), held, any)).Locate(t.Context(), Resource, "s", "skill://b/f0.md", nil)
	assert.ErrorContains(t, err, "held back")

	// A prompt of that name is no file.
	prompt := entry(t, "s", Prompt, `{"name":"skill://b/f0.md"}`)
	at, err = everything(shelf(held, prompt)).Locate(t.Context(), Prompt, "s", "skill://b/f0.md", nil)
	require.NoError(t, err)
	assert.Equal(t, "s", at.Server)
}

// The list of a skill may spell a file as it likes: in capitals, or with escapes.
func TestSpellingsOfAFileThatIsHeldBack(t *testing.T) {
	t.Parallel()
	raw := strings.ReplaceAll(strings.ReplaceAll(skillText("b", 1, 1), "skill://b/", "skill://Docs/b/"), "f0.md", "f%200.md")
	held := entry(t, "s", Skill, raw)
	held.Quarantined = errors.New("held back")
	v := everything(shelf(held))
	linked := func(uri string) *Links { return (*Links)(nil).With(Place{nil, "s"}, []string{uri}) }
	for _, uri := range []string{
		"skill://Docs/b/f%200.md", "skill://docs/b/f%200.md", "skill://Docs/b/f 0.md", "skill://Docs/b/f%25200.md", "skill://Docs//b/x/../f%200.md",
		"skill:Docs/b/f 0.md", "skill://Docs/b/f%200.md?x", "skill://Docs/b/./SKILL.md", "skill://docs/b/SKILL.md",
	} {
		_, err := v.Locate(t.Context(), Resource, "", uri, linked(uri))
		assert.ErrorContains(t, err, "held back", uri)
	}
	const other = "skill://Docs/b/other.md"
	_, err := v.Locate(t.Context(), Resource, "", other, linked(other))
	assert.NoError(t, err)

	// A server that may have unlisted resources is not asked for files of skills.
	v.Unlisted = []Place{{nil, "s"}}
	for _, uri := range []string{other, "Skill://Docs/b/other.md"} {
		_, err = v.Locate(t.Context(), Resource, "", uri, nil)
		assert.ErrorContains(t, err, "unknown", uri)
	}
}

// What templates can expand to that are all held back is not read under another spelling. One
// that is not held back decides.
func TestUnlistedSpellingsOfATemplate(t *testing.T) {
	t.Parallel()
	held, other := entry(t, "s", Template, `{"uriTemplate":"DB://Orders/{id}","name":"t"}`), entry(t, "s", Template, `{"uriTemplate":"db://orders/{+any}","name":"u"}`)
	held.Quarantined = errors.New("held back")
	for _, uri := range []string{"DB://Orders/1", "db://orders/1", "DB://Orders//1", "db:orders/%31", "db://orders/1#x"} {
		v := everything(shelf(held))
		v.Unlisted = []Place{{nil, "s"}}
		_, err := v.Locate(t.Context(), Resource, "", uri, nil)
		assert.ErrorContains(t, err, "held back", uri)
		_, err = v.Locate(t.Context(), Resource, "", "db://customers/1", nil)
		assert.NoError(t, err)
		v.Shelves = []Owned{shelf(held, other)}
		_, err = v.Locate(t.Context(), Resource, "", "DB://orders//1", nil)
		assert.NoError(t, err)
	}

	// Those of another server, or of another owner's server of that name, don't count.
	elsewhere := entry(t, "other", Template, string(held.Raw))
	elsewhere.Quarantined = held.Quarantined
	foreign := shelf(held)
	foreign.Of = "another"
	for _, shelves := range [][]Owned{{shelf(elsewhere)}, {shelf(), foreign}} {
		v := everything(shelves...)
		v.Unlisted = []Place{{nil, "s"}}
		_, err := v.Locate(t.Context(), Resource, "s", "DB://Orders//1", nil)
		assert.NoError(t, err)
	}
}

// What is barred by one spelling of a listed resource is barred by all. Templates and prompts
// that are called like it don't count.
func TestSpellingsOfWhatIsListed(t *testing.T) {
	t.Parallel()
	secret, any := entry(t, "s", Resource, `{"uri":"mem://h/a","name":"a"}`), entry(t, "s", Template, `{"uriTemplate":"{+x}","name":"t"}`)
	v := everything(shelf(secret, any))
	v.Bar = func(of rules.Subject) error {
		if of.Own == "a" {
			return errors.New("barred")
		}
		return nil
	}
	for _, uri := range []string{"mem://h/a", "mem://h/%61", "mem://h/b/../a"} {
		_, err := v.Locate(t.Context(), Resource, "", uri, nil)
		assert.ErrorContains(t, err, "barred", uri)
	}
	prompt := entry(t, "s", Prompt, `{"name":"mem://h/a"}`)
	prompt.Names.Own = "a"
	v.Shelves = []Owned{shelf(prompt, any)}
	_, err := v.Locate(t.Context(), Resource, "", "mem://h/%61", nil)
	assert.NoError(t, err, "a prompt is no spelling of a resource")
}

// A pattern that permits a URI is asked for it where a form only adds a host, and told the
// form.
func TestFormsThatAddAHost(t *testing.T) {
	t.Parallel()
	v := everything(shelf(entry(t, "s", Template, `{"uriTemplate":"{+x}","name":"t"}`)))
	var asked []rules.Subject
	v.BarURI = func(_ any, of rules.Subject) error { asked = append(asked, of); return nil }
	const uri = "mem:////h/a"
	_, err := v.Locate(t.Context(), Resource, "", uri, nil)
	require.NoError(t, err)
	forms, err := Forms(uri)
	require.NoError(t, err)
	require.Len(t, asked, len(forms))
	added := 0
	for i, of := range asked {
		if !addsHost(forms[i], uri) {
			assert.Equal(t, forms[i], of.URI)
			assert.Empty(t, of.Forms)
			continue
		}
		added++
		assert.Equal(t, uri, of.URI)
		assert.Equal(t, []string{forms[i]}, of.Forms)
	}
	assert.Equal(t, 1, added)
	for _, test := range []struct {
		form, uri string
		want      bool
	}{
		{"mem://h/a", "mem:////h/a", true}, {"mem://h/a", "mem:h/a", true}, {"mem://h", "mem:/h", true},
		{"mem://h/a", "mem://h/b", false}, {"mem:h/a", "mem:/h/a", false}, {"mem:///a", "mem:a", false},
		{"https://h/a", "https:h/a", false}, {"file://h/a", "file:/h/a", false}, {"h/a", "a", false},
	} {
		assert.Equal(t, test.want, addsHost(test.form, test.uri), "%s for %s", test.form, test.uri)
	}
}

func TestSearchOfShelvesTakesTurns(t *testing.T) {
	t.Parallel()
	list := func(server string, n int) (list []*Entry) {
		for i := range n {
			list = append(list, entry(t, server, Resource, fmt.Sprintf(`{"uri":"mem://%s/%d","name":"report"}`, server, i)))
		}
		return append(list, entry(t, server, Prompt, `{"name":"report"}`))
	}
	v := everything(shelf(list("a", 3)...), shelf(list("b", 1)...), Owned{})
	ids := func(n int) (ids []string) {
		for _, e := range v.Search("report", n) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"mem://a/0", "mem://b/0", "mem://a/1", "mem://a/2"}, ids(9))
	assert.Equal(t, []string{"mem://a/0", "mem://b/0"}, ids(1))
	v.Bar = func(of rules.Subject) error {
		if of.URI == "mem://a/0" {
			return errors.New("barred")
		}
		return nil
	}
	assert.Equal(t, []string{"mem://a/1", "mem://b/0", "mem://a/2"}, ids(9))
	assert.Empty(t, v.Search("report", 0))
}

// Each limit, and one more.
func TestLimitsOfItems(t *testing.T) {
	t.Parallel()
	place := func(bytes int) string { return "mem://" + strings.Repeat("a", bytes-len("mem://")) }
	for name, test := range map[string]struct {
		kind Kind
		most int
		raw  func(n int) string
	}{
		"a uri":            {Resource, 4 << 10, func(n int) string { return fmt.Sprintf(`{"uri":%q,"name":"a"}`, place(n)) }},
		"a template":       {Template, 1 << 10, func(n int) string { return fmt.Sprintf(`{"uriTemplate":%q,"name":"a"}`, place(n)) }},
		"files of a skill": {Skill, 512, func(n int) string { return skillText("b", n-1, 1) }},
		"bytes of a skill": {Skill, 16 << 20, func(n int) string { return skillText("b", 1, n-1) }},
		"bytes of SKILL.md": {Skill, 1 << 20, func(n int) string {
			return strings.Replace(skillText("b", 0, 1), `"size":1`, fmt.Sprintf(`"size":%d`, n), 1)
		}},
		"bytes": {Resource, 1 << 20, func(n int) string {
			const begin = `{"uri":"mem://a","name":"`
			return begin + strings.Repeat("a", n-len(begin)-2) + `"}`
		}},
	} {
		_, err := Parse(test.kind, []byte(test.raw(test.most)), 1<<20)
		assert.NoError(t, err, "%s at the limit of %d", name, test.most)
		_, err = Parse(test.kind, []byte(test.raw(test.most+1)), 1<<20)
		assert.Error(t, err, "%s above the limit of %d", name, test.most)
	}
}

func TestSizeOfAnItem(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int64{"0": 0, "1": 1, "-1": 0, "1.5": 0, `"5"`: 0, "null": 0, "9223372036854775807": 1<<63 - 1, "9223372036854775808": 0} {
		assert.Equal(t, want, entry(t, "s", Resource, `{"uri":"mem://a","name":"a","size":`+size+`}`).Size, size)
	}
	assert.Zero(t, entry(t, "s", Resource, `{"uri":"mem://a","name":"a"}`).Size)
}

// The forms of a URI have together at most so many bytes.
func TestFormsAtTheirLimit(t *testing.T) {
	t.Parallel()
	total := func(n int) (bytes int, err error) {
		forms, err := Forms("mem://h/" + strings.Repeat("%2525", 3) + strings.Repeat("x", n))
		for _, f := range forms {
			bytes += len(f)
		}
		return bytes, err
	}
	least, err := total(0)
	require.NoError(t, err)
	forms, err := Forms("mem://h/" + strings.Repeat("%2525", 3))
	require.NoError(t, err)
	most := (64<<10 - least) / len(forms)
	bytes, err := total(most)
	assert.NoError(t, err)
	assert.LessOrEqual(t, bytes, 64<<10)
	assert.Greater(t, bytes, 64<<10-len(forms))
	_, err = total(most + 1)
	assert.ErrorContains(t, err, "more than the limit of 64 or of 65536 bytes together")
}

// What is wrong with a skill is named, also where another check would refuse it too.
func TestSkillsThatAreRefused(t *testing.T) {
	t.Parallel()
	for front, want := range map[string]string{
		`{"name":5,"description":"S"}`: `"skill://b/SKILL.md": "name"`, `{"name":"b","description":5}`: `"skill://b/SKILL.md": "description"`,
		`{"name":"b","description":"S","tools":5}`: "its tools are no list of names", `{"name":"c","description":"S"}`: "the uri does not end in its name",
		`[]`: "the frontmatter is no object", `{"name":"b","name":"b"}`: `the frontmatter has the member "name" more than once`,
	} {
		raw := strings.Replace(skillText("b", 0, 1), `{"name":"b","description":"S"}`, front, 1)
		_, err := Parse(Skill, []byte(raw), 1<<20)
		assert.ErrorContains(t, err, want, front)
	}
}

// What is barred stays barred if skills are not, and each reason is the first one.
func TestFirstReasonCounts(t *testing.T) {
	t.Parallel()
	v := everything(shelf(skill(t, "s", "b", 0)))
	v.Bar = func(rules.Subject) error { return errors.New("first") }
	for _, second := range []error{nil, errors.New("second")} {
		v.BarSkill = func(rules.Subject) error { return second }
		_, err := v.Locate(t.Context(), Skill, "", "skill://b/SKILL.md", nil)
		assert.ErrorContains(t, err, "first")
	}
}

// A barred resource bars its spellings where it is, not at other servers or of other owners.
func TestSpellingsOfWhatOthersList(t *testing.T) {
	t.Parallel()
	any := entry(t, "s", Template, `{"uriTemplate":"{+x}","name":"t"}`)
	barred := func(server string) *Entry {
		e := entry(t, server, Resource, `{"uri":"mem://h/a","name":"a"}`)
		e.Barred = errors.New("barred")
		return e
	}
	of := func(owner string, entries ...*Entry) Owned {
		s := shelf(entries...)
		s.Of = owner
		return s
	}
	for name, test := range map[string]struct {
		shelves []Owned
		want    bool
	}{
		"here":          {[]Owned{of("x", any, barred("s"))}, true},
		"other server":  {[]Owned{of("x", any, barred("other"))}, false},
		"other owner":   {[]Owned{of("x", any), of("y", barred("s"))}, false},
		"others' other": {[]Owned{of("x", any), of("y", barred("other"))}, false},
	} {
		_, err := everything(test.shelves...).Locate(t.Context(), Resource, "s", "mem://h/%61", nil)
		if test.want {
			assert.ErrorContains(t, err, "barred", name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}

// Links are never changed: what is linked to later is in those that With returns.
func TestLinksAreNotShared(t *testing.T) {
	t.Parallel()
	at := func(server string) Place { return Place{Server: server} }
	var l *Links
	for i := range 5 {
		l = l.With(at("a"), []string{fmt.Sprint("u", i)}).With(at(fmt.Sprint("s", i)), []string{"v"})
	}
	l = &Links{append(make([]linked, 0, 20), l.by...)}
	for i := range l.by {
		l.by[i].uris = append(make([]string, 0, 20), l.by[i].uris...)
	}
	was := fmt.Sprint(l.by)
	one := l.With(at("a"), []string{"u0", "new"})
	other := l.With(at("x"), []string{"w"})
	third := l.With(at("a"), []string{"u1", "newer"})
	assert.Equal(t, was, fmt.Sprint(l.by))
	assert.NotEmpty(t, one.To("new"))
	assert.Empty(t, one.To("newer"))
	assert.NotEmpty(t, other.To("w"))
	assert.Empty(t, third.To("new"))
}

// A skill's files are in its folder.
func TestFilesOfASkillAreInItsFolder(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]bool{
		"skill://b/f0.md": true, "skill://b/c/f0.md": true,
		"skill://other/f0.md": false, "skill://b/../f0.md": false, "skill://b/%2e%2e/f0.md": false, "skill://b/": false, "file:///etc/passwd": false, "skill://bb/f0.md": false,
	} {
		raw := strings.Replace(skillText("b", 1, 1), "skill://b/f0.md", uri, 1)
		_, err := Parse(Skill, []byte(raw), 1<<20)
		if want {
			assert.NoError(t, err, uri)
		} else {
			assert.ErrorContains(t, err, "is no file in the folder of the skill", uri)
		}
	}
}

// The tools that a skill needs are those of its front matter, else those within metadata.
func TestToolsOfASkill(t *testing.T) {
	t.Parallel()
	for more, want := range map[string][]string{
		``: nil, `,"tools":"a, b"`: {"a", "b"}, `,"metadata":{"tools":["c"]}`: {"c"}, `,"tools":["a"],"metadata":{"tools":"c"}`: {"a"},
		`,"metadata":5`: nil, `,"metadata":["tools"]`: nil, `,"tools":null,"metadata":{"tools":"c"}`: {"c"},
	} {
		raw := strings.Replace(skillText("b", 0, 1), `"description":"S"`, `"description":"S"`+more, 1)
		assert.Equal(t, want, entry(t, "s", Skill, raw).Manifest.Tools, more)
	}
}

// Who asks for what several servers have is told which of them it may have it from.
func TestServersThatHaveIt(t *testing.T) {
	t.Parallel()
	var all []*Entry
	for _, server := range []string{"a", "b", "c"} {
		all = append(all, entry(t, server, Resource, `{"uri":"mem://a","name":"a"}`))
	}
	v := everything(shelf(all...))
	v.Bar = func(of rules.Subject) error {
		if of.Server == "b" {
			return errors.New("barred")
		}
		return nil
	}
	_, err := v.Locate(t.Context(), Resource, "", "mem://a", nil)
	var unknown *Unknown
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, []string{"a", "c"}, unknown.Servers)
}

func identifiers(list []*Entry) (ids []string) {
	for _, e := range list {
		ids = append(ids, e.Names.Server+" "+e.ID)
	}
	return ids
}

// A session sees what is neither barred nor held back, nor hidden by an earlier owner's.
func TestWhatASessionSees(t *testing.T) {
	t.Parallel()
	of := func(owner string, entries ...*Entry) Owned {
		s := shelf(entries...)
		s.Of = owner
		return s
	}
	prompt := func(server, name string) *Entry { return entry(t, server, Prompt, `{"name":"`+name+`"}`) }
	barred, held := prompt("s", "barred"), prompt("s", "held")
	barred.Barred, held.Quarantined = errors.New("barred"), errors.New("held")
	mine, theirs, covered := prompt("s", "a"), prompt("t", "b"), prompt("s", "a")
	v := everything(of("x", mine, barred, held), of("y", covered, theirs, prompt("s", "never"), entry(t, "t", Resource, `{"uri":"mem://a"}`)))
	v.Bar = func(of rules.Subject) error {
		if of.Own == "never" {
			return errors.New("never")
		}
		return nil
	}
	assert.Equal(t, []string{"t b", "s a"}, identifiers(v.Offered(Prompt)), "the last shelf comes first")
	for _, test := range []struct {
		of   string
		e    *Entry
		want bool
	}{{"x", mine, true}, {"x", barred, false}, {"x", held, false}, {"y", theirs, true}, {"y", covered, false}, {"z", mine, false}} {
		assert.Equal(t, test.want, v.Sees(test.of, test.e), "%s %s", test.of, test.e.ID)
	}
}

// Models are told of reading if there is something to read, and of files if a skill has any.
func TestWhatASessionReads(t *testing.T) {
	t.Parallel()
	barred := entry(t, "s", Resource, `{"uri":"mem://a"}`)
	barred.Barred = errors.New("barred")
	held := skill(t, "s", "held", 1)
	held.Quarantined = errors.New("held")
	for name, test := range map[string]struct {
		entry        *Entry
		reads, files bool
	}{
		"resource":        {entry(t, "s", Resource, `{"uri":"mem://a"}`), true, false},
		"template":        {entry(t, "s", Template, `{"uriTemplate":"mem://a"}`), true, false},
		"prompt":          {entry(t, "s", Prompt, `{"name":"a"}`), false, false},
		"barred":          {barred, false, false},
		"skill":           {skill(t, "s", "b", 0), false, false},
		"skill of two":    {skill(t, "s", "b", 1), false, true},
		"skill held back": {held, false, false},
	} {
		v := everything(Owned{}, shelf(test.entry))
		assert.Equal(t, test.reads, v.Reads(), name)
		assert.Equal(t, test.files, v.ReadsFiles(), name)
	}
	assert.False(t, everything().Reads())
	assert.False(t, everything().ReadsFiles())
}

// What is read as the file of a skill is what the skill's own server lists of it.
func TestVerifyOfAView(t *testing.T) {
	t.Parallel()
	sized := func(content string) *Entry {
		sum := sha256.Sum256([]byte(content))
		raw := skillText("b", 1, len(content))
		at := strings.LastIndex(raw, strings.Repeat("0", 64))
		return entry(t, "s", Skill, raw[:at]+hex.EncodeToString(sum[:])+raw[at+64:])
	}
	good, other := sized("good"), sized("fine")
	text := func(s string) *mcp.ReadResourceResult {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: s}}}
	}
	const uri = "skill://b/f0.md"
	at := Place{Server: "s"}
	v := everything(shelf(good))
	assert.NoError(t, v.Verify(Resource, at, uri, text("good")))
	assert.ErrorIs(t, v.Verify(Resource, at, uri, text("evil")), ErrOtherContent)
	assert.NoError(t, v.Verify(Resource, at, "skill://b/other", text("evil")), "it is no file of a skill")
	assert.NoError(t, v.Verify(Resource, Place{Server: "t"}, uri, text("evil")), "from another server")
	assert.NoError(t, v.Verify(Resource, Place{Of: 1, Server: "s"}, uri, text("evil")), "of another owner")
	assert.NoError(t, v.Verify(Skill, at, uri, text("evil")), "another skill's list")
	assert.Error(t, v.Verify(Skill, at, "skill://b/SKILL.md", text("evil")), "its own list")

	// One list that has it is enough, if it counts.
	v = everything(shelf(other, good))
	assert.NoError(t, v.Verify(Resource, at, uri, text("good")))
	assert.NoError(t, v.Verify(Resource, at, uri, text("fine")))
	assert.ErrorIs(t, v.Verify(Resource, at, uri, text("evil")), ErrOtherContent)
	other.Quarantined = errors.New("held")
	assert.ErrorIs(t, v.Verify(Resource, at, uri, text("fine")), ErrOtherContent)
	other.Quarantined, other.Barred = nil, errors.New("barred")
	assert.ErrorIs(t, v.Verify(Resource, at, uri, text("fine")), ErrOtherContent)
	assert.NoError(t, v.Verify(Resource, at, uri, text("good")))
}

// A file is the one content that has its size and its digest.
func TestVerifyOfAFile(t *testing.T) {
	t.Parallel()
	f := &File{Size: 4, Sum: sha256.Sum256([]byte("good"))}
	of := func(list ...mcp.ResourceContents) *mcp.ReadResourceResult {
		return &mcp.ReadResourceResult{Contents: list}
	}
	text, blob := mcp.TextResourceContents{Text: "good"}, mcp.BlobResourceContents{Blob: "Z29vZA=="}
	for _, r := range []*mcp.ReadResourceResult{of(text), of(blob)} {
		data, err := f.Verify(r)
		assert.NoError(t, err)
		assert.Equal(t, "good", string(data))
	}
	for _, r := range []*mcp.ReadResourceResult{nil, of(), of(text, text), of(mcp.TextResourceContents{Text: "evil"}), of(mcp.BlobResourceContents{Blob: "Z29vZA=!"}), of(nil)} {
		data, err := f.Verify(r)
		assert.ErrorIs(t, err, ErrOtherContent)
		assert.Nil(t, data)
	}
	longer := &File{Size: 5, Sum: f.Sum}
	_, err := longer.Verify(of(text))
	assert.ErrorIs(t, err, ErrOtherContent, "another size")
}

// Who asks for what nobody has is told of similar ones that the session may have, the
// nearest first.
func TestNearestOfAView(t *testing.T) {
	t.Parallel()
	of := func(server, uri string) *Entry { return entry(t, server, Resource, `{"uri":"`+uri+`"}`) }
	secret := of("s", "mem://report.2")
	secret.Barred = errors.New("barred")
	v := everything(shelf(of("s", "mem://report.1"), secret, of("s", "mem:/.report/1"), of("t", "mem://reports.1"), entry(t, "t", Prompt, `{"name":"mem://report.3"}`)))
	near := func(server, id string) []string {
		_, err := v.Locate(t.Context(), Resource, server, id, nil)
		var unknown *Unknown
		require.ErrorAs(t, err, &unknown)
		assert.EqualError(t, err, "it is unknown")
		assert.Equal(t, Unknown{Server: server, ID: id, Nearest: unknown.Nearest}, *unknown)
		return unknown.Nearest
	}
	assert.Equal(t, []string{"mem://report.1", "mem://reports.1"}, near("", "mem://report_1"))
	assert.Equal(t, []string{"mem://reports.1"}, near("t", "mem://report.1"))
	assert.Empty(t, near("", "quite another thing"))
	many := everything()
	var list []*Entry
	for i := range 5 {
		list = append(list, of("s", fmt.Sprintf("mem://report.%d", i)))
	}
	many.Shelves = []Owned{shelf(list...)}
	v = many
	assert.Len(t, near("", "mem://report.x"), 3)
}

// Templates, skills and links of the server that is asked are tried, and those of no other.
func TestLocateAsksTheServerThatIsNamed(t *testing.T) {
	t.Parallel()
	all := func(server string) *Entry { return entry(t, server, Template, `{"uriTemplate":"{+x}"}`) }
	locate := func(v *View, server, uri string, links *Links) (string, error) {
		at, err := v.Locate(t.Context(), Resource, server, uri, links)
		return at.Server, err
	}
	links := (*Links)(nil).With(Place{Server: "t"}, []string{"mem://linked"}).With(Place{Server: "gone"}, []string{"mem://linked"})
	v := everything(shelf(all("s"), skill(t, "t", "b", 1)))
	v.Server = func(p Place) (rules.Subject, bool) { return rules.Subject{Server: p.Server}, p.Server != "gone" }
	for _, test := range []struct{ server, uri, want string }{
		{"s", "mem://x", "s"}, {"t", "mem://x", ""}, {"", "mem://x", "s"}, {"t", "skill://b/f0.md", "t"}, {"s", "skill://b/f0.md", "s"},
		{"t", "mem://linked", "t"}, {"gone", "mem://linked", ""}, {"s", "mem://linked", "s"},
	} {
		got, err := locate(v, test.server, test.uri, links)
		assert.Equal(t, test.want, got, "%s of %q", test.uri, test.server)
		assert.Equal(t, test.want != "", err == nil, "%s of %q: %v", test.uri, test.server, err)
	}
	// A link is one of the place where it came from.
	foreign := (*Links)(nil).With(Place{Of: 1, Server: "t"}, []string{"mem://linked"})
	_, err := locate(v, "t", "mem://linked", foreign)
	assert.Error(t, err)

	// A URI that is barred is so wherever it comes from.
	v.BarURI = func(any, rules.Subject) error { return errors.New("barred") }
	for _, test := range []struct{ server, uri string }{{"s", "mem://x"}, {"t", "skill://b/f0.md"}, {"t", "mem://linked"}} {
		_, err := locate(v, test.server, test.uri, links)
		assert.ErrorContains(t, err, "barred", test.uri)
	}
}

// One way that is open is enough: what a first template may not, a second one may.
func TestOneWayIsEnough(t *testing.T) {
	t.Parallel()
	closed, open := entry(t, "s", Template, `{"uriTemplate":"{+x}","name":"closed"}`), entry(t, "s", Template, `{"uriTemplate":"{+y}","name":"open"}`)
	for _, list := range [][]*Entry{{closed, open}, {open, closed}} {
		v := everything(shelf(list...))
		v.Bar = func(of rules.Subject) error {
			if of.Own == "closed" {
				return errors.New("barred")
			}
			return nil
		}
		at, err := v.Locate(t.Context(), Resource, "", "mem://a", nil)
		assert.NoError(t, err)
		assert.Equal(t, "s", at.Server)
	}
	both := everything(shelf(entry(t, "s", Resource, `{"uri":"mem://a"}`), entry(t, "t", Resource, `{"uri":"mem://a"}`)))
	both.Bar = func(of rules.Subject) error { return errors.New("barred " + of.Server) }
	at, err := both.Locate(t.Context(), Resource, "", "mem://a", nil)
	assert.ErrorContains(t, err, "barred s", "the first one says why")
	assert.Equal(t, "s", at.Server)
}

func TestNoShelf(t *testing.T) {
	t.Parallel()
	var none *Shelf
	assert.Nil(t, none.All())
	assert.Nil(t, none.Skills())
	assert.Nil(t, none.Find(ID{}))
	assert.Nil(t, none.skillsWith("x"))
	assert.Nil(t, none.Search("x", 1, nil))
	assert.Nil(t, NewShelf(shelf(skill(t, "s", "b", 0)).Shelf, nil, nil, nil))
}

// A shelf of the same entries is the shelf that was there.
func TestShelfIsKept(t *testing.T) {
	t.Parallel()
	a, b := skill(t, "s", "a", 0), entry(t, "s", Prompt, `{"name":"b"}`)
	held, barred := skill(t, "s", "h", 0), skill(t, "s", "i", 0)
	held.Quarantined, barred.Barred = errors.New("held"), errors.New("barred")
	index := func(docs []*search.Document) *search.Index { return search.NewIndex(docs, nil) }
	first := NewShelf(nil, []*Entry{a, b, held, barred}, nil, index)
	assert.Same(t, first, NewShelf(first, []*Entry{a, b, held, barred}, nil, index))
	assert.NotSame(t, first, NewShelf(first, []*Entry{b, a, held, barred}, nil, index))
	assert.Equal(t, []*Entry{a}, first.Skills())
	assert.Same(t, b, first.Find(ID{"s", Prompt, "b"}))
	assert.Nil(t, first.Find(ID{"t", Prompt, "b"}))
	assert.Equal(t, []*Entry{held}, first.skillsWith("skill://h/SKILL.md"))
}

// What models read of an entry is one line each, but for where it is.
func TestFoundEntries(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Found(nil, 5))
	list := Found([]*Entry{
		entry(t, "s", Resource, `{"uri":"mem://a/long","name":"a\nb","title":"a b","description":"longer text","mimeType":"text/plain","size":7}`),
		entry(t, "s", Template, `{"uriTemplate":"mem://{a}","name":"n","title":"t"}`),
	}, 5)
	assert.Equal(t, []FoundEntry{
		{Server: "s", URI: "mem://a/long", Name: "a b", Description: "long…", MIMEType: "text…", Size: 7},
		{Server: "s", Template: "mem://{a}", Name: "n", Title: "t"},
	}, list)
}

// Texts are texts for a model, images are images, and all else is a resource.
func TestResultOfWhatIsRead(t *testing.T) {
	t.Parallel()
	blob := func(kind string) mcp.BlobResourceContents {
		return mcp.BlobResourceContents{URI: "mem://a", MIMEType: kind, Blob: "AA=="}
	}
	got := Result(&mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{Text: "t"}, blob("IMAGE/png"), blob("imagery/png"), blob("audio/wav")}})
	assert.Equal(t, []mcp.Content{mcp.NewTextContent("t"), mcp.NewImageContent("AA==", "IMAGE/png"), mcp.NewEmbeddedResource(blob("imagery/png")), mcp.NewEmbeddedResource(blob("audio/wav"))}, got.Content)
	assert.NotNil(t, Result(&mcp.ReadResourceResult{}).Content)
}

// What a skill's server says of its files is complete, or the skill is refused.
func TestFilesOfASkillAreComplete(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 64)
	good := skillText("b", 1, 1)
	for _, test := range []struct{ old, new, want string }{
		{`"size":1}]`, `"size":-1}]`, `"skill://b/f0.md" has no size`}, {`,"size":1}]`, `}]`, `"skill://b/f0.md" has no size`},
		{`"size":1}]`, `"size":0}]`, ""},
		{`"skill://b/SKILL.md","digest"`, `"skill://b/other","digest"`, "the resources lack its SKILL.md"},
		{`skill://b/f0.md`, `skill://b/SKILL.md`, `"skill://b/SKILL.md" is there more than once`},
		{`sha256:` + zeros + `","size":1}]`, `sha256:` + zeros[1:] + `","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`sha256:` + zeros + `","size":1}]`, `sha256:` + zeros + `0","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`sha256:` + zeros + `","size":1}]`, `sha512:` + zeros + `","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`sha256:` + zeros + `","size":1}]`, `sha256:A` + zeros[1:] + `","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`sha256:` + zeros + `","size":1}]`, `sha256:x` + zeros[1:] + `","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`sha256:` + zeros + `","size":1}]`, `sha256:a` + zeros[1:] + `","size":1}]`, ""},
		{`sha256:` + zeros + `","size":1}]`, zeros + `","size":1}]`, `the digest of "skill://b/f0.md"`},
		{`"resources":[`, `"resources":"x","other":[`, "they are no list of files with digests and sizes"},
		{`"resources":[`, `"other":[`, "they are no list of files with digests and sizes"},
		{`"resources":[`, `"resources":"dynamic","other":[`, "they are dynamic"},
		{`"frontmatter"`, `"Uri":"x","frontmatter"`, `the member "uri" is there more than once`},
		{`"uri":"skill://b/SKILL.md","frontmatter"`, `"frontmatter"`, "the uri is missing"},
	} {
		raw := strings.Replace(good, test.old, test.new, 1)
		require.NotEqual(t, good, raw, test.old)
		_, err := Parse(Skill, []byte(raw), 1<<20)
		if test.want == "" {
			assert.NoError(t, err, test.new)
		} else {
			assert.ErrorContains(t, err, test.want, test.new)
		}
	}
	assert.Equal(t, "x/b", SkillPath("skill://x/b/SKILL.md"))
	assert.Equal(t, "other://x/b", SkillPath("other://x/b/SKILL.md"))
}

// A file of skills is barred if all of them are held back or, for who does not list it, if the
// session may have none. Skills of other servers say nothing of it.
func TestFilesOfSkillsThatAreHeldBack(t *testing.T) {
	t.Parallel()
	of := func(server string, barred, held error) *Entry {
		e := skill(t, server, "b", 1)
		e.Barred, e.Quarantined = barred, held
		return e
	}
	barred, held := errors.New("barred"), errors.New("held")
	for name, test := range map[string]struct {
		skills           []*Entry
		listed, unlisted error // that stands where the server lists the file, and where it does not
	}{
		"none":              {nil, nil, nil},
		"one":               {[]*Entry{of("s", nil, nil)}, nil, nil},
		"held back":         {[]*Entry{of("s", nil, held)}, held, held},
		"one of two":        {[]*Entry{of("s", nil, held), of("s", nil, nil)}, nil, nil},
		"barred":            {[]*Entry{of("s", barred, nil)}, nil, barred},
		"barred, held back": {[]*Entry{of("s", barred, held)}, nil, barred},
		"of another":        {[]*Entry{of("t", barred, held)}, nil, nil},
		"beside another's":  {[]*Entry{of("s", nil, held), of("t", nil, nil)}, held, held},
	} {
		s := shelf(test.skills...)
		v := everything(s)
		for listed, want := range map[bool]error{true: test.listed, false: test.unlisted} {
			h := &holder{Place: Place{Server: "s"}, listed: listed}
			err := v.barFile(h, s, "skill://b/f0.md", "skill://b/f0.md")
			if want == nil {
				assert.NoError(t, err, "%s, listed: %t", name, listed)
			} else {
				assert.ErrorIs(t, err, want, "%s, listed: %t", name, listed)
			}
		}
	}
}
