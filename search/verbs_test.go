package search

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// crud has what a service lets its clients do.
func crud() []*Document {
	return []*Document{
		{Server: "shop", Name: "stores_delete", Description: "Deletes a store. Deletes stores, all of a customer's stores"},
		{Server: "shop", Name: "stores_set", Description: "Sets up stores: a store, or many stores"},
		{Server: "shop", Name: "stores_list", Description: "Stores of a customer"},
		{Server: "clock", Name: "TimedSwitch", Description: "A timed switch"},
		{Server: "clock", Name: "CancelTimedSwitch", Description: "Cancels it"},
		{Server: "people", Name: "create-contact", Description: "Creates a contact with the phone number of the contact"},
		{Server: "people", Name: "search-contacts", Description: "Searches contacts by name and number"},
		{Server: "desk", Name: "ticket_status", Description: "A ticket's state"},
		{Server: "desk", Name: "post_ticket", Description: "A ticket's state", ReadOnly: true},
		{Server: "mail", Name: "mailbox_size", Description: "Says how large it is"},
		{Server: "mail", Name: "empty_trash", Description: "Says that it is empty"},
	}
}

// The right thing with another verb comes after the right verb.
func TestVerbs(t *testing.T) {
	x := NewIndex(crud(), nil)
	for query, want := range map[string]string{
		"show me my stores":                       "stores_list",
		"which stores are there":                  "stores_list",
		"delete the stores":                       "stores_delete",
		"how do I delete a store":                 "stores_delete",
		"cancel timed switch":                     "CancelTimedSwitch",
		"timed switch":                            "TimedSwitch",
		"find the phone number of a contact":      "search-contacts",
		"finde die Telefonnummer eines Kontakts":  "search-contacts",
		"serach the phone number of a contact":    "search-contacts",
		"add a contact with phone number":         "create-contact",
		"We have shops. Tell me about our stores": "stores_list",
	} {
		if found := x.Search(query, 1, nil); assert.NotEmpty(t, found, query) {
			assert.Equal(t, want, x.Document(found[0].Doc).Name, query)
		}
	}
}

// A verb that neither the query nor the document has changes no order.
func TestVerbsThatSayNothing(t *testing.T) {
	l := DefaultLexicon()
	l.Verbs = Verbs{}
	with, without := NewIndex(crud(), nil), NewIndex(crud(), &Options{Lexicon: l})
	for _, query := range []string{"stores of a customer", "timed switch", "my contacts and their numbers", "ticket state"} {
		assert.Equal(t, without.Search(query, 20, nil), with.Search(query, 20, nil), query)
	}
	assert.NotEqual(t, without.Search("show the stores", 20, nil), with.Search("show the stores", 20, nil))
}

func TestVerbGain(t *testing.T) {
	const read, write = verbSet(1 << reads), verbSet(1<<creates | 1<<deletes)
	for _, test := range []struct {
		wanted verbSet
		does   verbClass
		want   float64
	}{
		{read, reads, 0.23}, {read, noVerb, 0.2}, {read, creates, 0}, {read, changes, 0},
		{write, creates, 0.23}, {write, deletes, 0.23}, {write, updates, 0.1}, {write, reads, 0.1}, {write, changes, 0.2}, {write, noVerb, 0.2},
		{1 << changes, updates, 0.2}, {1 << changes, reads, 0.1}, {read | 1<<updates, reads, 0.23}, {read | 1<<updates, deletes, 0.1},
	} {
		assert.InDelta(t, test.want, test.wanted.gain(test.does), 1e-9, "%+v", test)
	}
}

// What a server says of a tool tells what a noun in its name does not mean.
func TestReadOnly(t *testing.T) {
	assert.Equal(t, []verbClass{noVerb, creates, reads}, []verbClass{does(noVerb, false), does(creates, false), does(reads, false)})
	assert.Equal(t, []verbClass{reads, noVerb, reads}, []verbClass{does(noVerb, true), does(creates, true), does(reads, true)})
	score := func(readOnly bool) float64 {
		docs := crud()
		docs[8].ReadOnly = readOnly
		for _, m := range NewIndex(docs, nil).Search("show the ticket's state", 20, nil) {
			if m.Doc == 8 {
				return m.Score
			}
		}
		return 0
	}
	assert.Greater(t, score(true), score(false))
}

func TestWantsToKnow(t *testing.T) {
	for _, clause := range []string{"which branches are there", "What is it?", "how many are open", "- and who did it", "please tell me about it", "can you give us the list", "Show it", "how is it"} {
		assert.True(t, wantsToKnow([]byte(clause)), clause)
	}
	for _, word := range strings.Fields("what what's which who who's whose when where why is are was were do does did has show") {
		assert.True(t, wantsToKnow([]byte(word+" it")), word)
		assert.True(t, wantsToKnow([]byte("i want you to "+word+" it")), word)
		assert.False(t, wantsToKnow([]byte("merge "+word+" it")), word)
	}
	for _, clause := range []string{"", "how do I delete it", "How to delete it", "how can I", "tell everyone", "give access", "tell", "delete what is there", "please", "how", "?"} {
		assert.False(t, wantsToKnow([]byte(clause)), clause)
	}
}

func TestExplainVerb(t *testing.T) {
	x := NewIndex(crud(), nil)
	for _, m := range x.Search("show me my stores", 20, nil) {
		e := x.Explain("show me my stores", m.Doc)
		assert.InDelta(t, m.Score, e.Score, 1e-9)
		verb := 0.0
		for _, p := range e.Parts {
			if p.Field == "verb" {
				verb = p.Score
			}
		}
		assert.Equal(t, m.Doc > 1, verb > 0, "document %d", m.Doc)
	}
}
