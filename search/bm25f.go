package search

// BM25F: what an occurrence of a term is worth, and a term. score.go adds it up for a query.

import "math"

// saturation is BM25's k1. Lucene uses the same value.
const saturation = 1.2

// fieldWeights holds the weight of each field. A long field counts less, to the
// degree b. Prose fields use the logarithm of their length; otherwise a few
// long-winded documents would set the average of a large index. Beyond
// longProse, length counts in full again; otherwise these documents would be
// found for anything.
var fieldWeights = [fields]struct {
	weight, b float64
	prose     bool
}{
	inServer:      {1, 0.75, false},
	inName:        {3, 0.75, false},
	inTitle:       {1, 0.75, false},
	inDescription: {1, 0.75, true},
	inParameters:  {0.6, 0.75, true},
	inTexts:       {0.5, 0.75, true},
	inNested:      {0.25, 0.75, true},
	inHints:       {1, 0.75, true},

	// All tools of a server have the same. Their length says nothing of a tool: where few
	// servers say anything, it would be far above the average. Nor do the words count as
	// common because of it: see head.df.
	inInstructions: {0.2, 0, true},
}

const (
	longProse = 80 // terms

	// parametersCap bounds what all parameters together add to a term's weighted
	// frequency. A single occurrence in a description of average length adds 1.
	parametersCap = 1
)

// unit is 1 as a fixed-point number. Scores are integers because a sum of
// integers is the same in any order.
const unit = 1 << 16

// worthAt returns how much an occurrence adds to a score, before its term's
// weight: BM25's saturated term frequency over all fields, as in BM25F
// (Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted
// fields", 2004). It is below (k1 + 1) * unit.
func (s *signature) worthAt(averages *[fields]float64) uint32 {
	tf := s.frequency(averages)
	return uint32(math.Round(unit * tf * (saturation + 1) / (tf + saturation)))
}

// frequency returns the weighted term frequency over all fields.
func (s *signature) frequency(averages *[fields]float64) float64 {
	own, parameters := 0.0, 0.0
	for f := range s {
		if ofParameters(f) {
			parameters += s.in(f, averages)
		} else {
			own += s.in(f, averages)
		}
	}
	return own + min(parameters, parametersCap)
}

// in returns the weighted term frequency in one field.
func (s *signature) in(f int, averages *[fields]float64) float64 {
	if s[f].tf == 0 {
		return 0
	}
	w := &fieldWeights[f]
	return w.weight * repeated(w.prose, float64(s[f].tf)) / (1 - w.b + w.b*scale(w.prose, float64(s[f].length))/averages[f])
}

func ofParameters(f int) bool { return f == inParameters || f == inTexts || f == inNested }

// shares returns the share of each field in frequency. parametersCap lowers those of the
// parameters in proportion.
func (s *signature) shares(averages *[fields]float64) (shares [fields]float64) {
	parameters := 0.0
	for f := range s {
		if shares[f] = s.in(f, averages); ofParameters(f) {
			parameters += shares[f]
		}
	}
	total := s.frequency(averages)
	for f := range shares {
		if shares[f] /= total; ofParameters(f) && parameters > parametersCap {
			shares[f] *= parametersCap / parameters
		}
	}
	return shares
}

// repeated returns what tf occurrences in a field count. In prose, a word that is
// said four times counts twice, as in Lucene's classic similarity; otherwise
// verbose documents would come first.
func repeated(prose bool, tf float64) float64 {
	if prose {
		return math.Sqrt(tf)
	}
	return tf
}

func scale(prose bool, length float64) float64 {
	switch {
	case !prose:
		return length
	case length > longProse:
		return math.Log1p(longProse) * length / longProse
	}
	return math.Log1p(length)
}

// average returns the average length of a field on its scale. It rounds to 6
// bits (less than 1 %), so that only one added document in a few hundred changes
// it.
func average(field int, total uint64, docs int) float64 {
	if total == 0 {
		return 1 // no document has this field, so nothing uses the average
	}
	mantissa, exponent := math.Frexp(scale(fieldWeights[field].prose, float64(total)/float64(docs)))
	return math.Ldexp(math.Round(mantissa*64)/64, exponent)
}

// idf returns the inverse document frequency of a term, 0 if no document has
// it.
func (x *Index) idf(term uint32) float64 { return x.idfOf(x.heads.at(term).df()) }

// idfOf returns the inverse document frequency of a term in df documents:
// ln(1 + (N-df+1/2)/(df+1/2)) = ln(N+1) - ln(df+1/2).
func (x *Index) idfOf(df int32) float64 {
	switch {
	case df == 0:
		return 0
	case int(df) < len(logs):
		return x.logDocs - logs[df]
	}
	return x.logDocs - math.Log(float64(df)+0.5)
}

// logs caches ln(df+1/2) for df below 1024, which covers nearly all terms.
var logs = func() (logs [1024]float64) {
	for df := range logs {
		logs[df] = math.Log(float64(df) + 0.5)
	}
	return logs
}()
