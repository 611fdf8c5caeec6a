// Package qdrantstore keeps the tools of package mcphybrid in Qdrant, so that
// they are embedded once for all processes of a host and stay there:
//
//	client, err := qdrant.NewClient(&qdrant.Config{Host: "localhost", Port: 6334})
//	…
//	mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{
//		Embedder: embedder,
//		Store:    qdrantstore.New(client, nil),
//	}}
//
// # Collections
//
// Each scope has a collection of its own, see [CollectionName], made by the
// first Upsert with the cosine distance and as many dimensions as that has. A
// point is one tool; its id is made from the tool's ID, its one vector has no
// name, and its payload is
//
//	tool_name        the tool's ID
//	origin           the tool's Server, with an index for searches in some servers
//	text             what was embedded
//	sum              the tool's Sum
//	embedding_model  Options.Model, if any
//	scope            "system" or "user"
//	user_id          the scope, if it is not "system"
//
// Tools without vectors are kept in a second collection, with "_without_vectors"
// after the name, which is only made for a scope that has such tools: a point
// of the first must have a vector of its size, which a scope that begins with
// such tools doesn't know yet.
//
// # Searches
//
// Searches compare with every vector of the collection, exactly: the order of
// equal tools is always that of their IDs, and a collection of tools is far
// smaller than what makes a search by graph worth its misses. A Qdrant in strict
// mode must allow exact searches (search_allow_exact) and the Limit and the
// Candidates of a query, and one more (max_query_limit).
//
// The store finds by meaning only. Words find nothing: Qdrant's full-text match
// is a filter, which tells that a text has a word and not how well it fits, and
// the library ranks by words on its own, beside the store.
//
// # What is proven
//
// The tests run against a server written for them, after Qdrant's public
// documentation: they prove what the store asks and what it makes of the
// answers, not that Qdrant answers so. Run them with QDRANT_ADDR=host:port (and
// QDRANT_API_KEY) against a real one before relying on it.
package qdrantstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Options change what a [Store] does. The zero value works.
type Options struct {
	// Collection returns the name of a scope's collection, another one for
	// each scope, also with "_without_vectors" after it. If nil,
	// [CollectionName].
	Collection func(scope string) string

	// Model is written to each point as embedding_model, for those who look at
	// the collection: the store doesn't read it.
	Model string

	// Create, if not nil, may add to the request that makes a collection:
	// replicas, shards, vectors on disk. It must not change the vectors' size
	// and distance.
	Create func(*qdrant.CreateCollection)
}

// A Store is a [vector.Store] in Qdrant. A request that fails is not
// tried again: who waits for the store knows how long to. A collection keeps its
// number of dimensions until Drop, even without any points.
type Store struct {
	client *qdrant.Client
	opts   Options

	ready sync.Map // by name, collections that are as they should be
}

var _ vector.Store = (*Store)(nil)

// New returns a Store that uses client, which remains the caller's to close.
// opts may be nil.
func New(client *qdrant.Client, opts *Options) *Store {
	if client == nil {
		panic("qdrantstore: the client is nil")
	}
	s := &Store{client: client}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Collection == nil {
		s.opts.Collection = CollectionName
	}
	return s
}

// The fields of a payload.
const (
	fieldTool   = "tool_name"
	fieldServer = "origin"
	fieldText   = "text"
	fieldSum    = "sum"
	fieldModel  = "embedding_model"
	fieldScope  = "scope"
	fieldUser   = "user_id"
)

const (
	maxPoints   = 256       // in one request
	maxBytes    = 3 << 20   // of points in one request: gRPC's servers refuse 4 MiB where nothing else is set
	scrollPage  = 1000      // points of one answer
	maxResults  = 100_000   // that are asked for at once: Qdrant makes room for all of them
	maxResponse = 256 << 20 // bytes; gRPC's default would be 4 MiB
)

var callOptions = []grpc.CallOption{grpc.MaxCallRecvMsgSize(maxResponse)}

// failed returns the error of what was done in a scope. An end of ctx is told as
// such; a gRPC status does not say so.
func failed(ctx context.Context, scope, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("qdrantstore: scope %q: %s: %w", scope, doing, err)
}

// Upsert implements [vector.Store].
func (s *Store) Upsert(ctx context.Context, scope string, tools []vector.Record) error {
	last := make(map[string]int, len(tools)) // of tools with the same ID the last one counts
	for i := range tools {
		last[tools[i].ID] = i
	}
	dims := 0
	var full, bare []*qdrant.PointStruct
	var fullIDs, bareIDs []string
	for i := range tools {
		t := &tools[i]
		if t.Vector != nil {
			dims = cmp.Or(dims, len(t.Vector))
		}
		p, err := s.point(scope, t, dims)
		if err != nil {
			return fmt.Errorf("qdrantstore: scope %q: tool %q: %w", scope, t.ID, err)
		}
		switch {
		case last[t.ID] != i:
		case t.Vector != nil:
			full, fullIDs = append(full, p), append(fullIDs, t.ID)
		default:
			bare, bareIDs = append(bare, p), append(bareIDs, t.ID)
		}
	}
	// A tool is put into the one collection before it is taken from the other:
	// what ends between the two leaves it in both, which the next time mends.
	name := s.opts.Collection(scope)
	if len(full) > 0 {
		err := s.put(ctx, name, dims, full)
		if err == nil {
			err = s.remove(ctx, name+bareSuffix, fullIDs)
		}
		if err != nil {
			return failed(ctx, scope, "storing", err)
		}
	}
	if len(bare) > 0 {
		err := s.put(ctx, name+bareSuffix, 1, bare)
		if err == nil {
			err = s.remove(ctx, name, bareIDs)
		}
		if err != nil {
			return failed(ctx, scope, "storing tools without vectors", err)
		}
	}
	return ctx.Err()
}

// point returns what is stored of a tool, whose vector, if any, must have dims
// elements.
func (s *Store) point(scope string, t *vector.Record, dims int) (*qdrant.PointStruct, error) {
	if !utf8.ValidString(t.ID + t.Sum + t.Server) {
		return nil, fmt.Errorf("its ID, Sum or Server is not UTF-8")
	}
	v := []float32{1} // in the collection of tools without vectors all are the same
	if t.Vector != nil {
		if len(t.Vector) != dims {
			return nil, fmt.Errorf("%w: %d, not the %d of the others", vector.ErrDimensions, len(t.Vector), dims)
		}
		var err error
		if v, err = vector.Unit(t.Vector); err != nil {
			return nil, fmt.Errorf("its vector: %w", err)
		}
	}
	payload := map[string]*qdrant.Value{
		fieldTool:   qdrant.NewValueString(t.ID),
		fieldServer: qdrant.NewValueString(t.Server),
		fieldText:   qdrant.NewValueString(strings.ToValidUTF8(t.Text, "\uFFFD")),
		fieldSum:    qdrant.NewValueString(t.Sum),
		fieldScope:  qdrant.NewValueString(systemScope),
	}
	if scope != systemScope {
		payload[fieldScope] = qdrant.NewValueString("user")
		payload[fieldUser] = qdrant.NewValueString(strings.ToValidUTF8(scope, "\uFFFD"))
	}
	if s.opts.Model != "" {
		payload[fieldModel] = qdrant.NewValueString(s.opts.Model)
	}
	return &qdrant.PointStruct{Id: qdrant.NewIDUUID(pointID(t.ID)), Vectors: qdrant.NewVectorsDense(v), Payload: payload}, nil
}

// put upserts points into a collection, which is made if it isn't there; once
// more if somebody drops it meanwhile.
func (s *Store) put(ctx context.Context, name string, dims int, points []*qdrant.PointStruct) (err error) {
	for range 2 {
		if err = s.prepare(ctx, name, dims); err == nil {
			err = s.send(ctx, name, dims, points)
		}
		if status.Code(err) != codes.NotFound {
			break
		}
	}
	return err
}

// prepare sees to it that a collection is there, has the size and the distance
// it should have, and an index of servers. Several may do so at once.
func (s *Store) prepare(ctx context.Context, name string, dims int) error {
	if _, ok := s.ready.Load(name); ok {
		return nil
	}
	info, err := s.info(ctx, name)
	if status.Code(err) == codes.NotFound {
		request := &qdrant.CreateCollection{
			CollectionName: name,
			VectorsConfig:  qdrant.NewVectorsConfig(&qdrant.VectorParams{Size: uint64(dims), Distance: qdrant.Distance_Cosine}),
		}
		if s.opts.Create != nil {
			s.opts.Create(request)
		}
		_, err = s.client.GetCollectionsClient().Create(ctx, request)
		if err != nil && status.Code(err) != codes.AlreadyExists { // another process was first
			return fmt.Errorf("making collection %q: %w", name, err)
		}
		info, err = s.info(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("looking at collection %q: %w", name, err)
	}
	params := info.GetConfig().GetParams().GetVectorsConfig().GetParams()
	switch {
	case params == nil:
		return fmt.Errorf("collection %q has not one vector without a name", name)
	case params.GetDistance() != qdrant.Distance_Cosine:
		return fmt.Errorf("collection %q has the distance %v, not cosine", name, params.GetDistance())
	case params.GetSize() != uint64(dims):
		return fmt.Errorf("%w: %d, not the %d of collection %q", vector.ErrDimensions, dims, params.GetSize(), name)
	}
	if info.GetPayloadSchema()[fieldServer] == nil {
		r, err := s.client.GetPointsClient().CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{
			CollectionName: name, Wait: qdrant.PtrOf(true), FieldName: fieldServer, FieldType: qdrant.FieldType_FieldTypeKeyword.Enum(),
		})
		if err = applied(r, err); err != nil {
			return fmt.Errorf("making the index of collection %q: %w", name, err)
		}
	}
	s.ready.Store(name, true)
	return nil
}

func (s *Store) info(ctx context.Context, name string) (*qdrant.CollectionInfo, error) {
	r, err := s.client.GetCollectionsClient().Get(ctx, &qdrant.GetCollectionInfoRequest{CollectionName: name})
	return r.GetResult(), err
}

// send upserts points in requests of bounded size.
func (s *Store) send(ctx context.Context, name string, dims int, points []*qdrant.PointStruct) error {
	for len(points) > 0 {
		n, bytes := 0, 0
		for n < len(points) && n < maxPoints {
			bytes += proto.Size(points[n])
			if n > 0 && bytes > maxBytes {
				break
			}
			n++
		}
		r, err := s.client.GetPointsClient().Upsert(ctx, &qdrant.UpsertPoints{
			CollectionName: name, Wait: qdrant.PtrOf(true), Points: points[:n],
		})
		if err = applied(r, err); err != nil {
			return s.explain(ctx, name, dims, err)
		}
		points = points[n:]
	}
	return nil
}

// applied returns err or that a change was not made.
func applied(r *qdrant.PointsOperationResponse, err error) error {
	if err != nil {
		return err
	}
	switch st := r.GetResult().GetStatus(); st {
	case qdrant.UpdateStatus_Completed:
		return nil
	default: // it may still be made: what is not sure to be seen is not done
		return fmt.Errorf("the engine answers %v", st)
	}
}

// explain returns why the engine refused a vector of dims elements. What its
// message says may change; the size of the collection tells.
func (s *Store) explain(ctx context.Context, name string, dims int, err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		s.ready.Delete(name)
	case codes.InvalidArgument:
		info, infoErr := s.info(ctx, name)
		params := info.GetConfig().GetParams().GetVectorsConfig().GetParams()
		if infoErr == nil && params != nil && params.GetSize() != uint64(dims) {
			return fmt.Errorf("%w: %d, not the %d of collection %q", vector.ErrDimensions, dims, params.GetSize(), name)
		}
	}
	return err
}

// Delete implements [vector.Store].
func (s *Store) Delete(ctx context.Context, scope string, ids []string) error {
	name := s.opts.Collection(scope)
	err := s.remove(ctx, name, ids)
	if err == nil {
		err = s.remove(ctx, name+bareSuffix, ids)
	}
	return failed(ctx, scope, "deleting", err)
}

// remove deletes the points of tools. That they or the collection are not there
// is no error.
func (s *Store) remove(ctx context.Context, name string, ids []string) error {
	for chunk := range slices.Chunk(ids, 4*maxPoints) {
		points := make([]*qdrant.PointId, len(chunk))
		for i, id := range chunk {
			points[i] = qdrant.NewIDUUID(pointID(id))
		}
		r, err := s.client.GetPointsClient().Delete(ctx, &qdrant.DeletePoints{
			CollectionName: name, Wait: qdrant.PtrOf(true), Points: qdrant.NewPointsSelectorIDs(points),
		})
		if status.Code(err) == codes.NotFound {
			s.ready.Delete(name)
			return nil
		}
		if err = applied(r, err); err != nil {
			return err
		}
	}
	return nil
}

// Drop implements [vector.Store].
func (s *Store) Drop(ctx context.Context, scope string) error {
	name := s.opts.Collection(scope)
	for _, name := range []string{name, name + bareSuffix} {
		s.ready.Delete(name)
		// The answer is false if there was nothing to delete.
		_, err := s.client.GetCollectionsClient().Delete(ctx, &qdrant.DeleteCollection{CollectionName: name})
		if err != nil && status.Code(err) != codes.NotFound {
			return failed(ctx, scope, "dropping", err)
		}
	}
	return nil
}
