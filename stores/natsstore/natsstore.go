// Package natsstore keeps in NATS JetStream what the replicas of a host share: sessions
// and documents, as the package store describes them.
//
//	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
//	engine, err := natsstore.Open(ctx, nc, &natsstore.Options{Replicas: 3})
//	trust := engine.Document("trust")
//	mgr := mcphybrid.NewManager(&mcphybrid.Options{
//		TrustStore: trust, Cache: engine.Document("cache"), StateParts: engine.Parts(),
//	})
//	go trust.Watch(ctx, func() { mgr.Refresh() })
//	state, revision, err := engine.Sessions().Get(ctx, conversation)
//
// # Layout
//
// There are four key-value buckets: <Bucket>_sessions, <Bucket>_documents, <Bucket>_parts for
// what states have in common, and <Bucket>_leases, whose values expire after LeaseTime. Keys are ids in base64 without padding. A value of more than 1 KiB is compressed by gzip, if that
// makes it smaller.
//
// A session is one value, so it must fit into one message: the max_payload of the server,
// 1 MiB by default and 8 KiB at least. What a conversation began with does not count: it is most of a state, and the
// same in all that begin alike, so it is stored once, as a part of states. It is put again each hour, and
// so outlives the sessions that have it. Of the rest, JSON takes a quarter of its size. A document is
// a small JSON object under the key d.<name>, which names the parts that it consists of,
// under p.<name>.<revision>.<random>.<number>. They are written before the object, and
// removed after the next one, so a reader sees one version or the other. Parts that don't
// change, under i.<name>.<key>.<number> and s.<key>.<number>, are whole when number 0 is there.
//
// Parts are not in an object store of JetStream, and the streams don't compress. A part of 50 KB takes 2 messages and 9 KB of
// a connection each way here; in an object store, 6 to put and 7 to get, and 50 KB. A state of 3 KB takes 0.8 KB of the
// connection, of the replication and of the disk compressed by gzip here. The stream's compression leaves the
// 3 KB to the connection and the replication, and takes 1.1 KB of the disk (BenchmarkObjectStore and BenchmarkCompression, 2026-11-29).
//
// # Limits
//
// With Replicas above 1, a read may be answered by a server that lags behind. A Put of
// what was made of it fails with ErrConflict, so nothing is lost. With one server, a write
// is safe from a crash of the machine as far as the server syncs its files: see sync_interval
// in its configuration.
package natsstore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lease"
	"github.com/mcphybrid/mcphybrid/internal/openings"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configure a [Store]. The zero value is the default.
type Options struct {
	// Bucket begins the names of the buckets. It may have letters, digits, - and _. If
	// empty, it is "mcphybrid".
	Bucket string

	// Expiry is how long a session is kept after it was put last. If 0, it is
	// [DefaultExpiry]. If negative, sessions are kept until they are deleted, and a few
	// bytes of each after that.
	Expiry time.Duration

	// Replicas is how many servers of a cluster keep each value, from 1 to 5. If 0, it
	// stays what it is, and is 1 for buckets that Open makes.
	Replicas int

	// Timeout is how long loading or saving a document may take. If 0, it is
	// [DefaultTimeout]. It must not be negative.
	Timeout time.Duration

	// LeaseTime is how long a lease is kept whose holder died or can't reach the servers. If
	// processes have different ones, the longest applies to all, and stays until the bucket is
	// deleted. If 0, it is [DefaultLeaseTime]. It must not be below a second.
	LeaseTime time.Duration
}

// The defaults of [Options].
const (
	DefaultBucket  = "mcphybrid"
	DefaultExpiry  = 30 * 24 * time.Hour
	DefaultTimeout = 10 * time.Second

	DefaultLeaseTime = lease.DefaultTime
)

// A Store keeps sessions and documents. It needs no Close. It has no goroutine, but one for each lease that
// could not be given back, until that succeeds, the lease has expired or the connection is closed.
type Store struct {
	nc        *nats.Conn
	opts      Options
	sessions  jetstream.KeyValue
	documents jetstream.KeyValue
	leases    jetstream.KeyValue
	parts     jetstream.Stream // the stream below documents

	states     jetstream.KeyValue // parts of states
	stateParts jetstream.Stream   // the stream below states

	openings  *openings.Openings
	waiting   lease.Queues
	maxPacked int
}

var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Open makes the buckets if need be, and adapts them to the options. Several processes
// may do so at once. opts may be nil. nc stays the caller's; close it after the last use
// of the Store.
func Open(ctx context.Context, nc *nats.Conn, opts *Options) (*Store, error) {
	s := &Store{nc: nc, maxPacked: maxPacked}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	o := &s.opts
	if o.Bucket == "" {
		o.Bucket = DefaultBucket
	}
	if o.Expiry == 0 {
		o.Expiry = DefaultExpiry
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.LeaseTime == 0 {
		o.LeaseTime = DefaultLeaseTime
	}
	switch {
	case !validBucket.MatchString(o.Bucket):
		return fmt.Errorf("Options.Bucket %q may have letters, digits, - and _ only", o.Bucket)
	case o.Replicas < 0 || o.Replicas > 5:
		return fmt.Errorf("Options.Replicas is %d, not from 0 to 5", o.Replicas)
	case o.Timeout < 0:
		return fmt.Errorf("Options.Timeout is %v, below 0", o.Timeout)
	}
	if err := lease.Check(o.LeaseTime); err != nil {
		return fmt.Errorf("Options.%w", err)
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return err
	}
	if s.sessions, err = s.bucket(ctx, js, o.Bucket+"_sessions", max(o.Expiry, 0)); err != nil {
		return err
	}
	if most := s.nc.MaxPayload(); most < minPayload { // known now: it was connected
		return fmt.Errorf("max_payload of the server is %d, less than %d", most, minPayload)
	}
	if s.documents, err = s.bucket(ctx, js, o.Bucket+"_documents", 0); err != nil {
		return err
	}
	if s.parts, err = js.Stream(ctx, "KV_"+s.documents.Bucket()); err != nil {
		return err
	}
	keep := o.Expiry + 2*time.Hour // a state refers to what was put at most an hour before it
	if o.Expiry < 0 {
		keep = 0
	}
	if s.states, err = s.bucket(ctx, js, o.Bucket+"_parts", keep); err != nil {
		return err
	}
	if s.stateParts, err = js.Stream(ctx, "KV_"+s.states.Bucket()); err != nil {
		return err
	}
	s.openings = openings.New(s.ofStates())
	name := o.Bucket + "_leases"
	keep, err = s.leaseExpiry(ctx, js, name)
	if err != nil {
		return err
	}
	s.leases, err = s.bucket(ctx, js, name, keep)
	return err
}

// leaseExpiry returns when leases expire: not before a holder thinks that they do, which may
// have been told a longer time.
func (s *Store) leaseExpiry(ctx context.Context, js jetstream.JetStream, name string) (time.Duration, error) {
	kv, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return s.opts.LeaseTime, nil
	}
	if err != nil {
		return 0, fmt.Errorf("bucket %s: %w", name, err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: %w", name, err)
	}
	return max(s.opts.LeaseTime, status.TTL()), nil
}

// bucket returns a bucket whose values expire. It changes one that is there only if it
// has to: who may use buckets may not always change them.
func (s *Store) bucket(ctx context.Context, js jetstream.JetStream, name string, expiry time.Duration) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, name)
	want := jetstream.KeyValueConfig{Bucket: name, Replicas: s.opts.Replicas, TTL: expiry}
	if err == nil {
		status, failed := kv.Status(ctx)
		if failed != nil {
			return nil, fmt.Errorf("bucket %s: %w", name, failed)
		}
		have := status.Config()
		if have.TTL == expiry && (want.Replicas == 0 || have.Replicas == want.Replicas) {
			return kv, nil
		}
		have.TTL = expiry
		if want.Replicas != 0 {
			have.Replicas = want.Replicas
		}
		want = have
	} else if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	if kv, err = js.CreateOrUpdateKeyValue(ctx, want); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	return kv, nil
}

// maxHead is what a message may have beside its value: the subject and headers.
const maxHead = 4 << 10

// minPayload is the least max_payload of a server, so that a message has as much of a value
// as beside it.
const minPayload = 2 * maxHead

// room is how many bytes a value may have.
func (s *Store) room() int {
	return max(int(s.nc.MaxPayload())-maxHead, minPayload-maxHead) // it may be less after a restart; Put fails then
}

// encoded returns an id as a part of a key.
func encoded(id string) (string, error) {
	if err := store.CheckID(id); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString([]byte(id)), nil
}

// isMissing reports whether err says that there is no value.
func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted)
}

// isStale reports whether err says that a key has another revision.
func isStale(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}
