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

// Options configures a [Store]. URL is required.
type Options struct {
	// URL is the address of Weaviate's REST API without /v1, such as
	// http://localhost:8080 or https://weaviate.example.com.
	URL string

	// APIKey is sent as a bearer token, if it is not empty. Errors don't contain it.
	APIKey string

	// Client sends the requests. The store never follows redirects, even if
	// CheckRedirect allows them. If nil, it is a client with a timeout of a minute.
	Client *http.Client

	// Class is the class whose tenants are the scopes: a capital letter and up to
	// 254 of A-Z, a-z, 0-9 and "_". If empty, it is [DefaultClass].
	Class string

	// Create, if not nil, may change the definition of the class before the store
	// creates it. The map is the JSON object that /v1/schema accepts:
	// "replicationConfig", "vectorIndexType", the "tokenization" of a property. The
	// "properties" are a []map[string]any. It must not change the tenants, the
	// distance, the vectorizer, or the types and indexes of the properties.
	Create func(class map[string]any)
}

// DefaultClass is the default of [Options].Class.
const DefaultClass = "McphybridTools"

var className = regexp.MustCompile(`\A[A-Z][_0-9A-Za-z]{0,254}\z`)

// defaultTimeout bounds a request if [Options].Client is nil.
const defaultTimeout = time.Minute

// A Store is a [vector.Store] in Weaviate. It does not retry a failed request: the
// caller knows how long to wait. Only net/http retries, if the server has just closed an
// idle connection. A scope keeps its dimensions until Drop, even if it has no records.
type Store struct {
	opts   Options // fixed at creation
	url    string  // without a slash at the end
	client http.Client
	hidden *strings.Replacer // removes the API key from texts

	ready atomic.Bool // the class was checked
}

var _ vector.Store = (*Store)(nil)

// New returns a Store without contacting Weaviate. It is an error if the URL is not
// http or https with a host, or has a user, a query or a fragment; if the API key can't
// be sent in a header; or if Weaviate would refuse the class's name.
func New(opts Options) (*Store, error) {
	u, err := url.Parse(opts.URL) // its error would repeat a secret in the URL
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
	// A redirect could send records and words to another server.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// Limits of one request.
const (
	maxObjects = 256
	maxNumbers = 256 << 10 // elements of all vectors, about 3 MB
	maxText    = 4 << 20   // bytes of all properties
	maxDeleted = 1000
)

// failed returns the error of an operation in a scope. If ctx has ended, that is the
// error.
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
	last := make(map[string]int, len(tools)) // if an ID is repeated, the last record wins
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
		return failed(ctx, scope, "storing", ctx.Err())
	}
	// Try once more if another process drops the class or the scope meanwhile.
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

// An object is the stored form of a record.
type object struct {
	Class      string         `json:"class"`
	Tenant     string         `json:"tenant"`
	ID         string         `json:"id"`
	Vector     []float32      `json:"vector,omitempty"`
	Properties map[string]any `json:"properties"`
}

// object returns the stored form of a record. The vector, if any, must have dims
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

			fieldDescription: strings.ToValidUTF8(t.Description, "\uFFFD"),
			fieldSchema:      strings.ToValidUTF8(t.Schema, "\uFFFD"),
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

// send stores objects in requests of limited size and replaces those with the same id.
func (s *Store) send(ctx context.Context, objects []*object) error {
	for len(objects) > 0 {
		n, numbers, text := 0, 0, 0
		for n < len(objects) && n < maxObjects {
			numbers += len(objects[n].Vector)
			for _, value := range objects[n].Properties {
				s, _ := value.(string)
				text += len(s)
			}
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

// stored returns an error unless the engine stored all n objects.
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

// explain returns a better error if the engine refused a vector because the scope's
// vectors do not have dims elements. A stored record shows their length. If none has a
// vector any more, only the engine's message tells.
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

// deleted returns an error unless the engine deleted all objects.
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
