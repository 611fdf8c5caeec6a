package mcphybrid

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// canonical is all that an index knows, without slots and numbers.
type canonical struct {
	terms map[string][]canonicalPosting // by term
	idf   map[string]float64
	worth map[signature]uint32
}

type canonicalPosting struct {
	doc int
	sig signature
}

func (x *Index) canonical() canonical {
	c := canonical{map[string][]canonicalPosting{}, map[string]float64{}, map[signature]uint32{}}
	for n, term := range x.vocabulary.terms.terms {
		var ps []canonicalPosting
		for _, p := range x.heads.at(uint32(n)).postings {
			if doc := x.positions[p.slot]; doc >= 0 {
				ps = append(ps, canonicalPosting{int(doc), x.signatures[p.signature]})
				c.worth[x.signatures[p.signature]] = x.worth[p.signature]
			}
		}
		if len(ps) == 0 {
			continue
		}
		slices.SortFunc(ps, func(a, b canonicalPosting) int { return a.doc - b.doc })
		c.terms[term] = ps
		c.idf[term] = x.idf(uint32(n))
	}
	return c
}

// checkIndex returns how x differs from a new index of the same documents, or
// from itself, or nil.
func checkIndex(x *Index) error {
	if len(x.slots) != len(x.docs) || len(x.first) != len(x.positions)+1 || len(x.worth) != len(x.signatures) {
		return fmt.Errorf("index of %d documents: %d slots, %d positions, %d first, %d worth of %d", len(x.docs), len(x.slots), len(x.positions), len(x.first), len(x.worth), len(x.signatures))
	}
	for i, slot := range x.slots {
		if x.positions[slot] != int32(i) {
			return fmt.Errorf("document %d is in slot %d, which is at position %d", i, slot, x.positions[slot])
		}
	}
	for slot := range x.positions {
		for i, o := range x.occurrencesOf(uint32(slot)) {
			if i > 0 && x.occurrencesOf(uint32(slot))[i-1].term >= o.term {
				return fmt.Errorf("slot %d: occurrences are not in the order of terms", slot)
			}
			p := posting{uint32(slot), o.sig()}
			if _, ok := slices.BinarySearchFunc(x.heads.at(o.term).postings, p, func(a, b posting) int { return int(a.slot) - int(b.slot) }); !ok {
				return fmt.Errorf("slot %d has %q without a posting", slot, x.vocabulary.text(o.term))
			}
		}
	}
	fresh := newGrowth(x.growth.ranker, x.growth.lexicon, x.growth.threshold).index(x.docs)
	if x.lengths != fresh.lengths || x.averages != fresh.averages {
		return fmt.Errorf("lengths %v, averages %v; a new index has %v, %v", x.lengths, x.averages, fresh.lengths, fresh.averages)
	}
	got, want := x.canonical(), fresh.canonical()
	if !maps.Equal(got.idf, want.idf) || !maps.Equal(got.worth, want.worth) || !maps.EqualFunc(got.terms, want.terms, slices.Equal) {
		return fmt.Errorf("the index of %d documents is not what a new one is", len(x.docs))
	}
	return nil
}

// randomDocument returns a document of words that occur in others too.
func randomDocument(rng *rand.Rand) *Document {
	words := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n + 1) {
			switch rng.IntN(12) {
			case 0:
				b.WriteString([]string{"查询天气", "ภาษาไทย", "カレンダー", "Überweisung", "thời tiết", "HTTPServers", "user_id2"}[rng.IntN(7)])
			default:
				fmt.Fprintf(&b, "word%c", 'a'+rune(rng.ExpFloat64()*5))
			}
			b.WriteString([]string{" ", ", ", "_"}[rng.IntN(3)])
		}
		return b.String()
	}
	return &Document{
		Server: fmt.Sprint("server", string('a'+rune(rng.IntN(5)))), Name: words(3), Title: words(1), Description: words(12), Hints: words(1),
		InputSchema: json.RawMessage(fmt.Sprintf(`{"properties":{%q:{"description":%q,"enum":[%q]},"id":{}}}`, words(2), words(6), words(1))),
	}
}

func randomDocuments(rng *rand.Rand, n int) []*Document {
	docs := make([]*Document, n)
	for i := range docs {
		docs[i] = randomDocument(rng)
	}
	return docs
}

// After any history of changes an index is what a new one is.
func TestIndexAfterAnyHistory(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		docs := randomDocuments(rng, rng.IntN(40))
		x := NewIndex(docs, nil)
		for step := range 60 {
			docs = slices.Clone(docs)
			switch at := rng.IntN(len(docs) + 1); rng.IntN(7) {
			case 0:
				docs = slices.Insert(docs, at, randomDocuments(rng, 1+rng.IntN(4))...)
			case 1:
				docs = append(docs, randomDocument(rng))
			case 2:
				docs = slices.Delete(docs, at, min(at+1+rng.IntN(3), len(docs)))
			case 3:
				if at < len(docs) {
					docs[at] = randomDocument(rng)
				}
			case 4:
				rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
			case 5:
				if at < len(docs) {
					docs = append(docs, docs[at]) // the same twice
				}
			case 6:
				docs = randomDocuments(rng, rng.IntN(60))
			}
			x = x.With(docs)
			if err := checkIndex(x); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
	}
}

func BenchmarkIndexChange(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	docs := randomDocuments(rng, 40_000)
	x := NewIndex(docs, nil)
	fresh := randomDocuments(rng, 1000)
	b.Run("replace", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			next := slices.Clone(docs)
			next[(i*7919)%len(docs)] = fresh[i%1000]
			x = x.With(next)
			docs = next
			i++
		}
	})
}
