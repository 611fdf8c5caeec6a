package weaviatestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-openapi/strfmt"
	"github.com/mcphybrid/mcphybrid"
	"github.com/weaviate/weaviate-go-client/v5/weaviate"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/filters"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/graphql"
	"github.com/weaviate/weaviate/entities/models"
)

// Options change what a [Store] does. The zero value works.
type Options struct {
	// Class is the class that all scopes are tenants of: a capital letter and
	// up to 254 of A-Z, a-z, 0-9 and "_". If empty, [DefaultClass].
	Class string

	// Create, if not nil, may change the class before it is made: replicas, the
	// kind of the vector index, how texts are cut into words. It must leave the
	// tenants, the distance, the vectorizer and the properties as they are.
	Create func(*models.Class)
}

// DefaultClass is where tools are if [Options] do not say otherwise.
const DefaultClass = "McphybridTools"

var className = regexp.MustCompile(`\A[A-Z][_0-9A-Za-z]{0,254}\z`)

// A Store is a [mcphybrid.VectorStore] in Weaviate. A request that fails is not
// tried again: who waits for the store knows how long to. A scope keeps its
// number of dimensions until Drop, even without any tools.
type Store struct {
	client *weaviate.Client
	opts   Options

	ready atomic.Bool // the class is as it should be
}

var _ mcphybrid.VectorStore = (*Store)(nil)

// New returns a Store that uses client, which remains the caller's. opts may be
// nil. It panics if the client is nil or the class has no name that Weaviate
// takes.
func New(client *weaviate.Client, opts *Options) *Store {
	if client == nil {
		panic("weaviatestore: the client is nil")
	}
	s := &Store{client: client}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Class = cmp.Or(s.opts.Class, DefaultClass)
	if !className.MatchString(s.opts.Class) {
		panic(fmt.Sprintf("weaviatestore: %q is no name of a class: must be a capital letter and up to 254 of A-Z, a-z, 0-9 and _", s.opts.Class))
	}
	return s
}

// What is sent at once.
const (
	maxObjects = 256
	maxNumbers = 256 << 10 // of all vectors, some 3 MB
	maxText    = 4 << 20   // bytes
	maxDeleted = 1000
)

// failed returns the error of what was done in a scope. An end of ctx is told as
// such; the client's errors do not unwrap.
func failed(ctx context.Context, scope, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("weaviatestore: scope %q: %s: %w", scope, doing, err)
}

// Upsert implements [mcphybrid.VectorStore].
func (s *Store) Upsert(ctx context.Context, scope string, tools []mcphybrid.StoredTool) error {
	last := make(map[string]int, len(tools)) // of tools with the same ID the last one counts
	for i := range tools {
		last[tools[i].ID] = i
	}
	dims := 0
	var objects []*models.Object
	for i := range tools {
		t := &tools[i]
		if t.Vector != nil {
			dims = cmp.Or(dims, len(t.Vector))
		}
		o, err := s.object(scope, t, dims)
		if err != nil {
			return fmt.Errorf("weaviatestore: scope %q: tool %q: %w", scope, t.ID, err)
		}
		if last[t.ID] == i {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return ctx.Err()
	}
	// Once more if somebody drops the class or the scope meanwhile.
	var err error
	for range 2 {
		if err = s.prepare(ctx); err != nil {
			break
		}
		if err = s.send(ctx, objects); !s.absent(ctx, err) {
			err = s.explain(ctx, TenantName(scope), dims, err)
			break
		}
	}
	return failed(ctx, scope, "storing", err)
}

// object returns what is stored of a tool, whose vector, if any, must have dims
// elements.
func (s *Store) object(scope string, t *mcphybrid.StoredTool, dims int) (*models.Object, error) {
	if !utf8.ValidString(t.ID + t.Sum + t.Server) {
		return nil, errors.New("its ID, Sum or Server is not UTF-8")
	}
	o := &models.Object{
		Class:  s.opts.Class,
		Tenant: TenantName(scope),
		ID:     strfmt.UUID(objectID(t.ID)),
		Properties: map[string]any{
			fieldTool:       t.ID,
			fieldServer:     t.Server,
			fieldServerHash: hash(t.Server),
			fieldText:       strings.ToValidUTF8(t.Text, "\uFFFD"),
			fieldSum:        t.Sum,
			fieldScope:      strings.ToValidUTF8(scope, "\uFFFD"),
			fieldDimensions: len(t.Vector),
		},
	}
	if t.Vector != nil {
		if len(t.Vector) != dims {
			return nil, fmt.Errorf("%w: %d, not the %d of the others", mcphybrid.ErrDimensions, len(t.Vector), dims)
		}
		unit, err := mcphybrid.UnitVector(t.Vector)
		if err != nil {
			return nil, fmt.Errorf("its vector: %w", err)
		}
		o.Vector = unit
	}
	return o, nil
}

// send stores objects, each in the place of the one with its id, in requests
// of bounded size.
func (s *Store) send(ctx context.Context, objects []*models.Object) error {
	for len(objects) > 0 {
		n, numbers, text := 0, 0, 0
		for n < len(objects) && n < maxObjects {
			numbers += len(objects[n].Vector)
			text += len(objects[n].Properties.(map[string]any)[fieldText].(string))
			if n > 0 && (numbers > maxNumbers || text > maxText) {
				break
			}
			n++
		}
		answers, err := s.client.Batch().ObjectsBatcher().WithObjects(objects[:n]...).Do(ctx)
		if err != nil {
			return err
		}
		if len(answers) != n {
			return fmt.Errorf("the engine answers for %d of %d tools", len(answers), n)
		}
		for i := range answers {
			if err := refused(&answers[i]); err != nil {
				return err
			}
		}
		objects = objects[n:]
	}
	return nil
}

// refused returns why the engine has not stored an object.
func refused(answer *models.ObjectsGetResponse) error {
	r := answer.Result
	switch {
	case r == nil:
		return errors.New("the engine does not say whether it has stored a tool")
	case r.Errors != nil && len(r.Errors.Error) > 0 && r.Errors.Error[0] != nil:
		return refusal(r.Errors.Error[0].Message)
	case r.Status == nil || *r.Status != models.ObjectsGetResponseAO2ResultStatusSUCCESS:
		return errors.New("the engine has not stored a tool")
	}
	return nil
}

// explain returns err or, if that is why the engine refused a vector of dims
// elements, that the scope has others. A tool that is there tells. Where none
// has a vector any more only the engine knows how long they were, and its
// message has to tell.
func (s *Store) explain(ctx context.Context, tenant string, dims int, err error) error {
	if dims == 0 || !answered(err) {
		return err
	}
	have := 0
	r, askErr := s.ask(ctx, map[string]*graphql.GetBuilder{"any": s.get(tenant, []string{fieldDimensions}).WithLimit(1).
		WithWhere(filters.Where().WithPath([]string{fieldDimensions}).WithOperator(filters.GreaterThan).WithValueInt(0))})
	if askErr == nil && len(r["any"]) > 0 {
		have = r["any"][0].Dimensions
	}
	switch {
	case askErr != nil || have == dims:
		return err
	case have > 0:
		return fmt.Errorf("%w: %d, not %d", mcphybrid.ErrDimensions, dims, have)
	case strings.Contains(err.Error(), "length"):
		return fmt.Errorf("%w: %w", mcphybrid.ErrDimensions, err)
	}
	return err
}

// Delete implements [mcphybrid.VectorStore].
func (s *Store) Delete(ctx context.Context, scope string, ids []string) error {
	for chunk := range slices.Chunk(ids, maxDeleted) {
		objects := make([]string, len(chunk))
		for i, id := range chunk {
			objects[i] = objectID(id)
		}
		r, err := s.client.Batch().ObjectsBatchDeleter().WithClassName(s.opts.Class).WithTenant(TenantName(scope)).
			WithWhere(filters.Where().WithPath([]string{"id"}).WithOperator(filters.ContainsAny).WithValueText(objects...)).Do(ctx)
		switch {
		case s.absent(ctx, err):
			return nil
		case err == nil && (r.Results == nil || r.Results.Failed > 0):
			err = errors.New("the engine has not deleted all of them")
		}
		if err != nil {
			return failed(ctx, scope, "deleting", err)
		}
	}
	return failed(ctx, scope, "deleting", ctx.Err())
}

// Drop implements [mcphybrid.VectorStore].
func (s *Store) Drop(ctx context.Context, scope string) error {
	err := s.client.Schema().TenantsDeleter().WithClassName(s.opts.Class).WithTenants(TenantName(scope)).Do(ctx)
	if s.absent(ctx, err) {
		return nil
	}
	return failed(ctx, scope, "dropping", err)
}
