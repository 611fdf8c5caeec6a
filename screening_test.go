package mcphybrid

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever comes, goes and changes, a screening that takes over what has not changed is one that is made
// anew, shares what it took over, and tells what is new.
func TestScreening(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		pol := policyOf(Options{Pins: []string{"*pin"}, Rules: []Rule{
			{Name: "r", Patterns: []string{"*sum"}, Action: RuleSummarize}, {Name: "x", Patterns: []string{"*out"}, Action: RuleExclude},
		}})
		w := newScreener(pol, rules.Rights{{Deny: []string{"*denied"}}}, "")
		if seed%4 == 0 {
			w = newScreener(policyOf(Options{}), nil, "")
		}
		made := 0
		fresh := func(number int) *serverTools {
			s := &serverTools{number: number}
			var tools []*BridgeTool
			for range rnd.IntN(4) {
				made++
				t := namedTool(fmt.Sprintf("%d_%d_%s", number, made, []string{"pin", "sum", "out", "denied", "plain", "plain"}[rnd.IntN(6)]))
				t.def.Always = rnd.IntN(9) == 0
				s.alwaysLoaded = s.alwaysLoaded || t.def.Always
				tools = append(tools, t)
			}
			s.setTools(tools)
			return s
		}
		var servers []*serverTools
		var list toolList
		var all []*screening
		var plain *screening
		var lists []toolList
		numbers := 0
		for step := range 50 {
			servers = slices.Clone(servers)
			for range 1 + rnd.IntN(3) {
				switch at := rnd.IntN(len(servers) + 1); {
				case at == len(servers):
					servers = append(servers, fresh(numbers))
					numbers++
				case rnd.IntN(3) == 0:
					servers = slices.Delete(servers, at, at+1)
				case rnd.IntN(4) == 0: // it comes again, at the end
					again := servers[at]
					servers = append(slices.Delete(servers, at, at+1), again)
				default:
					servers[at] = fresh(servers[at].number)
				}
			}
			list = list.next(servers, numbers)
			c := &catalog{tools: list.tools, list: list}
			var before *screening
			if all != nil {
				before = all[len(all)-1]
			}
			plain = plainly.catalog(c, plain, nil, uint64(step+1))
			now := w.catalog(c, before, plain, uint64(step+1))
			want := w.catalog(c, nil, plainly.catalog(c, nil, nil, 1), 1)
			require.Equal(t, want.servers, now.servers, "seed %d", seed)
			require.Equal(t, []int{want.seen, want.summarized}, []int{now.seen, now.summarized}, "seed %d", seed)
			require.Equal(t, want.singled, now.singled, "seed %d", seed)
			assert.Same(t, now, w.catalog(c, now, plain, uint64(step+2)), "nothing has changed")
			all, lists = append(all, now), append(lists, list)
		}
		for i, was := range all {
			news, ok := all[len(all)-1].newsSince(was.line, was.number)
			require.True(t, ok)
			for k, s := range list.servers {
				if s == nil || len(s.tools) == 0 {
					continue
				}
				here := all[len(all)-1].servers[k]
				if there, ok := lists[i].place(s.number); ok && was.servers[there].version == s.version {
					continue
				}
				require.Contains(t, news, s.number, "seed %d, %d", seed, i)
				require.Equal(t, s.version, here.version)
			}
		}
		_, ok := all[3].newsSince(all[9].line, all[9].number)
		assert.False(t, ok || all[3].number == all[9].number, "it is from before")
		_, ok = all[9].newsSince(77, all[3].number)
		assert.False(t, ok, "another line")
	}
}

// A screening tells of so many changes, and then that it does not know.
func TestNewsOfScreeningsAreBounded(t *testing.T) {
	t.Parallel()
	w := newScreener(policyOf(Options{}), nil, "")
	var list toolList
	var first, now *screening
	for i := range 2 * maxScreeningNews {
		s := &serverTools{number: 0}
		s.setTools([]*BridgeTool{namedTool(fmt.Sprint(i))})
		list = list.next([]*serverTools{s}, 1)
		now = w.catalog(&catalog{tools: list.tools, list: list}, now, nil, uint64(i+1))
		if first == nil {
			first = now
		}
		_, ok := now.newsSince(first.line, first.number)
		assert.Equal(t, i < maxScreeningNews+1, ok, i)
		assert.LessOrEqual(t, len(now.news), maxScreeningNews)
	}
}

// checkMentions returns an error if a list does not mention a server that it is taken to mention.
func checkMentions(s *Session) error {
	v := s.view()
	if v.ended || s.covered == nil || s.covered != v.coverage {
		return nil
	}
	if more := unmentioned(v.searchableServers(), s.shown); more != nil {
		return fmt.Errorf("the list does not mention %+v", more.servers)
	}
	return nil
}

// A change is looked for among what changed, whatever a session may use and whose it is.
func TestLooksFollowChanges(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(*Manager) *Session{
		"alike": func(m *Manager) *Session { return m.NewSession(nil) },
		"own rights": func(m *Manager) *Session {
			return m.NewSession(&SessionOptions{Access: Access{Deny: []string{"server7/*"}}})
		},
		"a user": func(m *Manager) *Session {
			u, err := m.NewUser("ann", nil)
			require.NoError(t, err)
			require.NoError(t, u.AddTools("hers", echoTool("note", "Takes a note")))
			return u.NewSession(nil)
		},
	} {
		m, _ := newTestManager(t, nil)
		for i := range 60 {
			require.NoError(t, m.AddTools(fmt.Sprint("server", i), echoTool("one", "Does one"), echoTool("two", "Does two")))
		}
		s := made(m)
		s.Tools()
		before := s.view().partition
		require.NoError(t, m.AddTools("more", echoTool("other", "Does another thing")))
		s.Tools()
		now := s.view().partition
		require.NotEqual(t, before.id, now.id)
		assert.Nil(t, now.serverMentions.all, "%s: nobody looked at all servers", name)
		shared := 0
		for k, of := range before.screenings[0].servers {
			if of == now.screenings[0].servers[k] {
				shared++
			}
		}
		assert.Equal(t, 60, shared, name)
		assert.Equal(t, "more", lastServers(s.shown).servers[0].Server, name)
		require.NoError(t, check(m, s))
	}
}
