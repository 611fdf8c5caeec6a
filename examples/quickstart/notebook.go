package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxNotes    = 10000
	maxVersions = 100
	maxKey      = 200 // bytes
)

// A notebook holds notes by key.
type notebook struct {
	sync.Mutex
	notes map[string]*note
}

type note struct {
	tags     []string // sorted
	versions []string // the newest last
	dropped  int      // how many older versions there were
}

func (n *note) text() string { return n.versions[len(n.versions)-1] }

// latest returns the number of the newest version, counting from 1.
func (n *note) latest() int { return n.dropped + len(n.versions) }

// save adds a version if the text is new.
func (n *note) save(text string) {
	if len(n.versions) > 0 && n.text() == text {
		return
	}
	n.versions = append(n.versions, text)
	if len(n.versions) > maxVersions {
		n.versions = slices.Delete(n.versions, 0, 1)
		n.dropped++
	}
}

func (n *note) addTags(tags []string) {
	n.tags = addAll(n.tags, tags)
	slices.Sort(n.tags)
}

func (n *note) version(number int) (string, error) {
	if number <= n.dropped || number > n.latest() {
		return "", fmt.Errorf("there is no version %d; there are %d to %d", number, n.dropped+1, n.latest())
	}
	return n.versions[number-1-n.dropped], nil
}

// A noteView is a note as the tools return it.
type noteView struct {
	Key     string   `json:"key"`
	Text    string   `json:"text,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Version int      `json:"version,omitempty"`
}

type keyArg struct{ Key string }

func (b *notebook) find(key string) (*note, error) {
	if n := b.notes[key]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("there is no note %q", key)
}

// ensure returns the note with a key, which is new if need be.
func (b *notebook) ensure(key string) (*note, error) {
	if n := b.notes[key]; n != nil {
		return n, nil
	}
	if len(b.notes) == maxNotes {
		return nil, errors.New("the notebook is full")
	}
	b.notes[key] = &note{}
	return b.notes[key], nil
}

// keys returns the sorted keys of the notes with a tag, or of all if it is empty.
func (b *notebook) keys(tag string) []string {
	keys := slices.Sorted(maps.Keys(b.notes))
	return slices.DeleteFunc(keys, func(key string) bool {
		return tag != "" && !slices.Contains(b.notes[key].tags, tag)
	})
}

type putArgs struct {
	Key, Text string
	Tags      []string
}

func (b *notebook) put(in putArgs) (any, error) {
	n, err := b.ensure(in.Key)
	if err != nil {
		return nil, err
	}
	n.save(in.Text)
	n.addTags(in.Tags)
	return fmt.Sprintf("Saved version %d of %s.", n.latest(), in.Key), nil
}

func (b *notebook) get(in keyArg) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	return noteView{in.Key, n.text(), n.tags, n.latest()}, nil
}

func (b *notebook) append(in putArgs) (any, error) {
	if n := b.notes[in.Key]; n != nil {
		in.Text = n.text() + "\n\n" + in.Text
	}
	if err := checkOutput(len(in.Text)); err != nil {
		return nil, err
	}
	return b.put(in)
}

func (b *notebook) remove(in keyArg) (any, error) {
	if _, err := b.find(in.Key); err != nil {
		return nil, err
	}
	delete(b.notes, in.Key)
	return "Deleted " + in.Key + ".", nil
}

type renameArgs struct{ Key, To string }

func (b *notebook) rename(in renameArgs) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	if b.notes[in.To] != nil {
		return nil, fmt.Errorf("there is already a note %q", in.To)
	}
	delete(b.notes, in.Key)
	b.notes[in.To] = n
	return fmt.Sprintf("Renamed %s to %s.", in.Key, in.To), nil
}

type notesArgs struct {
	Tag, Prefix, Query string
	Limit              int
}

func (b *notebook) list(in notesArgs) (any, error) {
	list := []noteView{}
	for _, key := range b.keys(in.Tag) {
		if strings.HasPrefix(key, in.Prefix) && len(list) < in.Limit {
			list = append(list, noteView{Key: key, Tags: b.notes[key].tags})
		}
	}
	return list, nil
}

func (b *notebook) search(in notesArgs) (any, error) {
	words := strings.Fields(strings.ToLower(in.Query))
	found := []noteView{}
	for _, key := range b.keys(in.Tag) {
		n := b.notes[key]
		all := strings.ToLower(strings.Join(append([]string{key, n.text()}, n.tags...), "\n"))
		missing := func(word string) bool { return !strings.Contains(all, word) }
		if len(found) < in.Limit && len(words) > 0 && !slices.ContainsFunc(words, missing) {
			found = append(found, noteView{Key: key, Text: excerpt(n.text(), words[0]), Tags: n.tags})
		}
	}
	return found, nil
}

// excerpt returns the part of the text around a word in lower case.
func excerpt(text, word string) string {
	const before, after = 40, 120
	at := max(0, strings.Index(strings.ToLower(text), word))
	start, end := max(0, at-before), min(len(text), at+after)
	for start > 0 && start < len(text) && !utf8.RuneStart(text[start]) {
		start--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	if start >= end { // the lower case of some letters is longer
		return ""
	}
	part := strings.TrimSpace(text[start:end])
	if start > 0 {
		part = "…" + part
	}
	if end < len(text) {
		part += "…"
	}
	return part
}

func (b *notebook) tag(in putArgs) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	n.addTags(in.Tags)
	return fmt.Sprintf("%s is tagged %s.", in.Key, strings.Join(n.tags, ", ")), nil
}

type untagArgs struct{ Key, Tag string }

func (b *notebook) untag(in untagArgs) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	at := slices.Index(n.tags, in.Tag)
	if at < 0 {
		return nil, fmt.Errorf("%s has no tag %q", in.Key, in.Tag)
	}
	n.tags = slices.Delete(n.tags, at, at+1)
	return fmt.Sprintf("Removed the tag %s from %s.", in.Tag, in.Key), nil
}

func (b *notebook) tags(struct{}) (any, error) {
	counts := map[string]int{} // marshals with sorted keys
	for _, n := range b.notes {
		for _, tag := range n.tags {
			counts[tag]++
		}
	}
	return counts, nil
}

func (b *notebook) history(in keyArg) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	type version struct {
		Version int    `json:"version"`
		Text    string `json:"text"`
	}
	var list []version
	for i, text := range n.versions {
		list = append(list, version{n.dropped + i + 1, text})
	}
	return list, nil
}

type versionArgs struct {
	Key               string
	Version, From, To int
}

func (b *notebook) restore(in versionArgs) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	text, err := n.version(in.Version)
	if err != nil {
		return nil, err
	}
	n.save(text)
	return fmt.Sprintf("Restored version %d of %s as version %d.", in.Version, in.Key, n.latest()), nil
}

func (b *notebook) diff(in versionArgs) (any, error) {
	n, err := b.find(in.Key)
	if err != nil {
		return nil, err
	}
	if in.To == 0 {
		in.To = n.latest()
	}
	from, errFrom := n.version(in.From)
	to, errTo := n.version(in.To)
	if err := errors.Join(errFrom, errTo); err != nil {
		return nil, err
	}
	name := func(version int) string { return fmt.Sprintf("version %d", version) }
	return unifiedDiff(name(in.From), name(in.To), from, to, 3)
}

func (b *notebook) backlinks(in keyArg) (any, error) {
	links := []string{}
	for _, key := range b.keys("") {
		if strings.Contains(b.notes[key].text(), "[["+in.Key+"]]") {
			links = append(links, key)
		}
	}
	return links, nil
}

func (b *notebook) export(in notesArgs) (any, error) {
	list := []noteView{}
	for _, key := range b.keys(in.Tag) {
		list = append(list, noteView{Key: key, Text: b.notes[key].text(), Tags: b.notes[key].tags})
	}
	return list, nil
}

type importArgs struct {
	JSON      string
	Overwrite bool
}

func (b *notebook) load(in importArgs) (any, error) {
	var list []noteView
	if err := json.Unmarshal([]byte(in.JSON), &list); err != nil {
		return nil, err
	}
	imported, skipped := 0, 0
	for i, view := range list {
		if view.Key == "" || len(view.Key) > maxKey {
			return nil, fmt.Errorf("note %d has no key, or too long a one, after %d imported notes", i+1, imported)
		}
		if b.notes[view.Key] != nil && !in.Overwrite {
			skipped++
			continue
		}
		n, err := b.ensure(view.Key)
		if err != nil {
			return nil, err
		}
		n.save(view.Text)
		n.addTags(view.Tags)
		imported++
	}
	return fmt.Sprintf("Imported %d notes and skipped %d.", imported, skipped), nil
}

func (b *notebook) statistics(struct{}) (any, error) {
	var stats struct {
		Notes    int    `json:"notes"`
		Versions int    `json:"versions"`
		Tags     int    `json:"tags"`
		Words    int    `json:"words"`
		Longest  string `json:"longest,omitempty"`
	}
	tags := map[string]bool{}
	longest := -1
	for _, key := range b.keys("") {
		n := b.notes[key]
		stats.Notes++
		stats.Versions += n.latest()
		stats.Words += len(strings.Fields(n.text()))
		for _, tag := range n.tags {
			tags[tag] = true
		}
		if size := len(n.text()); size > longest {
			stats.Longest, longest = key, size
		}
	}
	stats.Tags = len(tags)
	return stats, nil
}
