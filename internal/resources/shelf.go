package resources

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// An Entry is an item of a server that a catalog has. It is immutable.
type Entry struct {
	*Item
	Names       rules.Subject // what patterns see
	Barred      error         // why nobody may ever have it, or nil
	Quarantined error         // says that it is held back for now, or nil

	// Unlisted says that it is a skill that its server does not list. It is found by its URI
	// only.
	Unlisted bool
}

// A Shelf has the entries of one version of a catalog: those of each server stand
// together. It is immutable but for Kept, and nil is an empty one.
type Shelf struct {
	// Kept has what a reader made of the shelf last, to find it again.
	Kept atomic.Value

	skills  []*Entry // those that are listed, and neither barred nor held back
	skilled []string // servers that have skills, listed or not
	entries []*Entry
	byID    map[ID]*Entry
	files   func() skillFiles    // nil is none
	index   func() *search.Index // its documents are the entries
}

// skillFiles has skills by the URIs of their files.
type skillFiles struct {
	listed  map[string][]*Entry // by these as they are listed
	spelled map[string][]*Entry // by [plainest] of these
}

// All returns the entries. They are shared.
func (s *Shelf) All() []*Entry {
	if s == nil {
		return nil
	}
	return s.entries
}

// Skills returns the skills that somebody may have. They are shared.
func (s *Shelf) Skills() []*Entry {
	if s == nil {
		return nil
	}
	return s.skills
}

// An ID identifies an entry of a shelf.
type ID struct {
	Server string
	Kind   Kind
	ID     string
}

// Key returns what identifies e.
func (e *Entry) Key() ID { return ID{e.Names.Server, e.Kind, e.ID} }

// NewShelf returns the shelf with these entries. skilled are the servers that have skills,
// listed or not. It is prev if prev has both. index returns an index of documents, and is
// called with the first search.
func NewShelf(prev *Shelf, entries []*Entry, skilled []string, index func([]*search.Document) *search.Index) *Shelf {
	if len(entries)+len(skilled) == 0 {
		return nil
	}
	if prev != nil && slices.Equal(prev.entries, entries) && slices.Equal(prev.skilled, skilled) {
		return prev
	}
	s := &Shelf{entries: entries, skilled: skilled, byID: make(map[ID]*Entry, len(entries))}
	for _, e := range entries {
		s.byID[e.Key()] = e
		if e.Kind == Skill && e.Barred == nil && e.Quarantined == nil && !e.Unlisted {
			s.skills = append(s.skills, e)
		}
	}
	s.files = sync.OnceValue(func() skillFiles {
		files := skillFiles{make(map[string][]*Entry), make(map[string][]*Entry)}
		for _, e := range entries {
			if e.Kind == Skill {
				for _, f := range e.Manifest.Files {
					plain := plainest(f.URI)
					files.listed[f.URI] = append(files.listed[f.URI], e)
					files.spelled[plain] = append(files.spelled[plain], e)
				}
			}
		}
		return files
	})
	s.index = sync.OnceValue(func() *search.Index {
		docs := make([]*search.Document, len(entries))
		for i, e := range entries {
			docs[i] = &search.Document{Server: e.Names.Server, Name: e.Name, Title: e.Title, Description: e.Description, Hints: e.ID}
		}
		return index(docs)
	})
	return s
}

// Find returns the entry with that ID, or nil.
func (s *Shelf) Find(id ID) *Entry {
	if s == nil {
		return nil
	}
	return s.byID[id]
}

// skillsWith returns the skills of which uri is a file, those that are barred or held back
// too.
func (s *Shelf) skillsWith(uri string) []*Entry {
	if s == nil || s.files == nil {
		return nil
	}
	return s.files().listed[uri]
}

// skillsSpelled is skillsWith for any of the [Forms] of a URI, which may spell the file in
// another way than the list.
func (s *Shelf) skillsSpelled(form string) []*Entry {
	if s == nil || s.files == nil {
		return nil
	}
	return s.files().spelled[form]
}

// Search returns at most n of the entries that keep accepts and that best match query,
// best first and those of equal score in order.
func (s *Shelf) Search(query string, n int, keep func(*Entry) bool) (found []*Entry) {
	if s == nil {
		return nil
	}
	for _, m := range s.index().Search(query, n, func(doc int) bool { return keep(s.entries[doc]) }) {
		found = append(found, s.entries[m.Doc])
	}
	return found
}

// An Answer is the answer to a model's search.
type Answer struct {
	Resources []FoundEntry `json:"resources"`
	Count     int          `json:"count"`
	Total     int          `json:"total"` // of all that there are
	Message   string       `json:"message"`
}

// A FoundEntry is an entry as a model reads it.
type FoundEntry struct {
	Server      string `json:"server"`
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uri_template,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mime_type,omitempty"`
	Size        int64  `json:"size,omitempty"`
}

// Found returns entries for a model. Texts are one line each, of at most so many
// characters, apart from the URI.
func Found(entries []*Entry, limit int) []FoundEntry {
	list := make([]FoundEntry, len(entries))
	line := func(s string) string { return text.Line(s, limit) }
	for i, e := range entries {
		f := FoundEntry{Server: text.Line(e.Names.Server, text.MaxName), Name: line(e.Name), Title: line(e.Title), Description: line(e.Description), MIMEType: line(e.MIMEType), Size: e.Size}
		if f.Title == f.Name {
			f.Title = ""
		}
		if e.Kind == Template {
			f.Template = e.ID
		} else {
			f.URI = e.ID
		}
		list[i] = f
	}
	return list
}
