package main

import (
	"context"
	"errors"

	"github.com/mcphybrid/mcphybrid/internal/billing"
)

// A row is the mean of conversations of one kind, in one form, under one rule.
type row struct {
	Rule  string `json:"rule"`
	Kind  string `json:"kind"`
	Tools int    `json:"tools"`
	Form  string `json:"form"`

	Billed   float64 `json:"billed"`   // in prices of an input token
	Ratio    float64 `json:"ratio"`    // to raw
	Lost     float64 `json:"lost"`     // requests that lost the cache of earlier messages
	Refused  float64 `json:"refused"`  // requests that the prefix check of the rule would refuse
	Requests float64 `json:"requests"` // all
	First    float64 `json:"first"`    // tokens of the first request
}

func (r *row) add(b billing.Bill) {
	if b.Lost {
		r.Lost++
	}
	if b.Refused {
		r.Refused++
	}
	r.Billed += b.Price
	r.Requests++
}

func (r *row) divide(n float64) {
	for _, sum := range []*float64{&r.Billed, &r.Lost, &r.Refused, &r.Requests, &r.First} {
		*sum /= n
	}
}

// measure plays n conversations of each kind in each form that fits a rule.
func measure(tools []tool, counter *counter, n int) (rows []row, err error) {
	w, err := newWorld(tools, counter)
	if err != nil {
		return nil, err
	}
	defer w.close()
	for _, k := range kinds {
		scripts := w.scripts(k, n)
		if len(scripts) == 0 {
			return nil, errors.New("too few tools for a conversation")
		}
		of, err := w.rows(k, scripts)
		if err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// rows returns a row for each rule and form that fit.
func (w *world) rows(k kind, scripts []*script) (rows []row, err error) {
	rules := billing.Rules()
	byRule := make([][]row, len(rules))
	for _, fm := range forms {
		played := make(map[string][]row) // by format and model; one of each rule
		for i, rule := range rules {
			if !fm.fits(rule.Format) {
				continue
			}
			to := string(rule.Format)
			if fm.name == "default" { // which goes by the model
				to += " " + rule.Model
			}
			if played[to] == nil {
				if played[to], err = w.playAll(fm, rule, rules, scripts); err != nil {
					return nil, err
				}
			}
			r := played[to][i]
			r.Kind, r.Ratio = k.name, 1
			if len(byRule[i]) > 0 {
				r.Ratio = r.Billed / byRule[i][0].Billed
			}
			byRule[i] = append(byRule[i], r)
		}
	}
	for _, of := range byRule {
		rows = append(rows, of...)
	}
	return rows, nil
}

// playAll plays all scripts in one form, with the format and the model of a rule, and bills
// each by all rules of the format.
func (w *world) playAll(fm form, to billing.Rule, rules []billing.Rule, scripts []*script) ([]row, error) {
	rows := make([]row, len(rules))
	for i, rule := range rules {
		rows[i] = row{Rule: rule.Name, Tools: len(w.tools), Form: fm.name}
	}
	for _, s := range scripts {
		accounts := make([]*billing.Account, len(rules))
		for i, rule := range rules {
			if rule.Format == to.Format {
				accounts[i] = rule.Open()
			}
		}
		first := true
		err := w.play(context.Background(), s, fm, to.Format, to.Model, func(q billing.Request) {
			for i, a := range accounts {
				if a == nil {
					continue
				}
				bill := a.Bill(q)
				rows[i].add(bill)
				if first {
					rows[i].First += float64(bill.Tokens)
				}
			}
			first = false
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range rows {
		rows[i].divide(float64(len(scripts)))
	}
	return rows, nil
}
