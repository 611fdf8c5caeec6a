package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	maxIssues   = 10000
	maxComments = 1000
)

var priorities = []string{"low", "normal", "high", "urgent"}

// A tracker holds the issues and milestones of a project.
type tracker struct {
	sync.Mutex
	issues     []*issue // by number-1; nil if deleted
	milestones map[string]*milestone
	changes    int // made so far
}

type issue struct {
	Number    int       `json:"number"`
	Title     string    `json:"title"`
	State     string    `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	Priority  string    `json:"priority"`
	Labels    []string  `json:"labels,omitempty"`
	Assignees []string  `json:"assignees,omitempty"`
	Milestone string    `json:"milestone,omitempty"`
	Links     []link    `json:"links,omitempty"`
	Body      string    `json:"body,omitempty"`
	Comments  []comment `json:"comments,omitempty"`
	events    []string
	updated   int // the tracker's changes at the last change
}

type link struct {
	Relation string `json:"relation"`
	Number   int    `json:"number"`
}

type comment struct {
	Author string `json:"author"`
	Body   string `json:"body"`
}

type milestone struct {
	Title  string `json:"title"`
	Due    string `json:"due,omitempty"`
	Open   int    `json:"open"`
	Closed int    `json:"closed"`
}

// locked holds the lock during run and the encoding of its result.
func locked[In any](mu sync.Locker, run func(In) (any, error)) func(In) (any, error) {
	return func(in In) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		out, err := run(in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
}

func (t *tracker) find(number int) (*issue, error) {
	if number < 1 || number > len(t.issues) || t.issues[number-1] == nil {
		return nil, fmt.Errorf("there is no issue #%d", number)
	}
	return t.issues[number-1], nil
}

// change finds an issue, changes it, and records the event that change
// returns, if any.
func (t *tracker) change(number int, change func(*issue) (event string, err error)) (any, error) {
	i, err := t.find(number)
	if err != nil {
		return nil, err
	}
	event, err := change(i)
	if err != nil {
		return nil, err
	}
	if event == "" {
		return fmt.Sprintf("Issue #%d is unchanged.", number), nil
	}
	t.record(i, event)
	return fmt.Sprintf("Issue #%d: %s.", number, event), nil
}

func (t *tracker) record(i *issue, event string) {
	t.changes++
	i.updated = t.changes
	i.events = append(i.events, event)
}

type numberArg struct{ Number int }

type createArgs struct {
	Title, Body, Assignee, Priority string
	Labels                          []string
}

func (t *tracker) create(in createArgs) (any, error) {
	if len(t.issues) == maxIssues {
		return nil, errors.New("the tracker is full")
	}
	i := &issue{
		Number: len(t.issues) + 1, Title: in.Title, Body: in.Body, State: "open",
		Priority: in.Priority, Labels: addAll(nil, in.Labels),
	}
	if in.Assignee != "" {
		i.Assignees = []string{in.Assignee}
	}
	t.issues = append(t.issues, i)
	t.record(i, "opened")
	return i, nil
}

func (t *tracker) get(in numberArg) (any, error) { return t.find(in.Number) }

func every(*issue) bool { return true }

// filter returns the issues in a state that match.
func (t *tracker) filter(state string, match func(*issue) bool) []*issue {
	list := []*issue{}
	for _, i := range t.issues {
		if i != nil && (state == "all" || state == i.State) && match(i) {
			list = append(list, i)
		}
	}
	return list
}

// summaries returns the first limit issues without description and comments.
func summaries(issues []*issue, limit int) []issue {
	list := []issue{}
	for _, i := range issues[:min(limit, len(issues))] {
		summary := *i
		summary.Body, summary.Comments = "", nil
		list = append(list, summary)
	}
	return list
}

type listArgs struct {
	State, Label, Assignee, Milestone, Sort string
	Limit                                   int
}

func (t *tracker) list(in listArgs) (any, error) {
	list := t.filter(in.State, func(i *issue) bool {
		return (in.Label == "" || slices.Contains(i.Labels, in.Label)) &&
			(in.Assignee == "" || slices.Contains(i.Assignees, in.Assignee)) &&
			(in.Milestone == "" || i.Milestone == in.Milestone)
	})
	keys := map[string]func(*issue) int{
		"newest":   func(i *issue) int { return i.Number },
		"oldest":   func(i *issue) int { return -i.Number },
		"updated":  func(i *issue) int { return i.updated },
		"priority": func(i *issue) int { return slices.Index(priorities, i.Priority) },
		"comments": func(i *issue) int { return len(i.Comments) },
	}
	key := keys[in.Sort]
	slices.SortStableFunc(list, func(a, b *issue) int { return cmp.Compare(key(b), key(a)) })
	return summaries(list, in.Limit), nil
}

type searchArgs struct {
	Query, State string
	Limit        int
}

func (t *tracker) search(in searchArgs) (any, error) {
	words := strings.Fields(strings.ToLower(in.Query))
	found := t.filter(in.State, func(i *issue) bool {
		texts := []string{i.Title, i.Body}
		for _, c := range i.Comments {
			texts = append(texts, c.Body)
		}
		text := strings.ToLower(strings.Join(texts, "\n"))
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
	return summaries(found, in.Limit), nil
}

type updateArgs struct {
	Number                int
	Title, Body, Priority *string
}

func (t *tracker) update(in updateArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		var changed []string
		set := func(name string, field, value *string) {
			if value != nil && *value != *field {
				*field = *value
				changed = append(changed, name)
			}
		}
		set("title", &i.Title, in.Title)
		set("body", &i.Body, in.Body)
		set("priority", &i.Priority, in.Priority)
		if changed == nil {
			return "", nil
		}
		return "changed " + strings.Join(changed, ", "), nil
	})
}

type closeArgs struct {
	Number          int
	Reason, Comment string
}

func (t *tracker) closeIssue(in closeArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		if i.State == "closed" {
			return "", fmt.Errorf("issue #%d is already closed", in.Number)
		}
		if in.Comment != "" {
			if err := i.addComment("agent", in.Comment); err != nil {
				return "", err
			}
		}
		i.State, i.Reason = "closed", in.Reason
		return "closed as " + in.Reason, nil
	})
}

func (t *tracker) reopen(in numberArg) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		if i.State == "open" {
			return "", fmt.Errorf("issue #%d is already open", in.Number)
		}
		i.State, i.Reason = "open", ""
		return "reopened", nil
	})
}

func (t *tracker) remove(in numberArg) (any, error) {
	if _, err := t.find(in.Number); err != nil {
		return nil, err
	}
	t.issues[in.Number-1] = nil
	for _, i := range t.filter("all", every) {
		i.Links = slices.DeleteFunc(i.Links, func(l link) bool { return l.Number == in.Number })
	}
	return fmt.Sprintf("Issue #%d is deleted.", in.Number), nil
}

type commentArgs struct {
	Number       int
	Author, Body string
}

func (i *issue) addComment(author, body string) error {
	if len(i.Comments) == maxComments {
		return fmt.Errorf("issue #%d has too many comments", i.Number)
	}
	i.Comments = append(i.Comments, comment{author, body})
	return nil
}

func (t *tracker) comment(in commentArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		if err := i.addComment(in.Author, in.Body); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s wrote comment %d", in.Author, len(i.Comments)), nil
	})
}

func (t *tracker) comments(in numberArg) (any, error) {
	i, err := t.find(in.Number)
	if err != nil {
		return nil, err
	}
	return append([]comment{}, i.Comments...), nil
}

type labelArgs struct {
	Number int
	Label  string
	Labels []string
}

func (t *tracker) addLabels(in labelArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		before := len(i.Labels)
		i.Labels = addAll(i.Labels, in.Labels)
		if len(i.Labels) == before {
			return "", nil
		}
		return "labeled " + strings.Join(in.Labels, ", "), nil
	})
}

func (t *tracker) removeLabel(in labelArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		at := slices.Index(i.Labels, in.Label)
		if at < 0 {
			return "", fmt.Errorf("issue #%d has no label %q", in.Number, in.Label)
		}
		i.Labels = slices.Delete(i.Labels, at, at+1)
		return "unlabeled " + in.Label, nil
	})
}

func (t *tracker) labels(struct{}) (any, error) {
	type count struct {
		Open   int `json:"open"`
		Closed int `json:"closed"`
	}
	counts := map[string]*count{} // marshals with sorted keys
	for _, i := range t.filter("all", every) {
		for _, label := range i.Labels {
			if counts[label] == nil {
				counts[label] = &count{}
			}
			if i.State == "open" {
				counts[label].Open++
			} else {
				counts[label].Closed++
			}
		}
	}
	return counts, nil
}

type assignArgs struct {
	Number   int
	Assignee string
}

func (t *tracker) assign(in assignArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		if slices.Contains(i.Assignees, in.Assignee) {
			return "", nil
		}
		i.Assignees = append(i.Assignees, in.Assignee)
		return "assigned to " + in.Assignee, nil
	})
}

func (t *tracker) unassign(in assignArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		at := slices.Index(i.Assignees, in.Assignee)
		if at < 0 {
			return "", fmt.Errorf("issue #%d is not assigned to %s", in.Number, in.Assignee)
		}
		i.Assignees = slices.Delete(i.Assignees, at, at+1)
		return "unassigned from " + in.Assignee, nil
	})
}
