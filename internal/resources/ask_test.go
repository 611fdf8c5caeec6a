package resources

import (
	"context"
	"crypto/sha256"
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

// ownedBy returns an owner's shelf, whose servers have skills.
func ownedBy(of any, skilled []string, entries ...*Entry) Owned {
	return Owned{Of: of, Shelf: NewShelf(nil, entries, skilled, func(docs []*search.Document) *search.Index { return search.NewIndex(docs, nil) })}
}

// An entry is what the place itself lists, whoever else has one of that ID.
func TestEntryOfAPlace(t *testing.T) {
	t.Parallel()
	mine, theirs := entry(t, "s", Prompt, `{"name":"a"}`), entry(t, "s", Prompt, `{"name":"a"}`)
	v := everything(ownedBy("me", nil, mine), ownedBy("them", nil, theirs), ownedBy("me", nil, entry(t, "late", Prompt, `{"name":"b"}`)))
	assert.Same(t, mine, v.Entry(Place{"me", "s"}, Prompt, "a"))
	assert.Same(t, theirs, v.Entry(Place{"them", "s"}, Prompt, "a"))
	assert.NotNil(t, v.Entry(Place{"me", "late"}, Prompt, "b"), "of the second shelf")
	for _, none := range []*Entry{
		v.Entry(Place{"others", "s"}, Prompt, "a"), v.Entry(Place{"me", "t"}, Prompt, "a"), v.Entry(Place{"me", "s"}, Resource, "a"), v.Entry(Place{"me", "s"}, Prompt, "b"),
	} {
		assert.Nil(t, none)
	}
}

// Servers with skills are those that are there and that the session may know of. Of two of one name,
// the first counts, also if it is barred.
func TestServersWithSkills(t *testing.T) {
	t.Parallel()
	v := everything(Owned{Of: "nobody"}, ownedBy("me", []string{"a", "barred", "gone"}), ownedBy("them", []string{"a", "b", "barred", "gone"}))
	v.Bar = func(names rules.Subject) error {
		if names.Server == "barred" && names.Own == "me" {
			return errors.New("barred")
		}
		return nil
	}
	v.Server = func(p Place) (rules.Subject, bool) {
		return rules.Subject{Server: p.Server, Own: p.Of.(string)}, p.Server != "gone"
	}
	assert.Equal(t, []Place{{"me", "a"}, {"them", "b"}}, v.Skilled())
	assert.Nil(t, everything().Skilled())

	// A skill is asked of these, or of the one that is named.
	assert.Equal(t, []Place{{"me", "a"}, {"them", "b"}}, v.MayAsk("", "skill://x/SKILL.md"))
	assert.Equal(t, []Place{{"nobody", "b"}}, v.MayAsk("b", "skill://x/SKILL.md"), "the first owner's, if that is there")
	assert.Nil(t, v.MayAsk("gone", "skill://x/SKILL.md"))
	var asked []rules.Subject
	v.BarSkill = func(names rules.Subject) error {
		if asked = append(asked, names); names.Server == "a" {
			return errors.New("no skills of a")
		}
		return nil
	}
	assert.Equal(t, []Place{{"them", "b"}}, v.MayAsk("", "skill://x/y/SKILL.md"))
	assert.Equal(t, []rules.Subject{{Server: "a", Own: "x/y"}, {Server: "b", Own: "x/y"}}, asked)
	v.BarURI = func(of any, names rules.Subject) error {
		if of == "them" && strings.HasPrefix(names.URI, "skill://secret/") {
			return errors.New("secret")
		}
		return nil
	}
	assert.Equal(t, []Place{{"them", "b"}}, v.MayAsk("", "skill://x/SKILL.md"))
	assert.Nil(t, v.MayAsk("", "skill://secret/SKILL.md"))
	assert.Nil(t, v.MayAsk("", "skill://%73ecret/SKILL.md"), "in another spelling")
}

// What a server may have without a list counts, unless the session may not know of it.
func TestReadsOfServersWithoutAList(t *testing.T) {
	t.Parallel()
	v := everything()
	v.Unlisted = []Place{{"me", "gone"}, {"me", "barred"}}
	v.Server = func(p Place) (rules.Subject, bool) { return rules.Subject{Server: p.Server}, p.Server != "gone" }
	v.Bar = func(names rules.Subject) error {
		if names.Server == "barred" {
			return errors.New("barred")
		}
		return nil
	}
	assert.False(t, v.Reads())
	v.Unlisted = append(v.Unlisted, Place{"me", "a"})
	assert.True(t, v.Reads())
	v.Unlisted = append(v.Unlisted, Place{"them", "a"}, Place{"them", "b"})
	asked := func(server, uri string) (list []Place) {
		for _, h := range v.unlisted(t.Context(), server, &asked{uri, func() ([]string, error) { return Forms(uri) }}) {
			assert.NoError(t, h.refused)
			list = append(list, h.Place)
		}
		return list
	}
	assert.Equal(t, []Place{{"me", "barred"}, {"me", "a"}, {"them", "b"}}, asked("", "mem://x"), "the first of a name")
	assert.Equal(t, []Place{{"them", "b"}}, asked("b", "mem://x"))
	assert.Nil(t, asked("gone", "mem://x"))
	assert.Nil(t, asked("", "SKILL://x/SKILL.md"))
	v.BarURI = func(_ any, names rules.Subject) error {
		if names.Server == "b" {
			return errors.New("barred")
		}
		return nil
	}
	assert.Nil(t, asked("b", "mem://x"))
}

// A skill that is not listed is the one that was asked for.
func TestUnlistedSkill(t *testing.T) {
	t.Parallel()
	raw := []byte(skillText("b", 1, 1))
	d, err := lister().Unlisted(raw, "skill://b/SKILL.md")
	require.NoError(t, err)
	assert.True(t, d.Entry.Unlisted)
	assert.Equal(t, "skill://b/SKILL.md", d.Entry.ID)
	d, err = lister().Unlisted(raw, "skill://c/SKILL.md")
	assert.EqualError(t, err, `the server was asked for "skill://c/SKILL.md" and answered with "skill://b/SKILL.md"`)
	assert.Nil(t, d)
	_, err = lister().Unlisted([]byte(`{"uri":5}`), "skill://b/SKILL.md")
	assert.Error(t, err)
}

// The SKILL.md that is read says in its front matter what the list says of it.
func TestFrontMatterOfASkill(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"---\nname: b\ndescription: S\n---\nDo it.": "", "---\nname: c\ndescription: S\n---\n": "name", "Do it.": "front matter",
	} {
		sum := sha256.Sum256([]byte(said))
		listed := strings.Replace(skillText("b", 0, 1), strings.Repeat("0", 64)+`","size":1`, fmt.Sprintf(`%x","size":%d`, sum, len(said)), 1)
		it, err := Parse(Skill, []byte(listed), 1<<20)
		require.NoError(t, err)
		read := func(text string) *mcp.ReadResourceResult {
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: it.ID, Text: text}}}
		}
		assert.ErrorIs(t, it.Verify(it.ID, read(said+"x")), ErrOtherContent)
		if err = it.Verify(it.ID, read(said)); want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want, said)
		}
	}
}

// Of the templates that expand to what is nowhere, one that the session may use is enough.
func TestTemplatesOfWhatIsNowhere(t *testing.T) {
	t.Parallel()
	held := entry(t, "s", Template, `{"uriTemplate":"mem://a/{x}"}`)
	held.Barred = errors.New("held back")
	open := entry(t, "s", Template, `{"uriTemplate":"mem://a/{+y}"}`)
	elsewhere := entry(t, "s", Template, `{"uriTemplate":"mem://b/{x}"}`)
	others := entry(t, "t", Template, `{"uriTemplate":"mem://a/{x}"}`)
	plain := entry(t, "s", Resource, `{"uri":"mem://c"}`)
	for name, test := range map[string]struct {
		entries []*Entry
		barred  bool
	}{
		"none":                     {nil, false},
		"one that is held back":    {[]*Entry{plain, held, elsewhere}, true},
		"the held back one first":  {[]*Entry{held, open}, false},
		"the held back one last":   {[]*Entry{open, held}, false},
		"only others have it open": {[]*Entry{held, others}, true},
		"only others bar it":       {[]*Entry{others, plain}, false},
	} {
		v := everything(Owned{Of: "me"}, ownedBy("me", nil, test.entries...), ownedBy("them", nil, open))
		uri := &asked{"mem://a/1", func() ([]string, error) { return Forms("mem://a/1") }}
		err := v.barExpanded(t.Context(), Place{"me", "s"}, uri)
		if test.barred {
			assert.ErrorContains(t, err, "held back", name)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, v.barExpanded(ended, Place{"me", "s"}, uri), context.Canceled, name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}
