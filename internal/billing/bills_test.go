package billing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowBill bills the last of requests by what the rule says: each beginning that ends at a breakpoint of an
// earlier request is in the cache.
func slowBill(r Rule, requests []Request) (bill Bill) {
	points := func(q Request) (points []int) {
		for n := 1; n <= len(q); n++ {
			ends := n == len(q) || q[n].Kind != q[n-1].Kind
			if n == len(q) || r.Points == Everywhere || r.Points == AtSections && ends {
				points = append(points, n)
			}
		}
		return points
	}
	cached := make(map[string]bool)
	for i, q := range requests {
		tokens := func(n int) (sum int) {
			for _, b := range q[:n] {
				sum += b.Tokens
			}
			return sum
		}
		var before Request
		if i > 0 {
			before = requests[i-1]
		}
		same := 0
		for same < min(len(q), len(before)) && q[same] == before[same] {
			same++
		}
		was := bill.Tokens
		bill = Bill{Tokens: tokens(len(q)), Changed: same < len(before), Refused: bill.Refused || r.PrefixCheck && same < len(before)}
		for _, p := range points(q) {
			for back := range p {
				n := p - back
				within := r.Points == Everywhere && back == 0 || r.Points != Everywhere && (r.Lookback == 0 || back < r.Lookback)
				read := tokens(n)
				if r.Step > 0 {
					read = read / r.Step * r.Step
				}
				if within && cached[fmt.Sprint(q[:n])] && read >= r.Least {
					bill.Cached = max(bill.Cached, read)
				}
			}
		}
		for _, p := range points(q) {
			cached[fmt.Sprint(q[:p])] = true
		}
		written := 1.0
		if bill.Tokens >= r.Least {
			written = r.Write
		}
		bill.Price = r.Read*float64(bill.Cached) + written*float64(bill.Tokens-bill.Cached)
		bill.Lost = was >= r.Least && bill.Cached <= was-max(r.Step, 1)
	}
	return bill
}

// Each bill of random conversations is what the rule says, whatever was added, changed or taken away.
func TestBillsBySlowRules(t *testing.T) {
	t.Parallel()
	rules := append(Rules(), Rule{Name: "one back", Read: .5, Write: 2, Least: 3, Lookback: 1}, Rule{Name: "two back, in steps", Read: .5, Write: 2, Least: 4, Points: AtSections, Lookback: 2, Step: 2})
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 3))
		size := 1
		if seed%2 == 0 {
			size = 300
		}
		block := func(kind Kind) Block { return Block{ID: r.IntN(4), Tokens: 1 + size*r.IntN(4), Kind: kind} }
		for _, rule := range rules {
			var q Request
			var all []Request
			account := rule.Open()
			for range 12 {
				q = slices.Clone(q)
				switch n := r.IntN(12); {
				case n == 0 && len(q) > 0:
					q = q[:r.IntN(len(q))]
				case n == 1 && len(q) > 0:
					i := r.IntN(len(q))
					q[i] = block(q[i].Kind)
				case n < 4:
					for kind := range Message {
						q = append(q, block(kind))
					}
				default:
					for range 1 + r.IntN(3) {
						q = append(q, block(Message))
					}
				}
				slices.SortStableFunc(q, func(a, b Block) int { return int(a.Kind) - int(b.Kind) })
				for i := range q { // equal ids are of equal blocks
					q[i].ID = q[i].Tokens*100 + int(q[i].Kind)*10 + q[i].ID%10
				}
				all = append(all, q)
				want := slowBill(rule, all)
				got := account.Bill(q)
				require.InDelta(t, want.Price, got.Price, 1e-9, "%s, seed %d: %v", rule.Name, seed, all)
				got.Price = want.Price
				require.Equal(t, want, got, "%s, seed %d: %v", rule.Name, seed, all)
			}
		}
	}
}
