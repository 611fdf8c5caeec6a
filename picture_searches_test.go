package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/search"
)

// hits writes the answer to a search of the host's.
func (p *picture) hits(title string, a Answer) {
	p.line("%s: %q, at most %d, meaning counts %.3f, %d by words, %d by meaning, error %v", title, a.Query, a.Limit, a.Alpha, a.Words, a.Meaning, a.Err)
	for _, h := range a.Hits {
		line := fmt.Sprintf("  %.3f %s, words %.3f, similarity %.3f, %s", h.Score, strings.TrimPrefix(h.Tool.name, "mcp_"), h.Words, h.Similarity, h.Standing)
		if h.NeededBy != nil {
			line += ", needed by " + h.NeededBy.name
		}
		p.line("%s", line)
	}
}

// pets are options for a Manager with tools that concepts understands, in two servers.
func pets(opts Options) Options {
	opts.Servers = []ServerConfig{
		serving("pets", echoTool("walk_dog", "Walks a dog."), echoTool("feed_cat", "Feeds a cat."), echoTool("book_vet", "Books a visit."), echoTool("list_animals", "Lists animals and their owners."), echoTool("groom", "Brushes hair of a pet.")),
		serving("town", echoTool("plan_road", "Plans a road trip by car."), echoTool("pay_invoice", "Pays an invoice to the bank."), echoTool("read_sun", "Reads how much sun there is."), echoTool("walk_town", "Walks through the town.")),
	}
	opts.Inline.Max = 2
	opts.Search.Threshold = -1
	opts.Rules = []Rule{ // for sessions that search for what others have inline
		{Name: "listed", Intent: "quiet", Patterns: []string{"mcp_pets__book_vet"}, Action: RuleSummarize},
		{Name: "out", Intent: "quiet", Patterns: []string{"mcp_pets__feed_cat"}, Action: RuleExclude},
	}
	opts.Needs = map[string][]string{"mcp_pets__book_vet": {"mcp_town__pay_invoice"}}
	return opts
}

func TestPictureOfSearches(t *testing.T) {
	broken := errors.New("the embedder has no power")
	for _, of := range []struct {
		name string
		opts func() Options
	}{
		{"by words", func() Options { return Options{} }},
		{"by the classic formula", func() Options { return Options{Search: RankingOptions{Ranker: RankerClassic}} }},
		{"with few results", func() Options { return Options{Search: RankingOptions{Results: 2, Limit: 3, ServerLimit: 1}} }},
		{"by meaning", func() Options { return Options{Semantic: &SemanticOptions{Embedder: newConcepts()}} }},
		{"by meaning, half", func() Options { return Options{Semantic: &SemanticOptions{Embedder: newConcepts(), Alpha: 0.5}} }},
		{"by meaning, without weight", func() Options { return Options{Semantic: &SemanticOptions{Embedder: newConcepts(), Alpha: -1}} }},
		{"by meaning, alone", func() Options {
			return Options{Semantic: &SemanticOptions{Embedder: newConcepts(), Alpha: 1, Least: 0.5}}
		}},
		{"by rank", func() Options { return Options{Semantic: &SemanticOptions{Embedder: newConcepts(), ByRank: true}} }},
		{"of few candidates", func() Options {
			return Options{Search: RankingOptions{ServerLimit: 1}, Semantic: &SemanticOptions{Embedder: newConcepts(), Candidates: 1}}
		}},
		{"with a broken embedder", func() Options {
			c := newConcepts()
			c.query = func(context.Context) error { return broken }
			return Options{Semantic: &SemanticOptions{Embedder: c}}
		}},
	} {
		t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(of.name), func(t *testing.T) {
			inPicture(t, "What searches of the host's find, "+of.name+": of the system, and of a user with servers of her own.", func(p *picture) {
				m := p.start("Nine tools, of which two are inline.", pets(of.opts()))
				u := newUser(p.T, m, "ada", nil)
				require.NoError(p, u.AddTools("own", echoTool("walk_home", "Walks home."), echoTool("call_animal", "Calls a pet animal by its name.")))
				p.step("A user has two.")
				for _, whose := range []struct {
					name string
					s    *Session
				}{{"the system's", m.NewSession(nil)}, {"a session's with restrictions", m.NewSession(&SessionOptions{Access: Access{Deny: []string{"mcp_pets__walk_dog", "feed_cat"}}})}, {"a session's by rules", m.NewSession(&SessionOptions{Intent: "quiet"})}, {"the user's", u.NewSession(nil)}} {
					s := whose.s
					s.ActivateTools([]string{"mcp_town__walk_town"})
					p.step("A search is " + whose.name + ". One deferred tool is active.")
					find := func(title, query string, opts SearchOptions) { p.hits(title, s.Find(p.Context(), query, opts)) }
					find("all", "walk", SearchOptions{})
					find("deferred", "walk", SearchOptions{DeferredOnly: true})
					find("one", "animal", SearchOptions{Limit: 1})
					find("many", "animal walk", SearchOptions{Limit: 99})
					find("fewer than none", "animal walk", SearchOptions{Limit: -1})
					find("by words", "dog animal", SearchOptions{By: ByWords})
					find("by meaning", "dog animal", SearchOptions{By: ByMeaning})
					find("of a server", "walk pet", SearchOptions{Servers: []string{"town"}})
					find("of servers by a pattern", "walk pet", SearchOptions{Servers: []string{"t*", "o?n"}})
					find("one of each server", "walk animal road", SearchOptions{ServerLimit: 1})
					find("without a limit of each server", "walk animal road", SearchOptions{ServerLimit: -1})
					find("by name", "book_vet", SearchOptions{})
					find("by a name in other words", "please book_vet for the dog", SearchOptions{Limit: 2})
					find("selected", "select:walk_dog, mcp_town__read_sun,none", SearchOptions{})
					find("selected, of a server", "select:walk_dog,read_sun", SearchOptions{Servers: []string{"pets"}, Limit: 1})
					find("without words", "the of", SearchOptions{})
					find("nothing", "", SearchOptions{})
					for _, name := range []string{"mcp_pets__walk_dog", "mcp_town__walk_town", "mcp_own__walk_home", "none"} {
						p.line("explained %s: %s", name, explained(s.Explain("walk dog home", name)))
						p.line("explained as deferred: %s", explained(s.explainDeferred("walk dog home", name)))
					}
					s.Close()
				}
			})
		})
	}
}

func explained(e search.Explanation) string {
	list := []string{fmt.Sprintf("%.3f, at least %.3f, missing %v", e.Score, e.Least, e.Missing)}
	for _, part := range e.Parts {
		list = append(list, fmt.Sprintf("%s:%s:%.3f", part.Field, part.Term, part.Score))
	}
	return strings.Join(list, " ")
}

// What sessions used comes sooner.
func TestPictureOfLearning(t *testing.T) {
	inPicture(t, "What a search finds of tools that sessions used: a score gains at most a fifth of the best one, and half of that where three sessions used the tool.", func(p *picture) {
		var tools []string
		opts := learning(&LearnOptions{HalfLife: time.Hour})
		m := p.start("Six tools.", *opts)
		for _, t := range m.DeferredTools() {
			tools = append(tools, t.name)
		}
		look := func(title string) {
			p.step(title)
			s := m.NewSession(nil)
			defer s.Close()
			p.hits("found", s.Find(p.Context(), "weather report", SearchOptions{Limit: 6}))
			p.hits("one", s.Find(p.Context(), "report", SearchOptions{Limit: 1}))
		}
		look("Nothing was used.")
		useIn(p.T, m, 1, "mcp_r__omega_report")
		look("One session used omega.")
		useIn(p.T, m, 1, "mcp_r__omega_report")
		look("Another did.")
		useIn(p.T, m, 3, "mcp_r__kappa_report")
		useIn(p.T, m, 3, "mcp_r__delta_report")
		look("Three used kappa, and three delta.")
		time.Sleep(time.Hour)
		look("An hour later.")
		useIn(p.T, m, 1, "mcp_r__omega_report")
		look("One more used omega.")
		p.line("tools %v", tools)
	})
}

// Tools selected for a message.
func TestPictureOfSelection(t *testing.T) {
	inPicture(t, "Which tools are selected for a message of the user's.", func(p *picture) {
		for _, jit := range []*JustInTimeOptions{nil, new(JustInTimeOptions), {Threshold: 2, Results: 1}, {Threshold: -1, Results: 9}} {
			opts := pets(Options{Search: RankingOptions{Results: 2}})
			opts.JustInTime = jit
			m := p.start(fmt.Sprintf("Options %+v", jit), opts)
			s := m.NewSession(&SessionOptions{Disclosure: ByActivation})
			for _, message := range []string{"walk the dog", "the vet wants money", "", "zebra"} {
				p.heading(fmt.Sprintf("For %q", message))
				p.line("selected %v", namesOf(s.SelectFor(p.Context(), message)))
				synctest.Wait()
				p.happened()
			}
			p.shown(s)
			p.session("", s)
			s.Close()
		}
	})
}

// A user's searches may have so many results of the system's tools, and so many of the user's.
func TestPictureOfAUsersSearches(t *testing.T) {
	inPicture(t, "What a user's searches find of the system's tools and of the user's own, by the limits of each.", func(p *picture) {
		for _, semantic := range []*SemanticOptions{nil, {Embedder: newConcepts()}, {Embedder: newConcepts(), Alpha: 0.5, Candidates: 2}} {
			opts := pets(Options{Semantic: semantic})
			m := p.start(fmt.Sprintf("Nine tools of the system. Meaning counts: %v.", semantic != nil), opts)
			for i, limits := range []UserOptions{{}, {SystemResults: 1}, {UserResults: 1}, {SystemResults: 2, UserResults: 1}, {SystemResults: NoLimit, UserResults: -1}, {SystemResults: -1}} {
				u, err := m.newUser(fmt.Sprintf("user-%d", i), &limits)
				require.NoError(p, err)
				require.NoError(p, u.AddTools("own", echoTool("walk_home", "Walks home."), echoTool("walk_dog", "Walks a dog, mine."), echoTool("call_animal", "Calls a pet animal by its name.")))
				p.step(fmt.Sprintf("At most %d of the system's, and %d of the user's, if there is a number.", limits.SystemResults, limits.UserResults))
				s := u.NewSession(nil)
				p.hits("all", s.Find(p.Context(), "walk animal dog", SearchOptions{}))
				p.hits("four", s.Find(p.Context(), "walk animal dog", SearchOptions{Limit: 4, ServerLimit: 2}))
				p.hits("deferred", s.Find(p.Context(), "walk animal dog", SearchOptions{DeferredOnly: true}))
				p.hits("of the user", s.Find(p.Context(), "walk", SearchOptions{Servers: []string{"own"}}))
				p.hits("by name", s.Find(p.Context(), "walk_dog", SearchOptions{}))
				p.called(s, SearchToolName, `{"query":"walk animal dog","max_results":4}`)
				s.Close()
				require.NoError(p, u.Close())
			}
		}
	})
}
