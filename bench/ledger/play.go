package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/billing"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A play is one script, sent in one form. Its model reads only requests and results: it
// does not know the form.
type play struct {
	w      *world
	script *script
	host   host
	format provider.Format
	bill   func(billing.Request)

	messages []json.RawMessage
	calls    int             // made so far; gives the calls their ids
	asides   int             // used so far
	heard    map[string]bool // tools that results named, and whether with their schema
	searched map[string]bool // tools that a search was for
}

// play plays s and hands each request to bill.
func (w *world) play(ctx context.Context, s *script, fm form, f provider.Format, model string, bill func(billing.Request)) error {
	h, err := fm.open(w, f, model)
	if err != nil {
		return err
	}
	p := &play{w: w, script: s, host: h, format: f, bill: bill, heard: make(map[string]bool), searched: make(map[string]bool)}
	for _, t := range s.turns {
		p.messages = append(p.messages, said(f, true, t.user))
		for _, u := range t.uses {
			if err := p.use(ctx, u); err != nil {
				return fmt.Errorf("%s, %s: %w", fm.name, f, err)
			}
		}
		if _, err := p.request(); err != nil {
			return fmt.Errorf("%s, %s: %w", fm.name, f, err)
		}
		p.messages = append(p.messages, said(f, false, t.answer))
	}
	return nil
}

// request sends a request.
func (p *play) request() (billing.Request, error) {
	body, own, err := p.host.request(slices.Clip(p.messages))
	if err != nil {
		return nil, err
	}
	p.messages = append(p.messages, own...)
	q, err := p.w.reader.Read(p.format, body)
	if err == nil {
		p.bill(q)
	}
	return q, err
}

// use sends requests until the model has called the tool. In each step, it does the first of
// these that it can:
//
//  1. call the tool, if it has the definition
//  2. call it by the meta tool, if it knows the schema
//  3. have it described, if it knows of it or has searched for it
//  4. search for it, once
//  5. call it all the same
//
// With the tool that runs scripts, it searches by a script, then asks for the signature by name,
// and calls the tool by another.
func (p *play) use(ctx context.Context, u use) error {
	name, args := p.w.names[u.tool], p.w.args[u.tool]
	for {
		q, err := p.request()
		if err != nil {
			return err
		}
		bridge, code := offers(q, mcphybrid.CallToolName), offers(q, codeTool)
		schema, heard := p.heard[name]
		search := ""
		if !p.searched[name] {
			search = searchOf(q)
		}
		switch {
		case offers(q, name):
			return p.call(ctx, u, name, args)
		case code && heard:
			return p.call(ctx, u, codeTool, calling(name, args))
		case code:
			query := p.script.queries[u.tool]
			if p.searched[name] {
				query = "select:" + name
			}
			p.searched[name] = true
			err = p.aside(ctx, codeTool, searching(query))
		case bridge && schema:
			return p.call(ctx, u, mcphybrid.CallToolName, raw(object{"name": name, "arguments": args}))
		case bridge && (heard || search == ""):
			err = p.aside(ctx, mcphybrid.DescribeToolName, raw(object{"names": []string{name}}))
			p.heard[name] = true
		case search != "":
			err = p.aside(ctx, search, raw(object{"query": p.script.queries[u.tool]}))
			p.searched[name] = true
		default:
			return p.call(ctx, u, name, args)
		}
		if err != nil {
			return err
		}
	}
}

func (p *play) call(ctx context.Context, u use, name string, args json.RawMessage) error {
	p.w.result = u.result
	_, err := p.send(ctx, u.say, name, args)
	return err
}

// aside calls a meta tool and has the model read what it says of tools.
func (p *play) aside(ctx context.Context, name string, args json.RawMessage) error {
	say := p.script.asides[p.asides%len(p.script.asides)]
	p.asides++
	text, err := p.send(ctx, say, name, args)
	var found struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
	}
	if name == codeTool {
		for _, tool := range p.w.names {
			if signs(text, tool) {
				p.heard[tool] = true
			}
		}
		return err
	}
	if json.Unmarshal([]byte(text), &found) == nil {
		for _, t := range found.Tools {
			p.heard[t.Name] = p.heard[t.Name] || t.InputSchema != nil
		}
	}
	return err
}

func (p *play) send(ctx context.Context, say, name string, args json.RawMessage) (string, error) {
	p.calls++
	messages, text, err := p.host.answer(ctx, call{say, fmt.Sprintf("call_%d", p.calls), name, args})
	p.messages = append(p.messages, messages...)
	return text, err
}

func offers(q billing.Request, name string) bool {
	return slices.ContainsFunc(q, func(b billing.Block) bool { return b.Name == name })
}

// searchOf returns the name of the search that a request offers, or "".
func searchOf(q billing.Request) string {
	for _, name := range []string{mcphybrid.SearchToolName, anthropicSearch, openAISearch} {
		if offers(q, name) {
			return name
		}
	}
	return ""
}
