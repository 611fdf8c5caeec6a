package search

import (
	"fmt"
	"strings"
)

// [RankerDefault] tells what a query wants done from what a document does, by verbs: a
// document that creates a contact is no answer to "find the number of a contact". Where
// the query or the document has no verb that says it, nothing counts less.

// A verbClass says what a verb does; see [Verbs].
type verbClass uint8

const (
	noVerb verbClass = iota
	reads
	creates
	updates
	deletes
	changes
	verbClasses
)

// What a document gains, as a share of the best score, if its verb does not contradict
// the query's. If it does, it gains a part of that, or nothing where it changes what the
// query only reads. If it does the same, it gains a little more.
const (
	verbWeight      = 0.2
	sameVerbWeight  = 0.03
	otherVerbWeight = 0.1
)

// lists returns the words of v by class.
func (v *Verbs) lists() [verbClasses][]string {
	return [...][]string{reads: v.Read, creates: v.Create, updates: v.Update, deletes: v.Delete, changes: v.Change}
}

// parse adds a line of a lexicon.
func (v *Verbs) parse(line string) error {
	name, words, ok := strings.Cut(line, "=")
	list := map[string]*[]string{"read": &v.Read, "create": &v.Create, "update": &v.Update, "delete": &v.Delete, "change": &v.Change}[strings.TrimSpace(name)]
	if !ok || list == nil {
		return fmt.Errorf("%q must be read, create, update, delete or change, then \"=\" and words", line)
	}
	*list = append(*list, strings.Fields(words)...)
	return nil
}

// verbOf returns the class of a term.
func (c *compiledLexicon) verbOf(term uint32) verbClass {
	if c.has(term) {
		return c.verbs[term]
	}
	return noVerb
}

// A verbSet has a bit for each class.
type verbSet uint8

func (s verbSet) has(c verbClass) bool { return s>>c&1 == 1 }

// gain returns what a document of class c gains where s is wanted, which is not empty.
// To change something may be to create, update or delete it.
func (s verbSet) gain(c verbClass) float64 {
	switch {
	case s.has(c):
		return verbWeight + sameVerbWeight
	case c == noVerb, c == changes && s != 1<<reads, c != reads && s.has(changes):
		return verbWeight
	case s == 1<<reads:
		return 0
	}
	return otherVerbWeight
}

// does returns the class of a document by the class of its name's verb and by what its
// server says. A destructive hint says nothing: common libraries set it for every tool.
func does(verb verbClass, readOnly bool) verbClass {
	switch {
	case !readOnly || verb == reads:
		return verb
	case verb == noVerb:
		return reads
	}
	return noVerb // it is rather a noun, as in "post_count"
}

// questions are the words with which one asks for what is there.
var questions = map[string]bool{
	"what": true, "what's": true, "which": true, "who": true, "who's": true, "whose": true, "when": true, "where": true, "why": true,
	"is": true, "are": true, "was": true, "were": true, "do": true, "does": true, "did": true, "has": true, "show": true,
}

// wantsToKnow reports whether a clause asks for what is there, as in "which branches are
// there" or "tell me". "How do I create a branch" asks for more.
func wantsToKnow(clause []byte) bool {
	var buffer, next [24]byte
	for {
		var word []byte
		if word, clause = cutWord(clause, buffer[:0]); len(word) == 0 {
			return false
		}
		after, _ := cutWord(clause, next[:0])
		switch {
		case string(word) == "how":
			return len(after) > 0 && string(after) != "do" && string(after) != "to" && string(after) != "can"
		case string(word) == "tell" || string(word) == "give":
			return string(after) == "me" || string(after) == "us"
		case questions[string(word)]:
			return true
		}
		if _, ok := leads[string(word)]; !ok {
			return false
		}
	}
}

// wanted returns the classes of what the query's requests want. If none of several
// clauses is a request, its last one counts.
func (r *retrieval) wanted() (s verbSet) {
	last := r.last()
	for i, c := range r.clauses {
		if !c.passed && (c.asks || i == last) {
			s |= 1 << r.verbOf(c)
		}
	}
	return s &^ (1 << noVerb)
}

// verbOf returns the class of what a clause wants.
func (r *retrieval) verbOf(c clause) verbClass {
	if c.wantsToKnow {
		return reads
	}
	t := r.lead(c)
	if t == nil {
		return noVerb
	}
	l := r.x.growth.lexicon
	class := l.verbOf(t.term)
	for _, w := range r.ways[t.begin:t.end] {
		if class == noVerb && w.exact { // a slip, or a word of another language
			class = l.verbOf(w.term)
		}
	}
	return class
}
