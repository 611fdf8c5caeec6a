package qdrantstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A fakeEngine answers as Qdrant does by its documentation and its published
// source, but only the requests that the store makes. It refuses a request with
// any field that is not listed in understood. Where the documentation leaves
// something open, it does what is worst for the store: equal points come in
// another order each time, a batch that fails is partly done, a point that
// equals a threshold may or may not reach it, a batch has no point twice, and
// fields in filters must be indexed.
type fakeEngine struct {
	apiKey string // fixed before the first request
	older  bool   // it sends vectors in the field that is deprecated by now; likewise

	mu          sync.Mutex
	collections map[string]*fakeCollection
	requests    map[string]int                                   // by method, as Points/Upsert
	largest     int                                              // bytes of a request
	before      func(method string, request proto.Message) error // may answer instead
}

// The engine's services. Some have methods with the same name.
type (
	fakeHealth struct {
		qdrant.UnimplementedQdrantServer
	}
	fakeCollections struct {
		qdrant.UnimplementedCollectionsServer
		*fakeEngine
	}
	fakePoints struct {
		qdrant.UnimplementedPointsServer
		*fakeEngine
	}
)

type fakeCollection struct {
	params  *qdrant.VectorParams
	points  map[string]*fakePoint // by id, in the usual form
	indexed map[string]bool
}

type fakePoint struct {
	vector  []float32 // of length 1
	payload map[string]*qdrant.Value
}

// understood has the fields that requests may have, by message.
var understood = map[string]string{
	"qdrant.HealthCheckRequest":         "",
	"qdrant.GetCollectionInfoRequest":   "collection_name",
	"qdrant.CreateCollection":           "collection_name vectors_config",
	"qdrant.VectorsConfig":              "params",
	"qdrant.VectorParams":               "size distance",
	"qdrant.DeleteCollection":           "collection_name",
	"qdrant.CreateFieldIndexCollection": "collection_name wait field_name field_type",
	"qdrant.UpsertPoints":               "collection_name wait points",
	"qdrant.PointStruct":                "id payload vectors",
	"qdrant.PointId":                    "uuid",
	"qdrant.Value":                      "string_value",
	"qdrant.Vectors":                    "vector",
	"qdrant.Vector":                     "dense",
	"qdrant.DenseVector":                "data",
	"qdrant.DeletePoints":               "collection_name wait points",
	"qdrant.PointsSelector":             "points",
	"qdrant.PointsIdsList":              "ids",
	"qdrant.ScrollPoints":               "collection_name offset limit with_payload",
	"qdrant.WithPayloadSelector":        "include",
	"qdrant.PayloadIncludeSelector":     "fields",
	"qdrant.GetPoints":                  "collection_name ids with_payload with_vectors",
	"qdrant.WithVectorsSelector":        "enable",
	"qdrant.QueryPoints":                "collection_name query filter params score_threshold limit with_payload",
	"qdrant.Query":                      "nearest",
	"qdrant.VectorInput":                "dense",
	"qdrant.SearchParams":               "exact",
	"qdrant.Filter":                     "must",
	"qdrant.Condition":                  "field",
	"qdrant.FieldCondition":             "key match",
	"qdrant.Match":                      "keywords",
	"qdrant.RepeatedStrings":            "strings",
}

// check returns an error if a message has anything that is not understood.
func check(m protoreflect.Message) (err error) {
	name := string(m.Descriptor().FullName())
	fields, ok := understood[name]
	if !ok || len(m.GetUnknown()) > 0 {
		return status.Errorf(codes.Unimplemented, "the fake does not understand %s", name)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !slices.Contains(strings.Fields(fields), string(f.Name())) {
			err = status.Errorf(codes.Unimplemented, "the fake does not understand %s.%s", name, f.Name())
			return false
		}
		switch {
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { err = check(v.Message()); return err == nil })
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = check(v.List().Get(i).Message())
			}
		default:
			err = check(v.Message())
		}
		return err == nil
	})
	return err
}

// newFake starts an engine on loopback.
func newFake(t testing.TB) (*fakeEngine, string) {
	f := &fakeEngine{collections: make(map[string]*fakeCollection), requests: make(map[string]int)}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		method := strings.TrimPrefix(info.FullMethod, "/qdrant.")
		message := req.(proto.Message)
		f.mu.Lock()
		f.requests[method]++
		f.largest = max(f.largest, proto.Size(message))
		before := f.before
		f.mu.Unlock()
		if key := metadata.ValueFromIncomingContext(ctx, "api-key"); f.apiKey != "" && !slices.Equal(key, []string{f.apiKey}) {
			return nil, status.Error(codes.Unauthenticated, "Invalid API key or JWT")
		}
		if before != nil {
			if err := before(method, message); err != nil {
				return nil, err
			}
		}
		if err := check(message.ProtoReflect()); err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return next(ctx, req)
	}))
	qdrant.RegisterQdrantServer(server, fakeHealth{})
	qdrant.RegisterCollectionsServer(server, fakeCollections{fakeEngine: f})
	qdrant.RegisterPointsServer(server, fakePoints{fakeEngine: f})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return f, l.Addr().String()
}

// asked returns how often each method was called since the last call of asked.
func (f *fakeEngine) asked() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.requests
	f.requests = make(map[string]int)
	return m
}

func (f *fakeEngine) setBefore(before func(method string, request proto.Message) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *fakeEngine) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for name := range f.collections {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func (f *fakeEngine) collection(name string) (*fakeCollection, error) {
	if c, ok := f.collections[name]; ok {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "Not found: Collection `%s` doesn't exist!", name)
}

func (fakeHealth) HealthCheck(context.Context, *qdrant.HealthCheckRequest) (*qdrant.HealthCheckReply, error) {
	return &qdrant.HealthCheckReply{Title: "fake", Version: "1.17.0"}, nil
}

func (f fakeCollections) Get(_ context.Context, r *qdrant.GetCollectionInfoRequest) (*qdrant.GetCollectionInfoResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	schema := make(map[string]*qdrant.PayloadSchemaInfo)
	for field := range c.indexed {
		schema[field] = &qdrant.PayloadSchemaInfo{DataType: qdrant.PayloadSchemaType_Keyword}
	}
	config := qdrant.NewVectorsConfig(c.params)
	if c.params == nil { // only the test that sets this has named vectors
		config = qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{"text": {Size: 2, Distance: qdrant.Distance_Cosine}})
	}
	return &qdrant.GetCollectionInfoResponse{Result: &qdrant.CollectionInfo{
		Status:        qdrant.CollectionStatus_Green,
		Config:        &qdrant.CollectionConfig{Params: &qdrant.CollectionParams{VectorsConfig: config}},
		PayloadSchema: schema,
	}}, nil
}

func (f fakeCollections) Create(_ context.Context, r *qdrant.CreateCollection) (*qdrant.CollectionOperationResponse, error) {
	name, params := r.GetCollectionName(), r.GetVectorsConfig().GetParams()
	switch {
	case name == "" || len(name) > 255 || strings.ContainsAny(name, "<>:\"/\\|?*\x00\x1f"):
		return nil, invalid("Validation error in body: [collection_name: %q]", name)
	case params.GetSize() < 1 || params.GetSize() > 65536:
		return nil, invalid("Validation error in body: [size: %d]", params.GetSize())
	case params.GetDistance() == qdrant.Distance_UnknownDistance:
		return nil, invalid("Bad value of distance field!")
	case f.collections[name] != nil:
		return nil, status.Errorf(codes.AlreadyExists, "Wrong input: Collection `%s` already exists!", name)
	}
	f.collections[name] = &fakeCollection{params: params, points: make(map[string]*fakePoint), indexed: make(map[string]bool)}
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}

func (f fakeCollections) Delete(_ context.Context, r *qdrant.DeleteCollection) (*qdrant.CollectionOperationResponse, error) {
	_, ok := f.collections[r.GetCollectionName()]
	delete(f.collections, r.GetCollectionName())
	return &qdrant.CollectionOperationResponse{Result: ok}, nil
}

// done returns the answer to a completed change.
func done(wait bool) (*qdrant.PointsOperationResponse, error) {
	if !wait {
		return nil, status.Error(codes.Unimplemented, "the fake does not understand changes that are not waited for")
	}
	return &qdrant.PointsOperationResponse{Result: &qdrant.UpdateResult{Status: qdrant.UpdateStatus_Completed}}, nil
}

func (f fakePoints) CreateFieldIndex(_ context.Context, r *qdrant.CreateFieldIndexCollection) (*qdrant.PointsOperationResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if r.GetFieldType() != qdrant.FieldType_FieldTypeKeyword || r.GetFieldName() == "" {
		return nil, invalid("the fake has only indexes of keywords")
	}
	c.indexed[r.GetFieldName()] = true
	return done(r.GetWait())
}

// pointKey returns the usual form of a point's id, which must be a UUID.
func pointKey(id *qdrant.PointId) (string, error) {
	key := strings.ToLower(id.GetUuid())
	if b, err := hex.DecodeString(strings.ReplaceAll(key, "-", "")); err != nil || len(b) != 16 || len(key) != 36 {
		return "", invalid("Unable to parse UUID: %q", id.GetUuid())
	}
	return key, nil
}

// fits returns the vector scaled to length 1, or an error if it is not of the
// collection's size.
func (c *fakeCollection) fits(v []float32) ([]float32, error) {
	if uint64(len(v)) != c.params.GetSize() {
		return nil, invalid("Wrong input: Vector dimension error: expected dim: %d, got %d", c.params.GetSize(), len(v))
	}
	var sum float32
	for _, x := range v {
		sum += x * x
	}
	u := slices.Clone(v)
	for i := range u {
		u[i] /= float32(math.Sqrt(float64(sum)))
	}
	return u, nil
}

func (f fakePoints) Upsert(_ context.Context, r *qdrant.UpsertPoints) (*qdrant.PointsOperationResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if len(r.GetPoints()) == 0 {
		return nil, invalid("Bad request: Empty update request")
	}
	seen := make(map[string]bool)
	for _, p := range r.GetPoints() {
		key, err := pointKey(p.GetId())
		if err != nil {
			return nil, err
		}
		vector, err := c.fits(p.GetVectors().GetVector().GetDense().GetData())
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, invalid("the fake does not know which of two points with id %s counts", key)
		}
		seen[key] = true
		c.points[key] = &fakePoint{vector, p.GetPayload()}
	}
	return done(r.GetWait())
}

func (f fakePoints) Delete(_ context.Context, r *qdrant.DeletePoints) (*qdrant.PointsOperationResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	for _, id := range r.GetPoints().GetPoints().GetIds() {
		key, err := pointKey(id)
		if err != nil {
			return nil, err
		}
		delete(c.points, key)
	}
	return done(r.GetWait())
}

// included returns the requested fields of a payload.
func included(payload map[string]*qdrant.Value, with *qdrant.WithPayloadSelector) map[string]*qdrant.Value {
	some := make(map[string]*qdrant.Value)
	for _, field := range with.GetInclude().GetFields() {
		if v, ok := payload[field]; ok {
			some[field] = v
		}
	}
	return some
}

func (f fakePoints) Scroll(_ context.Context, r *qdrant.ScrollPoints) (*qdrant.ScrollResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	from := ""
	if r.Offset != nil {
		if from, err = pointKey(r.GetOffset()); err != nil {
			return nil, err
		}
	}
	limit := 10
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	if limit < 1 {
		return nil, invalid("Validation error in body: [limit: value %d invalid, must be 1 or larger]", limit)
	}
	var keys []string
	for key := range c.points {
		if key >= from {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	answer := new(qdrant.ScrollResponse)
	if len(keys) > limit {
		answer.NextPageOffset = qdrant.NewIDUUID(keys[limit])
		keys = keys[:limit]
	}
	for _, key := range keys {
		answer.Result = append(answer.Result, &qdrant.RetrievedPoint{
			Id: qdrant.NewIDUUID(key), Payload: included(c.points[key].payload, r.GetWithPayload()),
		})
	}
	return answer, nil
}

func (f fakePoints) Get(_ context.Context, r *qdrant.GetPoints) (*qdrant.GetResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	answer := new(qdrant.GetResponse)
	for _, id := range r.GetIds() {
		key, err := pointKey(id)
		if err != nil {
			return nil, err
		}
		p, ok := c.points[key]
		if !ok {
			continue
		}
		point := &qdrant.RetrievedPoint{Id: qdrant.NewIDUUID(key), Payload: included(p.payload, r.GetWithPayload())}
		if r.GetWithVectors().GetEnable() {
			output := &qdrant.VectorOutput{Vector: &qdrant.VectorOutput_Dense{Dense: &qdrant.DenseVector{Data: slices.Clone(p.vector)}}}
			if f.older {
				output = &qdrant.VectorOutput{Data: slices.Clone(p.vector)}
			}
			point.Vectors = &qdrant.VectorsOutput{VectorsOptions: &qdrant.VectorsOutput_Vector{Vector: output}}
		}
		answer.Result = append(answer.Result, point)
	}
	rand.Shuffle(len(answer.Result), func(i, j int) { answer.Result[i], answer.Result[j] = answer.Result[j], answer.Result[i] })
	return answer, nil
}

// matches reports whether a payload passes a filter.
func (c *fakeCollection) matches(payload map[string]*qdrant.Value, filter *qdrant.Filter) (bool, error) {
	for _, condition := range filter.GetMust() {
		field := condition.GetField()
		if !c.indexed[field.GetKey()] {
			return false, invalid("Bad request: Index required but not found for %q of one of the following types: [keyword]", field.GetKey())
		}
		if v, ok := payload[field.GetKey()]; !ok || !slices.Contains(field.GetMatch().GetKeywords().GetStrings(), v.GetStringValue()) {
			return false, nil
		}
	}
	return true, nil
}

func (f fakePoints) Query(_ context.Context, r *qdrant.QueryPoints) (*qdrant.QueryResponse, error) {
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	limit := uint64(10)
	if r.Limit != nil {
		limit = r.GetLimit()
	}
	if limit < 1 {
		return nil, invalid("Validation error in body: [limit: value %d invalid, must be 1 or larger]", limit)
	}
	if !r.GetParams().GetExact() {
		return nil, status.Error(codes.Unimplemented, "the fake searches exactly only")
	}
	query, err := c.fits(r.GetQuery().GetNearest().GetDense().GetData())
	if err != nil {
		return nil, err
	}
	if _, err := c.matches(nil, r.GetFilter()); err != nil {
		return nil, err
	}
	var found []*qdrant.ScoredPoint
	inclusive := rand.IntN(2) == 0
	for key, p := range c.points {
		var score float32
		for i, x := range query {
			score += x * p.vector[i]
		}
		if ok, _ := c.matches(p.payload, r.GetFilter()); !ok {
			continue
		}
		if r.ScoreThreshold != nil && (score < r.GetScoreThreshold() || score == r.GetScoreThreshold() && !inclusive) {
			continue
		}
		found = append(found, &qdrant.ScoredPoint{Id: qdrant.NewIDUUID(key), Score: score, Payload: included(p.payload, r.GetWithPayload())})
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	slices.SortStableFunc(found, func(a, b *qdrant.ScoredPoint) int { return cmp.Compare(b.GetScore(), a.GetScore()) })
	return &qdrant.QueryResponse{Result: found[:min(limit, uint64(len(found)))]}, nil
}
