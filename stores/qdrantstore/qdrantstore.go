// Package qdrantstore keeps the vectors of package mcphybrid in Qdrant, so that all
// processes of a host share them and embed each text once:
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
// Each scope has its own collection; see [CollectionName]. The first Upsert creates it
// with the cosine distance and the dimensions of its vectors. A point is one record.
// Its id is derived from the record's ID, its single vector has no name, and its
// payload is
//
//	tool_name        the record's ID
//	origin           the record's Server, indexed for searches in some servers
//	plugin_id        "user_mcp" if the scope is "user:{id}", else the record's Server
//	description      the record's Description, if any
//	schema_json      the record's Schema, if any, as a text
//	text             the text that was embedded
//	sum              the record's Sum
//	embedding_model  Options.Model, if any
//	scope            "system", "user", or the name of another scope
//	user_id          the user's id, if the scope is "user:{id}"
//
// Only origin, tool_name and sum mean something to the store. A Manager puts up to
// 4,000 bytes of a tool's description, and its schema if that has no more than 64 KiB.
//
// Records without vectors are in a second collection, whose name ends in
// "_without_vectors". The store creates it only for a scope that has such records. The
// first collection can't hold them, because each of its points must have a vector, and
// the vectors' length may not be known yet.
//
// # Searches
//
// A search compares the query with every vector of the collection, so it is exact and
// equal records stand in the order of their IDs. Collections of tools are too small
// for a graph index to be worth its misses. A Qdrant server in strict mode must allow
// exact searches (search_allow_exact), and its max_query_limit must be greater than
// the Limit and Candidates of a query.
//
// The store searches by vector only; words find nothing. Qdrant's full-text match is a
// filter without scores, and mcphybrid ranks by words itself.
//
// # What is proven
//
// The tests run against a fake server that follows Qdrant's public documentation. They
// prove what the store sends and how it reads answers, not that Qdrant answers so.
// Before you rely on the store, run them against a real server with
// QDRANT_ADDR=host:port (and QDRANT_API_KEY).
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

// Options configures a [Store]. The zero value works.
type Options struct {
	// Collection returns the name of a scope's collection. Names must differ for
	// different scopes, also after "_without_vectors" is added. If nil, it is
	// [CollectionName].
	Collection func(scope string) string

	// Model is written to each point as embedding_model, for people who inspect the
	// collection. The store does not read it.
	Model string

	// Create, if not nil, may change the request that creates a collection:
	// replicas, shards, vectors on disk. It must not change the size and distance
	// of the vectors.
	Create func(*qdrant.CreateCollection)
}

// A Store is a [vector.Store] in Qdrant. It does not retry a failed request: the
// caller knows how long to wait. A collection keeps its dimensions until Drop, even
// if it has no points.
type Store struct {
	client *qdrant.Client
	opts   Options

	ready sync.Map // by name: collections that were checked
}

var _ vector.Store = (*Store)(nil)

// New returns a Store that uses client. The caller closes client. opts may be nil.
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
	fieldTool        = "tool_name"
	fieldServer      = "origin"
	fieldPlugin      = "plugin_id"
	fieldDescription = "description"
	fieldSchema      = "schema_json"
	fieldText        = "text"
	fieldSum         = "sum"
	fieldModel       = "embedding_model"
	fieldScope       = "scope"
	fieldUser        = "user_id"
)

const (
	maxPoints   = 256       // in one request
	maxBytes    = 3 << 20   // bytes of points in one request; gRPC servers accept 4 MiB by default
	scrollPage  = 1000      // points in one answer
	maxResults  = 100_000   // results of one request; Qdrant allocates memory for all of them
	maxResponse = 256 << 20 // bytes; gRPC's default would be 4 MiB
)

var callOptions = []grpc.CallOption{grpc.MaxCallRecvMsgSize(maxResponse)}

// failed returns the error of an operation in a scope. If ctx has ended, the error
// wraps that of ctx, which a gRPC status does not.
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
	last := make(map[string]int, len(tools)) // if an ID is repeated, the last record wins
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
	// Write a record to one collection before removing it from the other. If only
	// the first step succeeds, it is in both; the next Upsert repairs that.
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
	return failed(ctx, scope, "storing", ctx.Err())
}

// point returns the point of a record. The vector, if any, must have dims elements.
func (s *Store) point(scope string, t *vector.Record, dims int) (*qdrant.PointStruct, error) {
	if !utf8.ValidString(t.ID + t.Sum + t.Server) {
		return nil, fmt.Errorf("its ID, Sum or Server is not UTF-8")
	}
	v := []float32{1} // records without vectors all have this one
	if t.Vector != nil {
		if len(t.Vector) != dims {
			return nil, fmt.Errorf("%w: %d, not the %d of the others", vector.ErrDimensions, len(t.Vector), dims)
		}
		var err error
		if v, err = vector.Unit(t.Vector); err != nil {
			return nil, fmt.Errorf("its vector: %w", err)
		}
	}
	text := func(s string) *qdrant.Value { return qdrant.NewValueString(strings.ToValidUTF8(s, "\uFFFD")) }
	payload := map[string]*qdrant.Value{
		fieldTool: text(t.ID), fieldServer: text(t.Server), fieldPlugin: text(t.Server), fieldText: text(t.Text), fieldSum: text(t.Sum), fieldScope: text(scope),
	}
	if id, ok := userOf(scope); ok {
		payload[fieldScope], payload[fieldUser], payload[fieldPlugin] = text("user"), text(id), text("user_mcp")
	}
	for field, s := range map[string]string{fieldDescription: t.Description, fieldSchema: t.Schema, fieldModel: s.opts.Model} {
		if s != "" {
			payload[field] = text(s)
		}
	}
	return &qdrant.PointStruct{Id: qdrant.NewIDUUID(pointID(t.ID)), Vectors: qdrant.NewVectorsDense(v), Payload: payload}, nil
}

// put upserts points into a collection and creates it if need be. If another process
// drops it meanwhile, put tries once more.
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

// prepare makes sure that a collection exists with the right size and distance and an
// index of servers. Several processes may call it at once.
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

// send upserts points in requests of limited size.
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

// applied returns err, or an error if the change was not applied.
func applied(r *qdrant.PointsOperationResponse, err error) error {
	if err != nil {
		return err
	}
	switch st := r.GetResult().GetStatus(); st {
	case qdrant.UpdateStatus_Completed:
		return nil
	default: // it may still be applied later, which is too late
		return fmt.Errorf("the engine answers %v", st)
	}
}

// explain returns why the engine refused a vector of dims elements. It asks for the
// size of the collection, because the engine's messages may change.
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

// remove deletes the points of records. Missing points or collections are no error.
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
		// The answer is false if there was no collection.
		_, err := s.client.GetCollectionsClient().Delete(ctx, &qdrant.DeleteCollection{CollectionName: name})
		if err != nil && status.Code(err) != codes.NotFound {
			return failed(ctx, scope, "dropping", err)
		}
	}
	return nil
}
