package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func lister() *Lister {
	return &Lister{
		Server: "s", Names: func(own string) rules.Subject { return rules.Subject{Server: "s", Own: own} },
		Bar: func(rules.Subject) error { return nil }, MaxBytes: 1 << 20, Skill: func(it *Item) (string, error) { return it.Name, nil },
	}
}

func listOf(kind Kind, elements ...string) (all upstream.List) {
	for _, raw := range elements {
		all.Elements[Lists[kind]] = append(all.Elements[Lists[kind]], upstream.Element{Raw: json.RawMessage(raw)})
	}
	return all
}

func ids(list []*Definition) (ids []string) {
	for _, o := range list {
		ids = append(ids, o.Entry.ID)
	}
	return ids
}

// Each element that can't be used is told by its place, and the others are kept.
func TestCheckTellsWhatCantBeUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind     Kind
		elements []string
		kept     []string
		problem  string
	}{
		"a resource twice": {Resource, []string{`{"uri":"mem://a"}`, `{"uri":"mem://b"}`, `{"uri":"mem://a","name":"x"}`}, []string{"mem://a", "mem://b"}, `resource 2: another one is "mem://a" too; the first is kept`},
		"no uri":           {Resource, []string{`{"name":"x"}`, `{"uri":"mem://a"}`}, []string{"mem://a"}, "resource 0: the uri is missing"},
		"no template":      {Template, []string{`{"uri":"x"}`}, nil, "resource template 0: the uriTemplate is missing"},
		"no name":          {Prompt, []string{`{"uri":"x"}`}, nil, "prompt 0: the name is missing"},
		"a member twice":   {Resource, []string{`{"uri":"mem://a","name":"a","name":"b"}`}, nil, `"mem://a" has the member "name" more than once`},
		"a control":        {Resource, []string{`{"uri":"mem://a\u001fb"}`}, nil, `the uri "mem://a b": it has a control character`},
		"a delete":         {Template, []string{`{"uriTemplate":"mem://a\u007fb"}`}, nil, `the uriTemplate "mem://a b": it has a control character`},
		"no ASCII host":    {Resource, []string{`{"uri":"https://bü/x"}`}, nil, `the uri "https://bü/x": it has a host`},
		"bad template":     {Template, []string{`{"uriTemplate":"{a"}`}, nil, `the uriTemplate "{a": an expression does not end`},
		"bad arguments":    {Prompt, []string{`{"name":"p","arguments":{}}`, `{"name":"q","arguments":null}`}, []string{"q"}, `the arguments of "p" are malformed`},
		"a skill's name":   {Skill, []string{skillText("a", 0, 1), strings.ReplaceAll(skillText("a", 0, 1), "skill://a", "skill://x/a")}, []string{"skill://a/SKILL.md"}, `"skill://x/a/SKILL.md": another one has its name too; the first is kept`},
	} {
		list, problems, err := lister().Check(t.Context(), listOf(test.kind, test.elements...), nil)
		require.NoError(t, err, name)
		assert.Equal(t, test.kept, ids(list), name)
		require.Len(t, problems, 1, name)
		assert.ErrorContains(t, problems[0], test.problem, name)
		assert.ErrorContains(t, problems[0], `mcphybrid: server "s": `, name)
	}
}

// What is no problem for one kind is none.
func TestCheckKeepsEachKind(t *testing.T) {
	t.Parallel()
	all := listOf(Resource, `{"uri":"mem://a","name":"n"}`, `{"uri":"mem://b","name":"n"}`)
	all.Elements[upstream.Templates] = listOf(Template, `{"uriTemplate":"mem://a"}`).Elements[upstream.Templates]
	all.Elements[upstream.Prompts] = listOf(Prompt, `{"name":"mem://a"}`).Elements[upstream.Prompts]
	all.Elements[upstream.Skills] = listOf(Skill, skillText("n", 1, 1)).Elements[upstream.Skills]
	list, problems, err := lister().Check(t.Context(), all, nil)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, []string{"mem://a", "mem://b", "mem://a", "mem://a", "skill://n/SKILL.md"}, ids(list))
	assert.Equal(t, [NumKinds]int{2, 1, 1, 1}, Count(list))
	bytes := 0
	for _, o := range list {
		bytes += len(o.Entry.Raw)
	}
	assert.Equal(t, bytes, Size(list))
	raw := Raw(list)
	assert.Equal(t, []string{`{"uri":"mem://a","name":"n"}`, `{"uri":"mem://b","name":"n"}`}, raw["resource"])
	assert.Equal(t, []string{`{"name":"mem://a"}`}, raw["prompt"])
	raw["tools of it"] = []string{`{"name":"t"}`}
	back := Listed(raw, "tools of it")
	assert.Equal(t, []upstream.Element{{Raw: json.RawMessage(`{"name":"t"}`)}}, back.Elements[upstream.Tools])
	for _, of := range Lists {
		assert.Equal(t, all.Elements[of], back.Elements[of])
	}
	assert.Equal(t, "n", list[0].Entry.Names.Own)
	assert.Equal(t, "mem://a", list[0].Entry.Names.URI)
	assert.Empty(t, list[3].Entry.Names.URI, "a prompt has no URI")
	assert.Equal(t, "n", list[4].Entry.Names.Name, "a skill is loaded by the name that it got")
	assert.Equal(t, "n", list[4].Entry.Names.Own, "by its path")
	assert.Equal(t, "prompt mem://a", list[3].Trusted.Name)
}

// MaxTemplates are kept of a server, and not one more.
func TestTemplatesAtTheirLimit(t *testing.T) {
	t.Parallel()
	var templates []string
	for i := range 501 {
		templates = append(templates, fmt.Sprintf(`{"uriTemplate":"mem://%d"}`, i))
	}
	list, problems, err := lister().Check(t.Context(), listOf(Template, templates...), nil)
	require.NoError(t, err)
	assert.Len(t, list, 500)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "resource template 500: there are more than the limit of 500")
	_, problems, err = lister().Check(t.Context(), listOf(Template, append(templates[:500:500], templates[0])...), nil)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "another one is")
	list, problems, err = lister().Check(t.Context(), listOf(Prompt, strings.Split(strings.ReplaceAll(strings.Join(templates, "\n"), "uriTemplate", "name"), "\n")...), nil)
	require.NoError(t, err)
	assert.Len(t, list, 501, "prompts have no such limit")
	assert.Empty(t, problems)
}

// What can't be listed now is as it was; the other lists are new.
func TestListsThatFailStayAsTheyWere(t *testing.T) {
	t.Parallel()
	was := listOf(Resource, `{"uri":"mem://a"}`)
	was.Elements[upstream.Prompts] = listOf(Prompt, `{"name":"p"}`).Elements[upstream.Prompts]
	old, _, err := lister().Check(t.Context(), was, nil)
	require.NoError(t, err)
	now := listOf(Resource, `{"uri":"mem://b"}`)
	now.Failed[upstream.Prompts] = errors.New("broken")
	list, problems, err := lister().Check(t.Context(), now, old)
	require.NoError(t, err)
	assert.Equal(t, []string{"mem://b", "p"}, ids(list))
	assert.Same(t, old[1], list[1])
	require.Len(t, problems, 1)
	assert.EqualError(t, problems[0], `mcphybrid: server "s": its prompts can't be listed: broken`)
}

// What is listed unchanged stays the same definition; what a byte changed is a new one.
func TestUnchangedDefinitionsAreKept(t *testing.T) {
	t.Parallel()
	old, _, err := lister().Check(t.Context(), listOf(Resource, `{"uri":"mem://a"}`, `{"uri":"mem://b"}`), nil)
	require.NoError(t, err)
	l := lister()
	l.Bar = func(rules.Subject) error { return errors.New("barred") }
	list, _, err := l.Check(t.Context(), listOf(Resource, `{"uri":"mem://b","size":1}`, `{"uri":"mem://a"}`), old)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Same(t, old[0], list[1])
	assert.NotSame(t, old[1], list[0])
	assert.EqualError(t, list[0].Entry.Barred, "barred")
	assert.NotEqual(t, old[1].Trusted.Sum, list[0].Trusted.Sum)
	assert.Equal(t, old[1].Trusted.Hash(), list[0].Trusted.Hash(), "a size is no part of what is accepted")
}

// Where the configuration permits no skills they are barred, and nobody is told of those
// that could not be used.
func TestNoSkills(t *testing.T) {
	t.Parallel()
	l := lister()
	l.NoSkills = errors.New("no skills")
	list, problems, err := l.Check(t.Context(), listOf(Skill, skillText("a", 0, 1), `{}`), nil)
	require.NoError(t, err)
	assert.Empty(t, problems)
	require.Len(t, list, 1)
	assert.Same(t, l.NoSkills, list[0].Entry.Barred)
	list, problems, err = l.Check(t.Context(), listOf(Prompt, `{"name":"p"}`, `{}`), nil)
	require.NoError(t, err)
	assert.Len(t, problems, 1, "of others it is told")
	require.Len(t, list, 1)
	assert.NoError(t, list[0].Entry.Barred)
	l = lister()
	l.Skill = func(*Item) (string, error) { return "", errors.New("a bad name") }
	_, problems, err = l.Check(t.Context(), listOf(Skill, skillText("a", 0, 1)), nil)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], `"skill://a/SKILL.md": a bad name`)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := lister().Check(ctx, listOf(Prompt, `{"name":"p"}`), nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// An element with a problem of its own is told with it.
func TestElementsWithProblems(t *testing.T) {
	t.Parallel()
	all := listOf(Prompt, `{"name":"p"}`)
	all.Elements[upstream.Prompts][0].Problem = errors.New("too large")
	list, problems, err := lister().Check(t.Context(), all, nil)
	require.NoError(t, err)
	assert.Empty(t, list)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "prompt 0: too large")
}

// What is held back is so in the entries that are returned, unless it is barred.
func TestEntriesThatAreHeldBack(t *testing.T) {
	t.Parallel()
	list, _, err := lister().Check(t.Context(), listOf(Prompt, `{"name":"a"}`, `{"name":"b"}`, `{"name":"c"}`), nil)
	require.NoError(t, err)
	list[2].Entry.Barred = errors.New("barred")
	held := errors.New("held back")
	entries := Entries(list, map[int]error{1: held, 2: held})
	require.Len(t, entries, 3)
	assert.Same(t, list[0].Entry, entries[0])
	assert.Same(t, held, entries[1].Quarantined)
	assert.Equal(t, "b", entries[1].ID)
	assert.NoError(t, list[1].Entry.Quarantined, "the definition stays as it is")
	assert.Same(t, list[2].Entry, entries[2])
	assert.NoError(t, entries[2].Quarantined)
}
