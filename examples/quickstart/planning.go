package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

type milestoneArgs struct {
	Number                int
	Title, Due, Milestone string
}

func (t *tracker) createMilestone(in milestoneArgs) (any, error) {
	if t.milestones[in.Title] != nil {
		return nil, fmt.Errorf("milestone %q exists", in.Title)
	}
	if len(t.milestones) == maxIssues {
		return nil, errors.New("the tracker is full")
	}
	if in.Due != "" {
		if _, err := time.Parse(time.DateOnly, in.Due); err != nil {
			return nil, fmt.Errorf("%s is not a date", in.Due)
		}
	}
	t.milestones[in.Title] = &milestone{Title: in.Title, Due: in.Due}
	return t.milestones[in.Title], nil
}

func (t *tracker) listMilestones(struct{}) (any, error) {
	list := []milestone{}
	for _, m := range t.milestones {
		planned := func(i *issue) bool { return i.Milestone == m.Title }
		list = append(list, milestone{m.Title, m.Due, len(t.filter("open", planned)), len(t.filter("closed", planned))})
	}
	slices.SortFunc(list, func(a, b milestone) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Title, b.Title)) })
	return list, nil
}

func (t *tracker) setMilestone(in milestoneArgs) (any, error) {
	return t.change(in.Number, func(i *issue) (string, error) {
		switch {
		case in.Milestone != "" && t.milestones[in.Milestone] == nil:
			return "", fmt.Errorf("there is no milestone %q", in.Milestone)
		case i.Milestone == in.Milestone:
			return "", nil
		}
		i.Milestone = in.Milestone
		if in.Milestone == "" {
			return "taken out of its milestone", nil
		}
		return "planned for " + in.Milestone, nil
	})
}

// seenFrom names each relation between issues from the other end.
var seenFrom = map[string]string{
	"blocks":       "blocked_by",
	"parent_of":    "child_of",
	"relates_to":   "relates_to",
	"duplicate_of": "duplicated_by",
}

type linkArgs struct {
	Number, Other int
	Relation      string
}

func (t *tracker) link(in linkArgs) (any, error) {
	other, err := t.find(in.Other)
	if err != nil {
		return nil, err
	}
	return t.change(in.Number, func(i *issue) (string, error) {
		if i == other {
			return "", errors.New("an issue cannot be linked to itself")
		}
		there, back := link{in.Relation, in.Other}, link{seenFrom[in.Relation], in.Number}
		if slices.Contains(i.Links, there) {
			return "", nil
		}
		i.Links = append(i.Links, there)
		other.Links = append(other.Links, back)
		t.record(other, fmt.Sprintf("%s #%d", back.Relation, back.Number))
		return fmt.Sprintf("%s #%d", there.Relation, there.Number), nil
	})
}

type duplicateArgs struct{ Number, Original int }

func (t *tracker) markDuplicate(in duplicateArgs) (any, error) {
	i, err := t.find(in.Number)
	if err != nil {
		return nil, err
	}
	if i.State == "closed" {
		return nil, fmt.Errorf("issue #%d is already closed", in.Number)
	}
	if _, err := t.link(linkArgs{in.Number, in.Original, "duplicate_of"}); err != nil {
		return nil, err
	}
	return t.closeIssue(closeArgs{Number: in.Number, Reason: "duplicate"})
}

func (t *tracker) timeline(in numberArg) (any, error) {
	i, err := t.find(in.Number)
	if err != nil {
		return nil, err
	}
	return i.events, nil
}

func (t *tracker) statistics(struct{}) (any, error) {
	open := t.filter("open", every)
	byPriority, byLabel, byAssignee := map[string]int{}, map[string]int{}, map[string]int{}
	for _, i := range open {
		byPriority[i.Priority]++
		for _, label := range i.Labels {
			byLabel[label]++
		}
		for _, user := range i.Assignees {
			byAssignee[user]++
		}
		if len(i.Assignees) == 0 {
			byAssignee["nobody"]++
		}
	}
	slices.SortStableFunc(open, func(a, b *issue) int { return cmp.Compare(len(b.Comments), len(a.Comments)) })
	var discussed []int
	for _, i := range open[:min(5, len(open))] {
		if len(i.Comments) > 0 {
			discussed = append(discussed, i.Number)
		}
	}
	return struct {
		Open          int            `json:"open"`
		Closed        int            `json:"closed"`
		ByPriority    map[string]int `json:"by_priority"`
		ByLabel       map[string]int `json:"by_label"`
		ByAssignee    map[string]int `json:"by_assignee"`
		MostDiscussed []int          `json:"most_discussed,omitempty"`
	}{len(open), len(t.filter("closed", every)), byPriority, byLabel, byAssignee, discussed}, nil
}
