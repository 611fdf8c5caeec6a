package search

import (
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// A wordList holds the terms of one document, by field, before the dictionary
// numbers them.
type wordList struct {
	words    []fieldWord
	bytes    []byte // the text of all words
	readOnly bool   // see Document

	analyzer analyzer
	text     []byte
}

type fieldWord struct {
	start, end int32 // in wordList.bytes
	field      uint8
	form       form
}

// read sets l to the terms of d. A nil document has no terms.
func (l *wordList) read(d *Document) {
	if d == nil {
		d = new(Document)
	}
	l.words, l.bytes, l.readOnly = l.words[:0], l.bytes[:0], d.ReadOnly
	for field, text := range [...]string{inServer: d.Server, inName: d.Name, inTitle: d.Title, inDescription: d.Description, inHints: d.Hints, inInstructions: d.Instructions} {
		l.text = append(l.text[:0], text...)
		l.add(uint8(field), l.text)
	}
	at := func(level int, field uint8) uint8 {
		if level > 1 {
			return inNested
		}
		return field
	}
	schema.Walk(d.InputSchema,
		func(level int, name []byte) { l.add(at(level, inParameters), name) },
		func(level int, text []byte) { l.add(at(level, inTexts), text) })
}

func (l *wordList) add(field uint8, text []byte) {
	l.analyzer.reset()
	l.analyzer.add(text)
	begin := int32(len(l.bytes))
	l.bytes = append(l.bytes, l.analyzer.bytes...)
	for _, t := range l.analyzer.terms {
		l.words = append(l.words, fieldWord{begin + t.start, begin + t.end, field, t.form})
	}
}

// eachWordList calls use with the words of each document, in order. From 128
// documents on, a second goroutine reads ahead.
func eachWordList(docs []*Document, use func(*wordList)) {
	const batch = 64
	if len(docs) < 2*batch {
		var l wordList
		for _, d := range docs {
			l.read(d)
			use(&l)
		}
		return
	}
	free, read := make(chan []wordList, 3), make(chan []wordList, 3)
	for range cap(free) {
		free <- make([]wordList, batch)
	}
	go func() {
		defer close(read)
		for some := range slices.Chunk(docs, batch) {
			lists := (<-free)[:len(some)]
			for i, d := range some {
				lists[i].read(d)
			}
			read <- lists
		}
	}()
	for lists := range read {
		for i := range lists {
			use(&lists[i])
		}
		free <- lists[:batch]
	}
}
