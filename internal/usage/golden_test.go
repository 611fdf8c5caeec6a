package usage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
)

// testdata/walks.golden has what becomes of uses in processes that share a store.
func TestGoldenWalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("Processes that share a store of 3 names, where a use counts half after an hour: what each does and, if that has changed, what the store has.\n")
		uses := func(all map[string]use) string {
			var line []string
			for name, u := range all {
				line = append(line, fmt.Sprintf("%s %.3f of %s", name, u.Count, u.At.UTC().Format("02 15:04")))
			}
			slices.Sort(line)
			return strings.Join(line, ", ")
		}
		for seed := range uint64(6) {
			random := rand.New(rand.NewPCG(seed, 2))
			doc := new(mcptest.Store)
			records := make([]*Record, 2)
			begin := func(i int) {
				var counts map[string]float64
				if seed%2 == 1 {
					counts = map[string]float64{"a": 0.5, "z": 0.25}
				}
				records[i] = New(doc, counts, time.Hour, 3)
			}
			begin(0)
			begin(1)
			fmt.Fprintf(&b, "\nWalk %d\n", seed)
			shown := ""
			for range 26 {
				time.Sleep([]time.Duration{0, 10 * time.Minute, time.Hour}[random.IntN(3)])
				i := random.IntN(2)
				r, now := records[i], time.Now()
				fmt.Fprintf(&b, "%s %d: ", now.UTC().Format("02 15:04"), i)
				doc.Err = nil
				if random.IntN(5) == 0 {
					doc.Err = errors.New("no disk")
				}
				switch random.IntN(10) {
				case 0:
					begin(i)
					r = records[i]
					b.WriteString("begins again")
				case 1, 2:
					fmt.Fprintf(&b, "loads, %v", r.Load())
				case 3, 4, 5:
					fmt.Fprintf(&b, "saves, %v", r.Save(now))
				case 6:
					ahead := now.Add(2 * time.Hour)
					r.Note("a", ahead)
					b.WriteString("uses a by a clock that is two hours ahead")
				default:
					var names []string
					for range 1 + random.IntN(8) {
						name := string("abcdefgh"[random.IntN(8)])
						names = append(names, name)
						r.Note(name, now)
					}
					fmt.Fprintf(&b, "uses %s", strings.Join(names, " "))
				}
				var order []string
				for name, rank := range r.Order(now) {
					order = append(order, fmt.Sprintf("%d %s %.2f", rank, name, r.Count(name, now)))
				}
				slices.Sort(order)
				fmt.Fprintf(&b, "; %s\n", strings.Join(order, ", "))
				stored, err := parse(doc.Data)
				if now := fmt.Sprint(uses(stored), " ", err); now != shown {
					fmt.Fprintf(&b, "      the store has %s\n", now)
					shown = now
				}
			}
		}
		golden.Compare(t, "walks.golden", b.String())
	})
}
