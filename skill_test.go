package mcphybrid

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// someSkills returns n skills, a000 and so on.
func someSkills(n int) []Skill {
	list := make([]Skill, n)
	for i := range list {
		list[i] = Skill{Name: fmt.Sprintf("a%03d", i), Description: fmt.Sprintf("Says how chore %d is done", i), Body: fmt.Sprintf("Do chore %d.", i)}
	}
	return list
}

// listedIn returns the names of the skills that a section lists.
func listedIn(t *testing.T, section string) (names, descriptions []string) {
	t.Helper()
	for len(section) > 0 {
		_, list, found := strings.Cut(section, "<available_skills>")
		if !found {
			break
		}
		list, section, found = strings.Cut(list, "</available_skills>\n")
		require.True(t, found)
		var parsed struct {
			Skills []struct {
				Name        string `xml:"name"`
				Description string `xml:"description"`
			} `xml:"skill"`
		}
		decoder := xml.NewDecoder(strings.NewReader("<available_skills>" + list + "</available_skills>"))
		require.NoError(t, decoder.Decode(&parsed))
		for _, s := range parsed.Skills {
			names, descriptions = append(names, s.Name), append(descriptions, s.Description)
		}
	}
	return names, descriptions
}

// SPEC A15: 60 skills are listed, 61 are not.
func TestSpecA15SkillsByCount(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 60, 61} {
		m, r := newTestManager(t, &Options{Skills: someSkills(n), Servers: []ServerConfig{inProcess("s", 1)}})
		_, canSearch := r.Get(SkillSearchToolName)
		_, canLoad := r.Get(SkillLoadToolName)
		assert.True(t, canLoad)
		names, _ := listedIn(t, skillsSection(m.Default()))
		assert.True(t, strings.HasSuffix(m.PromptSections(PromptFull), "\n\n"+skillsSection(m.Default())), "behind the tools")
		if n <= 60 {
			assert.Len(t, names, n)
			assert.False(t, canSearch)
			assert.NotContains(t, skillsSection(m.Default()), SkillSearchToolName)
			continue
		}
		assert.Empty(t, names)
		assert.True(t, canSearch)
		assert.Contains(t, skillsSection(m.Default()), "61 skills are available")
		assert.Contains(t, toolNamesOf(m.Default().Tools()), SkillSearchToolName)
	}
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("s", 1)}})
	assert.Empty(t, skillsSection(m.Default()))
	assert.NotContains(t, toolNamesOf(m.Default().Tools()), SkillLoadToolName)
}

// SPEC A15: a list of 5,000 estimated tokens is listed, one of 5,001 is not.
func TestSpecA15SkillsByTokens(t *testing.T) {
	t.Parallel()
	skills := someSkills(20)
	for i := range skills {
		skills[i].Description = strings.Repeat("é", 900)
	}
	m, _ := newTestManager(t, &Options{Skills: skills})
	most := 5000*4 + 3 // characters, for 5,000 tokens
	skills[0].Description += strings.Repeat("é", 100)
	missing := most - utf8.RuneCountInString(skillsSection(m.Default())) - 100
	for i := 1; missing > 0; i++ {
		n := min(missing, 100)
		skills[i].Description += strings.Repeat("é", n)
		missing -= n
	}
	require.NoError(t, m.SetSkills(skills))
	m.Default().Compact()
	assert.Equal(t, most, utf8.RuneCountInString(skillsSection(m.Default())))
	names, _ := listedIn(t, skillsSection(m.Default()))
	assert.Len(t, names, 20)

	skills[19].Description += "é"
	require.NoError(t, m.SetSkills(skills))
	m.Default().Compact()
	names, _ = listedIn(t, skillsSection(m.Default()))
	assert.Empty(t, names)
	assert.Contains(t, skillsSection(m.Default()), "20 skills are available")
}

// SPEC A16: both thresholds are options.
func TestSpecA16SkillThresholds(t *testing.T) {
	t.Parallel()
	section := func(o Options) string {
		o.Skills = someSkills(3)
		m, _ := newTestManager(t, &o)
		return skillsSection(m.Default())
	}
	tokens := utf8.RuneCountInString(section(Options{})) / 4
	for _, test := range []struct {
		opts   Options
		listed int
	}{
		{Options{}, 3},
		{Options{SkillListing: SkillListingOptions{Max: 3}}, 3},
		{Options{SkillListing: SkillListingOptions{Max: 2}}, 0},
		{Options{SkillListing: SkillListingOptions{Max: -1}}, 0},
		{Options{SkillListing: SkillListingOptions{MaxTokens: tokens}}, 3},
		{Options{SkillListing: SkillListingOptions{MaxTokens: tokens - 1}}, 0},
		{Options{SkillListing: SkillListingOptions{MaxTokens: -1}}, 0},
		{Options{SkillListing: SkillListingOptions{Max: -1}, Access: Access{Deny: []string{SkillSearchToolName}}}, 3},
	} {
		names, _ := listedIn(t, section(test.opts))
		assert.Len(t, names, test.listed, "%+v", test.opts)
	}
	var o Options
	o.setDefaults()
	assert.Equal(t, [2]int{60, 5000}, [2]int{o.SkillListing.Max, o.SkillListing.MaxTokens})
}

func toolNamesOf(tools []Tool) []string { return namesOf(tools) }

func TestSkillSearchAndLoad(t *testing.T) {
	t.Parallel()
	skills := append(someSkills(100),
		Skill{Name: "code-review", Description: "How we review code. " + strings.Repeat("Really. ", 40), Body: "Read it all.",
			Tools: []string{"mcp_a__tool_003", "tool_001", "mcp_b__nowhere"}},
		Skill{Name: "poetry", Description: "Writes verse", Body: strings.Repeat("rose ", 20_000)},
	)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Skills: skills, Servers: []ServerConfig{inProcess("a", 5), inProcess("b", 2)}})
	s := m.NewSession(nil)
	call := func(s *Session, name, args string) string {
		r, err := s.Call(t.Context(), name, args)
		require.NoError(t, err)
		return resultText(t, r)
	}
	found := call(s, SkillSearchToolName, `{"query":"review the code"}`)
	assert.Contains(t, found, `{"skills":[{"name":"code-review","description":"How we review code. Really.`)
	assert.Contains(t, found, `…"}],"count":1,"message":"Load the skill`)
	assert.Contains(t, call(s, SkillSearchToolName, `{"query":"chore","max_results":1000}`), `"count":20,`)
	assert.Contains(t, call(s, SkillSearchToolName, `{"query":"chore"}`), `"count":5,`)
	assert.Contains(t, call(s, SkillSearchToolName, `{"query":"select:poetry,a007"}`), `{"skills":[{"name":"poetry","description":"Writes verse"},{"name":"a007",`)
	assert.Contains(t, call(s, SkillSearchToolName, `{"query":"zebra"}`), `{"skills":[],"count":0,"message":"No skill matches.`)
	assert.Contains(t, call(s, SkillSearchToolName, `{"query":"?"}`), "no keyword")
	assert.Contains(t, call(s, SkillSearchToolName, `{}`), `skill_search was not run: "query" is missing`)
	assert.Empty(t, s.ActiveTools())

	text := call(s, SkillLoadToolName, `{"name":"code-review"}`)
	assert.Equal(t, "Skill code-review. It uses these tools, which are active now: mcp_a__tool_003, mcp_a__tool_001, mcp_b__tool_001. "+
		"It also names tools that are not there; do what you can without them: mcp_b__nowhere.\n\nRead it all.", text)
	assert.Equal(t, []string{"mcp_a__tool_003", "mcp_a__tool_001", "mcp_b__tool_001"}, toolNames(s.ActiveTools()))
	assert.Empty(t, m.ActiveTools())
	require.Len(t, m.Problems(), 1)
	assert.EqualError(t, m.Problems()[0], `mcphybrid: skill "code-review" names missing tools: "mcp_b__nowhere"`)

	long := call(s, SkillLoadToolName, `{"name":"poetry"}`)
	assert.Less(t, len(long), defaultMaxResult+1000)
	assert.Contains(t, long, "To read them, call mcp_tool_page")
	assert.Contains(t, call(s, PageToolName, `{"id":"r1","offset":50000}`), "rose rose")

	assert.Equal(t, `There is no skill named "code_reviews". Did you mean code-review?`, call(s, SkillLoadToolName, `{"name":"code_reviews"}`))
	assert.Equal(t, `There is no skill named "zzz". Find one with skill_search.`, call(s, SkillLoadToolName, `{"name":"zzz"}`))
	assert.Contains(t, call(s, SkillLoadToolName, `{}`), `"name" is missing`)
	assert.Contains(t, call(s, SkillLoadToolName, `{"name":3}`), "skill_load was not run")

	bridge := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	assert.Contains(t, call(bridge, SkillLoadToolName, `{"name":"code-review"}`), "which mcp_tool_describe describes and mcp_tool_call calls: mcp_a__tool_003, ")
	assert.Empty(t, bridge.ActiveTools())
}

// A session finds and loads only the skills that it may use, and its children
// no more than that.
func TestSkillAccess(t *testing.T) {
	t.Parallel()
	skills := append(someSkills(3), Skill{Name: "secret-plan", Description: "Chore of the boss", Body: "Shh.", Tools: []string{"mcp_s__tool_001"}})
	m, _ := newTestManager(t, &Options{Skills: skills, Inline: InlineOptions{Max: 1}, SkillListing: SkillListingOptions{Max: 2}, Servers: []ServerConfig{inProcess("s", 3)}})
	s := m.NewSession(&SessionOptions{Skills: Access{Deny: []string{"secret-*"}}, Access: Access{Deny: []string{"mcp_s__tool_001"}}})
	child := s.NewChild(&SessionOptions{Skills: Access{Allow: []string{"a001", "secret-plan"}}})
	for _, s := range []*Session{s, child} {
		for _, args := range []string{`{"query":"secret-plan"}`, `{"query":"select:secret-plan"}`, `{"query":"boss"}`} {
			r, _ := s.Call(t.Context(), SkillSearchToolName, args)
			assert.NotContains(t, resultText(t, r), `"secret-plan"`)
		}
		r, _ := s.Call(t.Context(), SkillLoadToolName, `{"name":"secret-plan"}`)
		assert.Contains(t, resultText(t, r), `There is no skill named "secret-plan".`)
	}
	assert.Contains(t, skillsSection(s), "3 skills")
	names, _ := listedIn(t, skillsSection(child))
	assert.Equal(t, []string{"a001"}, names)

	// A skill activates only the tools that the session may use.
	deny := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"mcp_s__tool_001"}}})
	r, err := deny.Call(t.Context(), SkillLoadToolName, `{"name":"secret-plan"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, r), "without them: mcp_s__tool_001.")
	assert.Empty(t, deny.ActiveTools())

	none := m.NewSession(&SessionOptions{Access: Access{Deny: []string{SkillLoadToolName}}})
	assert.Empty(t, skillsSection(none))
	_, err = none.Call(t.Context(), SkillLoadToolName, `{"name":"a001"}`)
	assert.ErrorIs(t, err, ErrUnknownTool)
	_, err = none.Call(t.Context(), SkillSearchToolName, `{"query":"chore"}`)
	assert.ErrorIs(t, err, ErrUnknownTool)
	all, _ := listedIn(t, skillsSection(m.NewSession(&SessionOptions{Access: Access{Deny: []string{SkillSearchToolName}}})))
	assert.Len(t, all, 4, "what can't be searched for is in sight")
}

// No description can end its element or its line, and the section is XML.
func TestSkillsSectionIsXML(t *testing.T) {
	t.Parallel()
	alphabet := []string{"a", "é", "<", ">", "&", "\"", "'", "</description>", "</skill></available_skills>\n\n## Heading", "\n", "\r", "\t", "\x00", "\x1b",
		"\u200b", "\u202e", "\U000E0041", "\ufffe", "\uffff", "\xff", "\u0085", "]]>", "<!--", "&amp;", "&#0;", "<?x?>", "日本", " "}
	r := rand.New(rand.NewPCG(1, 2))
	for seed := range 300 {
		var skills []Skill
		for i := range 5 {
			d := "x"
			for range r.IntN(20) {
				d += alphabet[r.IntN(len(alphabet))]
			}
			skills = append(skills, Skill{Name: fmt.Sprintf("s%d", i), Description: d, Body: "b"})
		}
		m := NewManager(&Options{Skills: skills})
		section := skillsSection(m.Default())
		names, descriptions := listedIn(t, section)
		require.Len(t, names, 5, "seed %d: %q", seed, section)
		for i, d := range descriptions {
			require.Equal(t, text.Line(skills[i].Description, 1024), d)
		}
		require.Equal(t, 5+6, strings.Count(section, "\n"), "%q", section)
		other := NewManager(&Options{Skills: skills})
		require.Equal(t, section, other.PromptSections(PromptFull)[2:])
		require.Empty(t, m.PromptSections(PromptMinimal)+m.PromptSections(PromptBootstrap))
		m.Close()
		other.Close()
	}
}

// Shown skills stay and new ones are appended. They are listed as long as there
// are few enough.
func TestSkillsAreAppended(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Skills: someSkills(2), SkillListing: SkillListingOptions{Max: 4}, Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("s", 3)}})
	s := m.NewSession(&SessionOptions{})
	names := func() []string { n, _ := listedIn(t, skillsSection(s)); return n }
	first := s.PromptSections(PromptFull)
	assert.Equal(t, []string{"a000", "a001"}, names())

	changed := someSkills(4)
	changed[0].Description = "Something else"
	require.NoError(t, m.SetSkills(changed[:1]))
	assert.Equal(t, first, s.PromptSections(PromptFull), "what is gone is still shown")
	result, err := s.Call(t.Context(), SkillLoadToolName, `{"name":"a001"}`)
	require.NoError(t, err)
	assert.True(t, result.IsError)

	require.NoError(t, m.SetSkills(changed))
	second := s.PromptSections(PromptFull)
	assert.True(t, strings.HasPrefix(second, first))
	assert.Equal(t, []string{"a000", "a001", "a002", "a003"}, names())
	assert.NotContains(t, second, "Something else")
	_, ok := r.Get(SkillSearchToolName)
	assert.False(t, ok)

	require.NoError(t, m.SetSkills(someSkills(10)))
	third := s.PromptSections(PromptFull)
	assert.True(t, strings.HasPrefix(third, second))
	assert.Contains(t, third[len(second):], "6 more skills are available")
	tools := s.Tools()
	assert.Equal(t, SkillSearchToolName, tools[len(tools)-1].Name(), "at the end")
	_, ok = r.Get(SkillSearchToolName)
	assert.True(t, ok)

	require.NoError(t, m.SetSkills(someSkills(1)))
	assert.Equal(t, third, s.PromptSections(PromptFull))
	_, err = s.Call(t.Context(), SkillSearchToolName, `{"query":"chore"}`)
	assert.NoError(t, err, "it was shown")

	require.NoError(t, m.SetSkills(nil))
	s.Compact()
	assert.Empty(t, skillsSection(s))
	assert.NotContains(t, toolNamesOf(s.Tools()), SkillLoadToolName)
	_, ok = r.Get(SkillLoadToolName)
	assert.False(t, ok)
}

// Skills that can't be used are left out, and the error names them.
func TestBadSkills(t *testing.T) {
	t.Parallel()
	var tooMany []string
	for i := range 33 {
		tooMany = append(tooMany, fmt.Sprint(i))
	}
	good := Skill{Name: "good-1", Description: "d", Body: "b"}
	bad := []struct {
		change func(*Skill)
		want   string
	}{
		{func(s *Skill) { s.Name = "" }, `skill 2, "": it has no name`},
		{func(s *Skill) { s.Name = "Good" }, `skill 2, "Good": its name may have lower-case letters`},
		{func(s *Skill) { s.Name = "a_b" }, `its name may have`},
		{func(s *Skill) { s.Name = "é" }, `its name may have`},
		{func(s *Skill) { s.Name = "-a" }, `its name may have`},
		{func(s *Skill) { s.Name = strings.Repeat("a", 65) }, `its name has 65 characters, more than the limit of 64`},
		{func(s *Skill) { s.Description = " \u200b\n" }, `it has no description`},
		{func(s *Skill) { s.Description = strings.Repeat("é", 1025) }, `its description has 1025 characters, more than the limit of 1024`},
		{func(s *Skill) { s.Tools = tooMany }, `it names 33 tools, more than the limit of 32`},
		{func(s *Skill) { s.Body = " " }, `it has no text`},
		{func(s *Skill) { s.Body = strings.Repeat("x", 1<<20+1) }, `its text has 1048577 bytes, more than the limit of 1048576`},
		{func(s *Skill) {}, `an earlier skill has this name: the name is taken`},
	}
	for _, test := range bad {
		sk := good
		test.change(&sk)
		other := Skill{Name: "other", Description: strings.Repeat("é", 1024), Body: "b"}
		m := NewManager(&Options{Skills: []Skill{good, sk, other}})
		require.Len(t, m.Problems(), 1)
		assert.ErrorContains(t, m.Problems()[0], test.want)
		assert.EqualError(t, m.SetSkills([]Skill{good, sk, other}), m.Problems()[0].Error())
		names, _ := listedIn(t, skillsSection(m.Default()))
		assert.Equal(t, []string{"good-1", "other"}, names)
		m.Close()
		assert.ErrorIs(t, m.SetSkills(nil), ErrClosed)
		assert.Empty(t, skillsSection(m.Default()))
	}
}

// SPEC B7: texts of skills are loaded in the same way as connections: on
// demand, once for all sessions that wait, and again after a while.
func TestSpecB7SkillsAreLoadedLazily(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int32
		var fail atomic.Bool
		answer := make(chan string)
		m := NewManager(&Options{Skills: []Skill{{Name: "slow", Description: "Slow", Load: func(ctx context.Context) (string, error) {
			loads.Add(1)
			if fail.Load() {
				return "", errors.New("the disk is full")
			}
			select {
			case text := <-answer:
				return text, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}}}})
		defer m.Close()
		load := func(ctx context.Context) string {
			r, err := m.NewSession(nil).Call(ctx, SkillLoadToolName, `{"name":"slow"}`)
			require.NoError(t, err)
			return resultText(t, r)
		}
		assert.NotEmpty(t, m.PromptSections(PromptFull))
		assert.Zero(t, loads.Load(), "nobody has asked")

		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assert.Equal(t, "Skill slow.\n\none", load(t.Context())) })
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, `The skill "slow" could not be loaded: context deadline exceeded. Go on without it.`, load(impatient))
		answer <- "one"
		wg.Wait()
		assert.EqualValues(t, 1, loads.Load())

		time.Sleep(skillLifetime)
		assert.Contains(t, load(t.Context()), "one", "it serves while it is loaded anew")
		answer <- "two"
		synctest.Wait()
		assert.Contains(t, load(t.Context()), "two")
		assert.EqualValues(t, 2, loads.Load())

		time.Sleep(2 * skillLifetime)
		fail.Store(true)
		assert.Contains(t, load(t.Context()), "the disk is full", "too old to serve")
		fail.Store(false)
		wg.Go(func() { assert.Contains(t, load(t.Context()), "three", "an error is not kept") })
		answer <- "three"
		wg.Wait()

		require.NoError(t, m.SetSkills([]Skill{{Name: "slow", Description: "Slow", Load: func(ctx context.Context) (string, error) { panic("boo") }}}))
		assert.Contains(t, load(t.Context()), "its Load: panic: boo")
		require.NoError(t, m.SetSkills([]Skill{{Name: "slow", Description: "Slow", Load: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }}}))
		assert.Contains(t, load(t.Context()), "deadline exceeded", "after the call timeout")
	})
}

// While skills are replaced, sessions see either the whole old set or the whole
// new one.
func TestSetSkillsRace(t *testing.T) {
	t.Parallel()
	sets := [2][]Skill{someSkills(3), someSkills(8)}
	m, r := newTestManager(t, &Options{Skills: sets[0], SkillListing: SkillListingOptions{Max: 5}, Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("s", 5)}})
	for i := range sets[1] {
		sets[1][i].Tools = []string{"tool_003"}
	}
	var wg sync.WaitGroup
	var loaded atomic.Int32
	for range 8 {
		wg.Go(func() {
			for range 30 {
				s := m.NewSession(nil)
				text := skillsSection(s)
				switch {
				case strings.Contains(text, "8 skills are available"):
				case strings.Count(text, "<skill>") != 3:
					t.Errorf("neither: %s", text)
				}
				if again := skillsSection(s); !strings.HasPrefix(again, text) {
					t.Errorf("it changed: %s", again)
				}
				if _, err := s.Call(t.Context(), SkillLoadToolName, `{"name":"a001"}`); err == nil {
					loaded.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			if err := m.SetSkills(sets[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	assert.EqualValues(t, 240, loaded.Load())
	assert.NoError(t, checkRegistry(m.def, r))
}

// A restored session continues with the same bytes and names the skills that
// have changed.
func TestSkillsAreRestored(t *testing.T) {
	t.Parallel()
	opts := func(skills []Skill) *Options {
		return &Options{Skills: skills, SkillListing: SkillListingOptions{Max: 3}, Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("s", 3)}}
	}
	so := &SessionOptions{Skills: Access{Deny: []string{"a009"}}}
	m, _ := newTestManager(t, opts(someSkills(2)))
	s := m.NewSession(so)
	s.Tools()
	require.NoError(t, m.SetSkills(someSkills(6)))
	want := s.PromptSections(PromptFull)
	require.Contains(t, want, "4 more skills")

	other, _ := newTestManager(t, opts(someSkills(6)))
	restored, changed, err := other.RestoreSession(s.Save(), so)
	require.NoError(t, err)
	assert.Empty(t, changed)
	assert.Equal(t, want, restored.PromptSections(PromptFull))
	assert.Equal(t, toolNamesOf(s.Tools()), toolNamesOf(restored.Tools()))
	_, _, err = other.RestoreSession(s.Save(), nil)
	assert.ErrorContains(t, err, "more lists of skills than the new one, 1 instead of 0")

	less := someSkills(1)
	less[0].Description = "Changed"
	require.NoError(t, other.SetSkills(less))
	restored, changed, err = other.RestoreSession(s.Save(), so)
	require.NoError(t, err)
	assert.Equal(t, []string{"a000", "a001"}, changed)
	assert.Equal(t, want, restored.PromptSections(PromptFull), "what was shown stays")
	restored.Compact()
	names, _ := listedIn(t, skillsSection(restored))
	assert.Equal(t, []string{"a000"}, names)
}

// testdata/skills/prompt.golden has every word that the model reads about
// skills.
func TestSkillPromptGolden(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, SkillListing: SkillListingOptions{Max: 2}, Servers: []ServerConfig{inProcess("s", 3)}, Skills: []Skill{
		{Name: "code-review", Description: "How we review <b>code</b>.\n## Not a heading", Body: "Read it.", Tools: []string{"tool_001", "tool_009"}},
	}})
	var b strings.Builder
	section := func(title, text string) { b.WriteString("=== " + title + "\n" + text + "\n") }
	answer := func(title, tool, args string) {
		r, err := m.Call(t.Context(), tool, args)
		require.NoError(t, err)
		section(title, resultText(t, r))
	}
	section("sections", skillsSection(m.Default()))
	answer("loaded", SkillLoadToolName, `{"name":"code-review"}`)
	require.NoError(t, m.SetSkills(append(someSkills(1), Skill{Name: "code-review", Description: "d", Body: "b"})))
	section("one more", skillsSection(m.Default()))
	require.NoError(t, m.SetSkills(append(someSkills(4), Skill{Name: "code-review", Description: "d", Load: func(context.Context) (string, error) { return "", errors.New("gone") }})))
	section("too many", skillsSection(m.Default()))
	m.Default().Compact()
	section("too many from the start", skillsSection(m.Default()))
	for _, tool := range m.Default().Tools() {
		if strings.HasPrefix(tool.Name(), "skill_") {
			section(tool.Name(), tool.Description()+"\n"+string(tool.InputSchema()))
		}
	}
	answer("found", SkillSearchToolName, `{"query":"chore 1","max_results":1}`)
	answer("nothing found", SkillSearchToolName, `{"query":"zebra"}`)
	answer("no keyword", SkillSearchToolName, `{"query":"?"}`)
	answer("no query", SkillSearchToolName, `{}`)
	answer("unknown", SkillLoadToolName, `{"name":"review-code"}`)
	answer("failed", SkillLoadToolName, `{"name":"code-review"}`)
	answer("no name", SkillLoadToolName, `{}`)

	golden.Compare(t, "skills/prompt.golden", b.String())
}

// The limit on a skill's text also applies to a loaded one.
func TestLoadedTextIsBounded(t *testing.T) {
	t.Parallel()
	size := 1 << 20
	m, _ := newTestManager(t, &Options{Skills: []Skill{{Name: "long", Description: "Long", Load: func(context.Context) (string, error) { return strings.Repeat("x", size), nil }}}})
	load := func() string {
		require.NoError(t, m.SetSkills(m.opts.Skills))
		r, err := m.NewSession(nil).Call(t.Context(), SkillLoadToolName, `{"name":"long"}`)
		require.NoError(t, err)
		return resultText(t, r)
	}
	assert.Contains(t, load(), "xxx")
	size++
	assert.Equal(t, `The skill "long" could not be loaded: its text has 1048577 bytes, more than the limit of 1048576. Go on without it.`, load())
}

// The tools of a skill for which the list has no room are named, too, to a model that can
// call them.
func TestSkillWhoseToolsHaveNoRoom(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{
		Inline: InlineOptions{Max: 1}, List: ListOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 4)},
		Skills: []Skill{{Name: "tidy", Description: "Tidies", Body: "Tidy up.", Tools: []string{"mcp_a__tool_001", "mcp_a__tool_002"}}},
	})
	const active = "Skill tidy. It uses these tools, which are active now: mcp_a__tool_001."
	for text, access := range map[string]Access{
		active + " It also uses these, for which the tool list has no room; mcp_tool_describe describes them and mcp_tool_call calls them: mcp_a__tool_002.\n\nTidy up.": {},
		active + "\n\nTidy up.": {Deny: []string{CallToolName}},
	} {
		s := m.NewSession(&SessionOptions{Access: access})
		r, err := s.Call(t.Context(), SkillLoadToolName, `{"name":"tidy"}`)
		require.NoError(t, err)
		assert.Equal(t, text, resultText(t, r))
		assert.NoError(t, check(m, s))
	}
}

// skillsSection returns the part of the prompt sections that lists the skills.
func skillsSection(s *Session) string {
	var parts []string
	for _, e := range s.show() {
		if e.section == skillText {
			parts = append(parts, e.mentions.skills.section())
		}
	}
	return strings.Join(parts, "\n")
}

// What sessions of many rights may use of the host's skills is kept for so many.
func TestViewsOfSkillsAreKept(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	set := m.newSkillSet(someSkills(3))
	for i := range 2 * maxPromptPrefixes {
		r := rules.Rights{{Deny: []string{fmt.Sprint("x", i)}}}
		first := set.view(r)
		assert.Equal(t, i < maxPromptPrefixes, first == set.view(r), i)
		assert.Len(t, first.list, 3)
	}
}
