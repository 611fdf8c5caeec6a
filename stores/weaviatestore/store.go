package weaviatestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/vector"
)

// Options say where Weaviate is and what a [Store] does there. URL is required.
type Options struct {
	// URL is where Weaviate's REST API is, without /v1, such as
	// http://localhost:8080 or https://weaviate.example.com.
	URL string

	// APIKey is sent as a bearer token, if there is one. It is in no error.
	APIKey string

	// Client sends the requests. Redirects are not followed, whatever its
	// CheckRedirect says. If nil, one that gives each request a minute.
	Client *http.Client

	// Class is the class that all scopes are tenants of: a capital letter and
	// up to 254 of A-Z, a-z, 0-9 and "_". If empty, [DefaultClass].
	Class string

	// Create, if not nil, may change the class before it is made, as the JSON
	// that /v1/schema takes: "replicationConfig", "vectorIndexType", the
	// "tokenization" of a property. The "properties" are a []map[string]any. It
	// must leave the tenants, the distance, the vectorizer and the types and
	// indexes of the properties as they are.
	Create func(class map[string]any)
}

// DefaultClass is where tools are if [Options] do not say otherwise.
const DefaultClass = "McphybridTools"

var className = regexp.MustCompile(`\A[A-Z][_0-9A-Za-z]{0,254}\z`)

// defaultTimeout bounds a request if [Options] have no Client.
const defaultTimeout = time.Minute

// A Store is a [vector.Store] in Weaviate. A request that fails is not
// tried again: who waits for the store knows how long to. Only if the server has
// closed an idle connection does net/http try another one. A scope keeps its
// number of dimensions until Drop, even without any tools.
type Store struct {
	opts   Options // fixed at creation
	url    string  // without a slash at the end
	client http.Client
	hidden *strings.Replacer // takes the API key out of texts

	ready atomic.Bool // the class is as it should be
}

var _ vector.Store = (*Store)(nil)

// New returns a Store. It asks Weaviate for nothing. It is an error if the URL
// is none of http or https with a host, or has a user, a query or a fragment;
// if the API key is no header's value; or if Weaviate would not take the
// class's name.
func New(opts Options) (*Store, error) {
	u, err := url.Parse(opts.URL) // its error would show what is secret in it
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("weaviatestore: the URL must be http:// or https:// and a host, without a user, a query or a fragment")
	}
	if strings.ContainsFunc(opts.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("weaviatestore: the API key has a space or a character that is not ASCII")
	}
	opts.Class = cmp.Or(opts.Class, DefaultClass)
	if !className.MatchString(opts.Class) {
		return nil, fmt.Errorf("weaviatestore: %q is no name of a class: must be a capital letter and up to 254 of A-Z, a-z, 0-9 and _", opts.Class)
	}
	s := &Store{opts: opts, url: strings.TrimRight(u.String(), "/"), client: http.Client{Timeout: defaultTimeout}, hidden: hiding(opts.APIKey)}
	if opts.Client != nil {
		s.client = *opts.Client
	}
	// A redirect could take tools and words to another server.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// What is sent at once.
const (
	maxObjects = 256
	maxNumbers = 256 << 10 // of all vectors, some 3 MB
	maxText    = 4 << 20   // bytes
	maxDeleted = 1000
)

// failed returns the error of what was done in a scope. If ctx has ended, that
// is the error.
func failed(ctx context.Context, scope, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("weaviatestore: scope %q: %s: %w", scope, doing, err)
}

// Upsert implements [vector.Store].
func (s *Store) Upsert(ctx context.Context, scope string, tools []vector.Record) error {
	last := make(map[string]int, len(tools)) // of tools with the same ID the last one counts
	for i := range tools {
		last[tools[i].ID] = i
	}
	dims := 0
	var objects []*object
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

// An object is what is stored of a tool.
type object struct {
	Class      string         `json:"class"`
	Tenant     string         `json:"tenant"`
	ID         string         `json:"id"`
	Vector     []float32      `json:"vector,omitempty"`
	Properties map[string]any `json:"properties"`
}

// object returns what is stored of a tool, whose vector, if any, must have dims
// elements.
func (s *Store) object(scope string, t *vector.Record, dims int) (*object, error) {
	if !utf8.ValidString(t.ID + t.Sum + t.Server) {
		return nil, errors.New("its ID, Sum or Server is not UTF-8")
	}
	o := &object{
		Class:  s.opts.Class,
		Tenant: TenantName(scope),
		ID:     objectID(t.ID),
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
			return nil, fmt.Errorf("%w: %d, not the %d of the others", vector.ErrDimensions, len(t.Vector), dims)
		}
		unit, err := vector.Unit(t.Vector)
		if err != nil {
			return nil, fmt.Errorf("its vector: %w", err)
		}
		o.Vector = unit
	}
	return o, nil
}

// send stores objects, each in the place of the one with its id, in requests
// of bounded size.
func (s *Store) send(ctx context.Context, objects []*object) error {
	for len(objects) > 0 {
		n, numbers, text := 0, 0, 0
		for n < len(objects) && n < maxObjects {
			numbers += len(objects[n].Vector)
			text += len(objects[n].Properties[fieldText].(string))
			if n > 0 && (numbers > maxNumbers || text > maxText) {
				break
			}
			n++
		}
		in := map[string]any{"objects": objects[:n]}
		err := s.call(ctx, http.MethodPost, "/v1/batch/objects", in, func(reply []byte) error { return stored(reply, n) })
		if err != nil {
			return err
		}
		objects = objects[n:]
	}
	return nil
}

// stored returns why the engine has not stored all of n objects, or nil.
func stored(reply []byte, n int) error {
	var answers []struct {
		Result struct {
			Status string   `json:"status"`
			Errors *reasons `json:"errors"`
		} `json:"result"`
	}
	if err := json.Unmarshal(reply, &answers); err != nil {
		return fmt.Errorf("an answer of another shape: %w", err)
	}
	if len(answers) != n {
		return fmt.Errorf("the engine answers for %d of %d tools", len(answers), n)
	}
	for i := range answers {
		r := &answers[i].Result
		switch {
		case r.Errors != nil && len(r.Errors.Error) > 0:
			return &refusal{message: r.Errors.first()}
		case r.Status != "SUCCESS":
			return errors.New("the engine does not say that it has stored a tool")
		}
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
	q := s.query(tenant, fieldDimensions, 1, where(fieldDimensions, "GreaterThan", "valueInt", 0))
	r, askErr := s.ask(ctx, map[string]*query{"any": q})
	if askErr == nil && len(r["any"]) > 0 {
		have = r["any"][0].Dimensions
	}
	switch {
	case askErr != nil || have == dims:
		return err
	case have > 0:
		return fmt.Errorf("%w: %d, not %d", vector.ErrDimensions, dims, have)
	case strings.Contains(messageOf(err), "length"):
		return fmt.Errorf("%w: %w", vector.ErrDimensions, err)
	}
	return err
}

// Delete implements [vector.Store].
func (s *Store) Delete(ctx context.Context, scope string, ids []string) error {
	for chunk := range slices.Chunk(ids, maxDeleted) {
		objects := make([]string, len(chunk))
		for i, id := range chunk {
			objects[i] = objectID(id)
		}
		in := map[string]any{"match": map[string]any{
			"class": s.opts.Class,
			"where": map[string]any{"path": []string{"id"}, "operator": "ContainsAny", "valueTextArray": objects},
		}}
		err := s.call(ctx, http.MethodDelete, "/v1/batch/objects?tenant="+TenantName(scope), in, deleted)
		if s.absent(ctx, err) {
			return nil
		}
		if err != nil {
			return failed(ctx, scope, "deleting", err)
		}
	}
	return failed(ctx, scope, "deleting", ctx.Err())
}

// deleted returns an error unless the engine says that all objects are gone.
func deleted(reply []byte) error {
	var answer struct {
		Results *struct {
			Failed int64 `json:"failed"`
		} `json:"results"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return fmt.Errorf("an answer of another shape: %w", err)
	}
	if answer.Results == nil || answer.Results.Failed != 0 {
		return errors.New("the engine has not deleted all of them")
	}
	return nil
}

// Drop implements [vector.Store].
func (s *Store) Drop(ctx context.Context, scope string) error {
	err := s.call(ctx, http.MethodDelete, "/v1/schema/"+s.opts.Class+"/tenants", []string{TenantName(scope)}, nil)
	if s.absent(ctx, err) {
		return nil
	}
	return failed(ctx, scope, "dropping", err)
}
