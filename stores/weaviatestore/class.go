package weaviatestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The properties of an object.
const (
	fieldTool       = "tool_name"
	fieldServer     = "origin"
	fieldServerHash = "origin_sha256"
	fieldText       = "text"
	fieldSum        = "sum"
	fieldScope      = "scope"
	fieldDimensions = "dimensions"

	fieldDescription = "description"
	fieldSchema      = "schema_json"
)

// A property is one property of a class.
type property struct {
	Name            string   `json:"name"`
	DataType        []string `json:"dataType"`
	IndexFilterable bool     `json:"indexFilterable"`
	IndexSearchable bool     `json:"indexSearchable"`
}

// properties lists the properties that the class must have.
var properties = []property{
	{Name: fieldTool, DataType: []string{"text"}},
	{Name: fieldServer, DataType: []string{"text"}},
	{Name: fieldServerHash, DataType: []string{"text"}, IndexFilterable: true},
	{Name: fieldText, DataType: []string{"text"}, IndexSearchable: true},
	{Name: fieldSum, DataType: []string{"text"}},
	{Name: fieldScope, DataType: []string{"text"}},
	{Name: fieldDimensions, DataType: []string{"int"}, IndexFilterable: true},
}

// forReaders lists the properties that are added to a class of an earlier version.
var forReaders = []property{
	{Name: fieldDescription, DataType: []string{"text"}},
	{Name: fieldSchema, DataType: []string{"text"}},
}

// definition returns the definition of a new property.
func (p *property) definition() map[string]any {
	made := map[string]any{
		"name": p.Name, "dataType": slices.Clone(p.DataType), "indexFilterable": p.IndexFilterable, "indexSearchable": p.IndexSearchable,
	}
	switch {
	case p.IndexSearchable:
		made["tokenization"] = "word"
	case p.DataType[0] == "text":
		made["tokenization"] = "field"
	}
	return made
}

// newClass returns the definition of a new class.
func (s *Store) newClass() map[string]any {
	var list []map[string]any
	for _, p := range slices.Concat(properties, forReaders) {
		list = append(list, p.definition())
	}
	c := map[string]any{
		"class":       s.opts.Class,
		"description": "Tools of MCP servers, a tenant for each scope",
		"vectorizer":  "none",
		// Searches compare all vectors: see the package comment.
		"vectorIndexType":    "flat",
		"vectorIndexConfig":  map[string]any{"distance": "cosine"},
		"multiTenancyConfig": map[string]any{"enabled": true, "autoTenantCreation": true, "autoTenantActivation": true},
		"properties":         list,
	}
	if s.opts.Create != nil {
		s.opts.Create(c)
	}
	return c
}

// A class holds the parts of the server's class that the store checks.
type class struct {
	Vectorizer        string                     `json:"vectorizer"`
	VectorConfig      map[string]json.RawMessage `json:"vectorConfig"`
	VectorIndexConfig struct {
		Distance string `json:"distance"`
	} `json:"vectorIndexConfig"`
	MultiTenancyConfig struct {
		Enabled            bool `json:"enabled"`
		AutoTenantCreation bool `json:"autoTenantCreation"`
	} `json:"multiTenancyConfig"`
	Properties []property `json:"properties"`
}

// check returns how the class differs from the one that the store needs, or nil. missing
// are the properties for readers that it lacks.
func (c *class) check() (missing []property, err error) {
	switch {
	case !c.MultiTenancyConfig.Enabled || !c.MultiTenancyConfig.AutoTenantCreation:
		return nil, errors.New("has no tenants, or does not make them by itself")
	case len(c.VectorConfig) > 0 || c.Vectorizer != "none":
		return nil, errors.New("has not one vector without a name and without a vectorizer")
	case c.VectorIndexConfig.Distance != "cosine":
		return nil, errors.New("has a distance that is not cosine")
	}
	have := make(map[string]property)
	for _, p := range c.Properties {
		have[p.Name] = p
	}
	for i, want := range slices.Concat(properties, forReaders) {
		p, ok := have[want.Name]
		switch {
		case !ok && i >= len(properties):
			missing = append(missing, want)
		case !ok || !slices.Equal(p.DataType, want.DataType):
			return nil, fmt.Errorf("has no property %q of the type %s", want.Name, strings.Join(want.DataType, " "))
		case want.IndexFilterable && !p.IndexFilterable:
			return nil, fmt.Errorf("can't be filtered by %q", want.Name)
		case want.IndexSearchable && !p.IndexSearchable:
			return nil, fmt.Errorf("can't be searched for words in %q", want.Name)
		}
	}
	return missing, nil
}

// getClass reads the class. If there is none, the error has the status 404.
func (s *Store) getClass(ctx context.Context) (*class, error) {
	c := new(class)
	err := s.call(ctx, http.MethodGet, "/v1/schema/"+s.opts.Class, nil, func(reply []byte) error {
		if err := json.Unmarshal(reply, c); err != nil {
			return fmt.Errorf("an answer of another shape: %w", err)
		}
		return nil
	})
	return c, err
}

// prepare makes sure that the class exists and is as the store needs it. Several
// processes may call it at once.
func (s *Store) prepare(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	c, err := s.getClass(ctx)
	if statusOf(err) == http.StatusNotFound {
		made := s.call(ctx, http.MethodPost, "/v1/schema", s.newClass(), nil)
		// Another process may have been first.
		if c, err = s.getClass(ctx); statusOf(err) == http.StatusNotFound && made != nil {
			err = made
		}
	}
	if err != nil {
		return fmt.Errorf("class %q: %w", s.opts.Class, err)
	}
	missing, err := c.check()
	for _, p := range missing {
		if err = s.add(ctx, &p); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("class %q %w", s.opts.Class, err)
	}
	s.ready.Store(true)
	return nil
}

// add adds a property to the class. Another process may have been first.
func (s *Store) add(ctx context.Context, p *property) error {
	made := s.call(ctx, http.MethodPost, "/v1/schema/"+s.opts.Class+"/properties", p.definition(), nil)
	if made == nil {
		return nil
	}
	if c, err := s.getClass(ctx); err == nil && slices.ContainsFunc(c.Properties, func(have property) bool { return have.Name == p.Name }) {
		return nil
	}
	return fmt.Errorf("can't get the property %q: %w", p.Name, made)
}

// absent reports whether err means that the class or the tenant does not exist.
func (s *Store) absent(ctx context.Context, err error) bool {
	if !answered(err) || ctx.Err() != nil {
		return false
	}
	// Asking for the tenant would cost each search of an empty scope another
	// request.
	if strings.Contains(messageOf(err), "tenant not found") {
		return true
	}
	if _, err = s.getClass(ctx); statusOf(err) == http.StatusNotFound {
		s.ready.Store(false)
		return true
	}
	return false
}
