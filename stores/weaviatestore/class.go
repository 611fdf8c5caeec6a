package weaviatestore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weaviate/weaviate-go-client/v5/weaviate/fault"
	"github.com/weaviate/weaviate/entities/models"
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
)

// class returns the class as it is made.
func (s *Store) class() *models.Class {
	property := func(name, kind string, filterable, searchable bool) *models.Property {
		p := &models.Property{Name: name, DataType: []string{kind}, IndexFilterable: &filterable, IndexSearchable: &searchable}
		switch {
		case searchable:
			p.Tokenization = models.PropertyTokenizationWord
		case kind == "text":
			p.Tokenization = models.PropertyTokenizationField
		}
		return p
	}
	c := &models.Class{
		Class:       s.opts.Class,
		Description: "Tools of MCP servers, a tenant for each scope",
		Vectorizer:  "none",
		// All vectors are compared: see the package comment.
		VectorIndexType:   "flat",
		VectorIndexConfig: map[string]any{"distance": "cosine"},
		MultiTenancyConfig: &models.MultiTenancyConfig{
			Enabled: true, AutoTenantCreation: true, AutoTenantActivation: true,
		},
		Properties: []*models.Property{
			property(fieldTool, "text", false, false),
			property(fieldServer, "text", false, false),
			property(fieldServerHash, "text", true, false),
			property(fieldText, "text", false, true),
			property(fieldSum, "text", false, false),
			property(fieldScope, "text", false, false),
			property(fieldDimensions, "int", true, false),
		},
	}
	if s.opts.Create != nil {
		s.opts.Create(c)
	}
	return c
}

// prepare sees to it that the class is there and as it should be. Several may
// do so at once.
func (s *Store) prepare(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	c, err := s.client.Schema().ClassGetter().WithClassName(s.opts.Class).Do(ctx)
	if statusOf(err) == 404 {
		made := s.client.Schema().ClassCreator().WithClass(s.class()).Do(ctx)
		// Another process may have been first.
		if c, err = s.client.Schema().ClassGetter().WithClassName(s.opts.Class).Do(ctx); statusOf(err) == 404 && made != nil {
			err = made
		}
	}
	if err != nil {
		return fmt.Errorf("class %q: %w", s.opts.Class, err)
	}
	if err := s.check(c); err != nil {
		return fmt.Errorf("class %q %w", s.opts.Class, err)
	}
	s.ready.Store(true)
	return nil
}

// check returns in what a class is not as it should be.
func (s *Store) check(c *models.Class) error {
	config, _ := c.VectorIndexConfig.(map[string]any)
	mt := c.MultiTenancyConfig
	switch {
	case mt == nil || !mt.Enabled || !mt.AutoTenantCreation:
		return errors.New("has no tenants, or does not make them by itself")
	case len(c.VectorConfig) > 0 || c.Vectorizer != "none":
		return errors.New("has not one vector without a name and without a vectorizer")
	case config["distance"] != "cosine":
		return fmt.Errorf("has the distance %v, not cosine", config["distance"])
	}
	have := make(map[string]*models.Property)
	for _, p := range c.Properties {
		have[p.Name] = p
	}
	for _, want := range s.class().Properties {
		p := have[want.Name]
		switch {
		case p == nil || strings.Join(p.DataType, " ") != strings.Join(want.DataType, " "):
			return fmt.Errorf("has no property %q of the type %s", want.Name, strings.Join(want.DataType, " "))
		case isTrue(want.IndexFilterable) && !isTrue(p.IndexFilterable):
			return fmt.Errorf("can't be filtered by %q", want.Name)
		case isTrue(want.IndexSearchable) && !isTrue(p.IndexSearchable):
			return fmt.Errorf("can't be searched for words in %q", want.Name)
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// statusOf returns the HTTP status that err tells of, or 0.
func statusOf(err error) int {
	var failed *fault.WeaviateClientError
	for errors.As(err, &failed) {
		if failed.IsUnexpectedStatusCode {
			return failed.StatusCode
		}
		err = failed.DerivedFromError // it does not unwrap
	}
	return 0
}

// A refusal is what the engine says about a request that it understood.
type refusal string

func (r refusal) Error() string { return string(r) }

// answered reports whether err is what the engine says, and not that it can't be
// reached.
func answered(err error) bool {
	var r refusal
	return errors.As(err, &r) || statusOf(err) != 0
}

// absent reports whether err comes from a class or a tenant that is not there.
func (s *Store) absent(ctx context.Context, err error) bool {
	if !answered(err) || ctx.Err() != nil {
		return false
	}
	// The client can ask whether a tenant is there, but not tell "no" from an
	// error.
	if strings.Contains(err.Error(), "tenant not found") {
		return true
	}
	_, err = s.client.Schema().ClassGetter().WithClassName(s.opts.Class).Do(ctx)
	if statusOf(err) == 404 {
		s.ready.Store(false)
		return true
	}
	return false
}
