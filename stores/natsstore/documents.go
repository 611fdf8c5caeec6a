package natsstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	partBytes = 256 << 10

	// maxParts is how many parts the largest document may have: as many as there are if each
	// message has the least room, and some more, since compressing may add a few bytes.
	maxParts = store.MaxDocument/(minPayload-maxHead) + 16
)

// A document is a [store.Watched].
type document struct {
	of   *Store
	name string
	key  string // the name as a part of keys
	err  error  // why the name is not valid, or nil
	own  *parts // beside the document
}

// Document returns the document with that name, which must be valid as the id of a
// session must be.
func (s *Store) Document(name string) store.Watched {
	d := &document{of: s, name: name}
	d.key, d.err = encoded(name)
	d.own = &parts{s, s.documents, s.parts, "i." + d.key + "."}
	return d
}

// A manifest says what a document consists of.
type manifest struct {
	Version int    `json:"version"`
	Parts   string `json:"parts"` // what the keys of the parts have behind the name
	Count   int    `json:"count"` // 0 if there is no document

	revision uint64 // 0 if nothing was stored yet
}

const version = 1

var (
	errReplaced = errors.New("another process has replaced the document")
	errNoPart   = errors.New("a part of the document is missing")
	errTooLong  = errors.New("it has more bytes than the store keeps")
	errEnded    = errors.New("the subscription has ended")
)

func (d *document) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("natsstore: %s the document %.256q: %w", doing, d.name, unavailable(err))
}

func (d *document) head() string { return "d." + d.key }
func (d *document) part(m manifest, i int) string {
	return fmt.Sprintf("p.%s.%s.%d", d.key, m.Parts, i)
}

// within returns ctx with the store's time limit.
func (d *document) within(ctx context.Context) (context.Context, func()) {
	return context.WithTimeout(ctx, d.of.opts.Timeout)
}

// Put implements [store.Watched].
func (d *document) Put(key string, part []byte) error {
	if d.err != nil {
		return d.failed("saving", d.err)
	}
	return d.own.Put(key, part)
}

// Get implements [store.Watched].
func (d *document) Get(key string) ([]byte, error) {
	if d.err != nil {
		return nil, d.failed("loading", d.err)
	}
	return d.own.Get(key)
}

// Load implements [store.Watched].
func (d *document) Load() ([]byte, error) {
	ctx, cancel := d.within(context.Background())
	defer cancel()
	data, _, err := d.load(ctx)
	return data, d.failed("loading", err)
}

// load returns the document and what it consists of.
func (d *document) load(ctx context.Context) ([]byte, manifest, error) {
	for missing := false; ; missing = true {
		m, err := d.manifest(ctx)
		var data []byte
		if err == nil && m.Count > 0 {
			data, err = d.read(ctx, m)
		}
		switch {
		case missing && err != nil && ctx.Err() != nil:
			return nil, m, errNoPart
		case !errors.Is(err, errNoPart):
			return data, m, err
		}
		// It was replaced since we read the manifest, or a server of the cluster that
		// lags behind has answered.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (d *document) manifest(ctx context.Context) (m manifest, err error) {
	if d.err != nil {
		return m, d.err
	}
	e, err := d.of.documents.Get(ctx, d.head())
	if isMissing(err) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	m, err = parseManifest(e.Value())
	m.revision = e.Revision()
	return m, err
}

func parseManifest(data []byte) (m manifest, err error) {
	err = json.Unmarshal(data, &m)
	switch {
	case err != nil:
		return m, err
	case m.Version != version:
		return m, fmt.Errorf("it has version %d, want %d", m.Version, version)
	case m.Count < 0 || m.Count > maxParts:
		return m, fmt.Errorf("it has %d parts", m.Count)
	}
	return m, nil
}

func (d *document) read(ctx context.Context, m manifest) ([]byte, error) {
	var packed []byte
	for i := range m.Count {
		e, err := d.of.documents.Get(ctx, d.part(m, i))
		if isMissing(err) {
			return nil, errNoPart
		}
		if err != nil {
			return nil, err
		}
		if packed = append(packed, e.Value()...); len(packed) > d.of.maxPacked {
			return nil, errTooLong
		}
	}
	data, err := unpack(packed, store.MaxDocument)
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// Save implements [store.Watched].
func (d *document) Save(data []byte) error {
	ctx, cancel := d.within(context.Background())
	defer cancel()
	if data == nil {
		data = []byte{}
	}
	for {
		m, err := d.manifest(ctx)
		if err == nil {
			err = d.replace(ctx, m, data)
		}
		if !errors.Is(err, errReplaced) {
			return d.failed("saving", err)
		}
	}
}

// Update implements [store.Watched].
func (d *document) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	for {
		old, m, err := d.load(ctx)
		if err != nil {
			return d.failed("loading", err)
		}
		data, err := change(old)
		if err != nil {
			return err
		}
		if (data == nil) == (old == nil) && bytes.Equal(data, old) {
			return nil
		}
		if err = d.replace(ctx, m, data); !errors.Is(err, errReplaced) {
			return d.failed("saving", err)
		}
	}
}

// replace makes data the document, unless it was replaced since m. nil means that there
// is none: the manifest stays, so that revisions only grow.
func (d *document) replace(ctx context.Context, m manifest, data []byte) error {
	if len(data) > store.MaxDocument {
		return fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(data), store.MaxDocument)
	}
	next := manifest{Version: version, Parts: fmt.Sprintf("%d.%s", m.revision, rand.Text())}
	if data != nil {
		packed := pack(data)
		size := min(partBytes, d.of.room())
		for next.Count == 0 || len(packed) > 0 {
			n := min(size, len(packed))
			if _, err := d.of.documents.Put(ctx, d.part(next, next.Count), packed[:n]); err != nil {
				return err
			}
			packed = packed[n:]
			next.Count++
		}
	}
	head, err := json.Marshal(next)
	if err != nil {
		return err
	}
	var revision uint64
	if m.revision == 0 {
		revision, err = d.of.documents.Create(ctx, d.head(), head)
	} else {
		revision, err = d.of.documents.Update(ctx, d.head(), head, m.revision)
	}
	if isStale(err) {
		return errReplaced
	}
	if err == nil {
		d.tidy(ctx, revision, next.Parts)
	}
	return err
}

// tidy removes the parts of all manifests that were to follow one before revision, but
// for those to keep: such a manifest was replaced, or can't be stored any more. What it
// does not get to, the next tidy removes.
func (d *document) tidy(ctx context.Context, revision uint64, keep string) {
	prefix := "$KV." + d.of.documents.Bucket() + ".p." + d.key + "."
	info, err := d.of.parts.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return
	}
	old := make(map[string]bool)
	for subject := range info.State.Subjects {
		parts := strings.TrimPrefix(subject, prefix)
		parts = parts[:max(strings.LastIndexByte(parts, '.'), 0)]
		after, _, _ := strings.Cut(parts, ".")
		if n, err := strconv.ParseUint(after, 10, 64); err == nil && n < revision && parts != keep {
			old[parts] = true
		}
	}
	for parts := range old {
		_ = d.of.parts.Purge(ctx, jetstream.WithPurgeSubject(prefix+parts+".*"))
	}
}

// Watch implements [store.Watched].
func (d *document) Watch(ctx context.Context, changed func()) error {
	if d.err != nil {
		return d.failed("watching", d.err)
	}
	connected := d.of.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer d.of.nc.RemoveStatusListener(connected)
	for {
		err := d.watch(ctx, connected, changed)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.of.nc.IsClosed():
			return d.failed("watching", nats.ErrConnectionClosed)
		case err == nil: // connected anew
			continue
		}
		select {
		case <-time.After(time.Second):
		case <-connected:
		case <-ctx.Done():
		}
	}
}

// watch calls changed until the connection is another one.
func (d *document) watch(ctx context.Context, connected <-chan nats.Status, changed func()) error {
	w, err := d.of.documents.Watch(ctx, d.head(), jetstream.MetaOnly())
	if err != nil {
		return err
	}
	defer w.Stop() // an error would say that the connection is gone
	for begun := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-connected:
			return nil
		case e, ok := <-w.Updates():
			if !ok {
				return errEnded
			}
			if begun = begun || e == nil; !begun {
				continue // the value that there is; nil follows
			}
			for len(w.Updates()) > 0 {
				<-w.Updates()
			}
			changed()
		}
	}
}
