package eval

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// figures are the answer; their JSON form is a contract. Shares are from 0 to 1.
//
// A tool is relevant to a query or not. The measures of quality are means over
// the queries that have relevant tools, 0 if there are none:
//
//	hit@k       1 if any relevant tool is among the first k, otherwise 0
//	recall@k    of the relevant tools, the share that is among the first k
//	mrr@10      1/rank of the first relevant tool, 0 if it is not among the first 10
//	ndcg@10     sum of 1/log2(1+rank) of the relevant tools among the first 10,
//	            over what it is if all of them, or 10, come first
//	complete@5  1 if all relevant tools are among the first 5, otherwise 0
//
// The others are unanswerable and counted apart: rejected is the share of them
// that found nothing, 0 if there are none.
type figures struct {
	Ranker       string  `json:"ranker"`
	Tools        int     `json:"tools"`
	Queries      int     `json:"queries"` // with the unanswerable ones
	Hit1         float64 `json:"hit@1"`
	Hit5         float64 `json:"hit@5"`
	Recall1      float64 `json:"recall@1"`
	Recall5      float64 `json:"recall@5"`
	Recall10     float64 `json:"recall@10"`
	MRR10        float64 `json:"mrr@10"`
	NDCG10       float64 `json:"ndcg@10"`
	Complete5    float64 `json:"complete@5"`
	Unanswerable int     `json:"unanswerable"`
	Rejected     float64 `json:"rejected"`
	BuildMS      float64 `json:"build_ms"`     // from the decoded files to the first search answered
	QueryUSP50   float64 `json:"query_us_p50"` // over all searches of all passes
	QueryUSP99   float64 `json:"query_us_p99"`
}

// newFigures measures the answers to queries: for each, at most 10 ids, best
// first. It also returns which queries have a recall@5 below 1.
func newFigures(queries []query, answers [][]string) (f figures, missed []int) {
	f.Queries = len(queries)
	for i, q := range queries {
		answer, all := answers[i], float64(len(q.Relevant))
		if all == 0 {
			f.Unanswerable++
			if len(answer) == 0 {
				f.Rejected++
			}
			continue
		}
		var found [1 + depth]float64 // by k: relevant ones among the first k
		gain, ideal := 0.0, 0.0
		for at := range depth {
			discounted := 1 / math.Log2(float64(at+2))
			if float64(at) < all {
				ideal += discounted
			}
			found[at+1] = found[at]
			if at < len(answer) && slices.Contains(q.Relevant, answer[at]) {
				if found[at+1]++; found[at] == 0 {
					f.MRR10 += 1 / float64(at+1)
				}
				gain += discounted
			}
		}
		f.Hit1 += found[1]
		f.Hit5 += min(found[5], 1)
		f.Recall1 += found[1] / all
		f.Recall5 += found[5] / all
		f.Recall10 += found[10] / all
		f.NDCG10 += gain / ideal
		if found[5] < all {
			missed = append(missed, i)
		}
	}
	f.Complete5 = float64(f.Queries - f.Unanswerable - len(missed))
	answerable := float64(max(f.Queries-f.Unanswerable, 1))
	for _, sum := range []*float64{&f.Hit1, &f.Hit5, &f.Recall1, &f.Recall5, &f.Recall10, &f.MRR10, &f.NDCG10, &f.Complete5} {
		*sum /= answerable
	}
	f.Rejected /= float64(max(f.Unanswerable, 1))
	return f, missed
}

// percentile returns the least time that p percent do not exceed, in microseconds.
func percentile(ascending []time.Duration, p int) float64 {
	return float64(ascending[(len(ascending)*p+99)/100-1].Nanoseconds()) / 1e3
}

func queriesIn(n int) string {
	if n == 1 {
		return "1 query"
	}
	return fmt.Sprintf("%d queries", n)
}

// table returns the figures for people.
func (f figures) table() string {
	return fmt.Sprintf("%s: %s, %s\n\n", f.Ranker, text.Counted(f.Tools, "tool"), queriesIn(f.Queries)) +
		fmt.Sprintf("recall@1    %5.1f %%\nrecall@5    %5.1f %%\nrecall@10   %5.1f %%\n", 100*f.Recall1, 100*f.Recall5, 100*f.Recall10) +
		fmt.Sprintf("mrr@10      %5.1f %%\nndcg@10     %5.1f %%\ncomplete@5  %5.1f %%\n", 100*f.MRR10, 100*f.NDCG10, 100*f.Complete5) +
		fmt.Sprintf("hit@1       %5.1f %%\nhit@5       %5.1f %%\n", 100*f.Hit1, 100*f.Hit5) +
		fmt.Sprintf("rejected    %5.1f %% of %d that no tool answers\n", 100*f.Rejected, f.Unanswerable) +
		fmt.Sprintf("\nbuild %.1f ms, search %.1f µs (p50), %.1f µs (p99)\n", f.BuildMS, f.QueryUSP50, f.QueryUSP99)
}
