package trust

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// plain is a definition whose hash can be read: a1 and a1' are written in two ways and say the same.
func plain(written string) *Definition {
	return &Definition{Name: written[:1], Sum: sha256.Sum256([]byte(written)), Hash: func() string { return strings.TrimSuffix(written, "'") }}
}

var findingNames = [...]string{Known: "known", Changed: "changed", Added: "added", Beyond: "beyond"}

// judged lists definitions and returns the verdicts as a line.
func judged(m *Memory, names ...string) string {
	var listed []*Definition
	for _, name := range names {
		listed = append(listed, plain(name))
	}
	var line []string
	for i, v := range m.Judge("s", listed) {
		said := names[i] + " " + findingNames[v.Finding]
		if v.Was != "" || !v.Since.IsZero() {
			said += fmt.Sprintf(" from %s of %s", v.Was, v.Since.Format(time.TimeOnly))
		}
		if v.By != "" {
			said += " by " + v.By
		}
		line = append(line, said)
	}
	return strings.Join(line, ", ")
}

// written returns a document as a line: the tools of its server, with their marks.
func written(t *testing.T, document []byte) string {
	if document == nil {
		return "nothing"
	}
	var doc history
	require.NoError(t, json.Unmarshal(document, &doc))
	var all []string
	for _, name := range slices.Sorted(maps.Keys(doc.Servers["s"])) {
		tool := doc.Servers["s"][name]
		line := fmt.Sprintf("%s of %s", tool.Hash, tool.Since.Format("05.999999999"))
		if own := sha256.Sum256([]byte(tool.Hash)); tool.Sum != fmt.Sprintf("%x", own) {
			line += " otherwise written"
		}
		if tool.Accepted {
			line += " accepted"
		}
		if tool.Changed {
			line += " changed"
		}
		if tool.Late {
			line += " late"
		}
		if tool.By != "" {
			line += " by " + tool.By
		}
		if len(tool.Former) > 0 {
			line += fmt.Sprintf(" former %v", tool.Former)
		}
		all = append(all, line)
	}
	return fmt.Sprintf("[%s]", strings.Join(all, "; "))
}

var cautions = [...]string{Never: "warn", Suspect: "quarantine", Always: "approve"}

// What a process makes of what the store has beside what it knows.
func TestGoldenMerge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("What a process knows of a tool a, at second 10 of its clock, what the store has of it, and what comes of both: what the process\n" +
			"saves, whether it tells of changes, and how it judges a1, a2 and a new tool b then. The process has listed c1 first, if it has listed anything.\n\n")
		begun := time.Now().UTC()
		at := func(second int) time.Time { return begun.Add(time.Duration(second) * time.Second) }
		stored := func(tools ...*tool) []byte {
			doc := history{Version: version, Servers: map[string]map[string]*tool{"s": {}}}
			for _, t := range tools {
				t.Sum = fmt.Sprintf("%x", sha256.Sum256([]byte(t.Hash)))
				doc.Servers["s"][t.Hash[:1]] = t
			}
			document, err := json.Marshal(doc)
			require.NoError(t, err)
			return document
		}
		time.Sleep(10 * time.Second)
		for caution, policy := range cautions {
			for _, ours := range []string{"nothing", "an empty list", "a1 first", "a1 first, written otherwise", "a1 after its first list", "a1 accepted", "a1 first, then listed as a2", "a1 loaded and accepted", "a1 loaded, then listed as a2"} {
				for _, theirs := range []*tool{
					nil, {Hash: "a1", Since: at(5)}, {Hash: "a1", Since: at(10)}, {Hash: "a1", Since: at(15)}, {Hash: "a1", Since: at(5), Late: true}, {Hash: "a1", Since: at(15), Late: true, By: "warn"},
					{Hash: "a1", Since: at(10), Changed: true}, {Hash: "a2", Since: at(5)}, {Hash: "a2", Since: at(15)}, {Hash: "a2", Since: at(5), Late: true, By: "quarantine"}, {Hash: "a2", Since: at(5), Accepted: true, Former: []string{"a0"}},
					{Hash: "a2", Since: at(15), Accepted: true, Changed: true},
				} {
					var tools []*tool
					if strings.Contains(ours, "loaded") {
						tools = append(tools, &tool{Hash: "a1", Since: at(10)})
					}
					doc := &memory{}
					if tools != nil {
						doc.data = stored(tools...)
					}
					m := fresh(Caution(caution), 100, doc)
					if tools != nil {
						require.NoError(t, m.Load())
					}
					switch ours {
					case "nothing", "a1 loaded and accepted", "a1 loaded, then listed as a2":
					case "an empty list":
						judged(m)
					case "a1 first", "a1 first, then listed as a2":
						judged(m, "c1", "a1")
					case "a1 first, written otherwise":
						judged(m, "c1", "a1'")
					case "a1 after its first list":
						judged(m, "c1")
						judged(m, "c1", "a1")
					case "a1 accepted":
						judged(m, "c1")
						m.Accept("s", plain("a1"))
					}
					switch {
					case strings.HasSuffix(ours, "loaded and accepted"):
						m.Accept("s", plain("a1"))
					case strings.HasSuffix(ours, "listed as a2"):
						judged(m, "c1", "a2")
					}
					doc.data = nil
					if theirs != nil {
						copied := *theirs
						doc.data = stored(&copied, &tool{Hash: "c1", Since: at(1)})
					}
					fmt.Fprintf(&b, "%s, %s, the store has %s", policy, ours, written(t, doc.data))
					changed, err := m.Refresh()
					require.NoError(t, err)
					saved, err := m.Save()
					require.NoError(t, err)
					again, err := m.Save()
					require.NoError(t, err)
					fmt.Fprintf(&b, ":\n  %s, tells %v %v %v\n", written(t, doc.data), changed, saved, again)
					fmt.Fprintf(&b, "  knew a0 %v, a1 %v, a2 %v; ", m.Knew("s", plain("a0")), m.Knew("s", plain("a1")), m.Knew("s", plain("a2")))
					fmt.Fprintf(&b, "%s; %s; %s\n", judged(m, "c1", "a1"), judged(m, "c1", "a2"), judged(m, "c1", "a1", "b1"))
				}
			}
		}
		golden.Compare(t, "merge.golden", b.String())
	})
}

// Processes of several policies that share a store, step by step.
func TestGoldenWalks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("Processes that share a store, one step a second: what they list and how it is judged, what is accepted, what they tell when they save or\n" +
			"refresh, and what the store has then, if that has changed.\n")
		for seed := range uint64(10) {
			random := rand.New(rand.NewPCG(seed, 0))
			doc := new(memory)
			ms := make([]*Memory, 3)
			fmt.Fprintf(&b, "\nWalk %d\n", seed)
			shown := ""
			begin := func(i int) {
				ms[i] = fresh(Caution(i), 3, doc)
				require.NoError(t, ms[i].Load())
			}
			for i := range ms {
				begin(i)
			}
			version := func() string { return []string{"1", "1", "1", "1'", "2", "3"}[random.IntN(6)] }
			for range 30 {
				time.Sleep(time.Second)
				i := random.IntN(len(ms))
				m := ms[i]
				fmt.Fprintf(&b, "%s %s", time.Now().UTC().Format("04:05"), cautions[i])
				switch what := random.IntN(12); what {
				case 0:
					begin(i)
					b.WriteString(" begins again")
				case 1:
					m.Left("s")
					b.WriteString(" is left by the server")
				case 2, 3:
					name := []string{"a", "b", "c"}[random.IntN(3)] + version()
					fmt.Fprintf(&b, " accepts %s: %v", name, m.Accept("s", plain(name)))
				case 4:
					changed, err := m.Refresh()
					require.NoError(t, err)
					fmt.Fprintf(&b, " refreshes, tells %v", changed)
				default:
					var names []string
					for _, tool := range []string{"a", "b", "c", "d"} {
						if random.IntN(3) > 0 {
							names = append(names, tool+version())
						}
					}
					fmt.Fprintf(&b, " lists %s", judged(m, names...))
				}
				if random.IntN(3) > 0 {
					changed, err := m.Save()
					require.NoError(t, err)
					fmt.Fprintf(&b, "; saves, tells %v", changed)
				}
				b.WriteString("\n")
				if now := written(t, doc.data); now != shown {
					fmt.Fprintf(&b, "      the store has %s\n", now)
					shown = now
				}
			}
		}
		golden.Compare(t, "walks.golden", b.String())
	})
}

// What fails changes nothing, and tells of no change; nor do servers for which there is no room.
func TestFailuresTellOfNoChange(t *testing.T) {
	t.Parallel()
	doc := &memory{data: []byte(`{"version":2,"servers":{"s":{"a":{"hash":"a1"}}}}`)}
	m := fresh(Never, 100, doc)
	doc.err = os.ErrPermission
	changed, err := m.Refresh()
	assert.False(t, changed)
	assert.ErrorIs(t, err, os.ErrPermission)
	doc.err = nil
	changed, err = m.Refresh()
	assert.True(t, changed)
	assert.NoError(t, err)

	full := fresh(Never, 100, doc)
	for i := range MaxServers {
		full.Judge(fmt.Sprint(i), nil)
	}
	changed, err = full.Refresh()
	assert.False(t, changed)
	assert.NoError(t, err)
}
