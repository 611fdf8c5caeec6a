package natsstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go/jetstream"
)

// A parts keeps documents that don't change. Each is stored in messages of at most partBytes.
// The first message begins with their number, in two bytes, and is written last.
type parts struct {
	of     *Store
	kv     jetstream.KeyValue
	stream jetstream.Stream // below kv
	prefix string           // of keys
}

// Parts returns the parts of states, for Options.StateParts. What is not put again is kept two
// hours longer than sessions are.
func (s *Store) Parts() store.Parts { return s.ofStates() }

// ofStates returns the parts of states, among them their openings.
func (s *Store) ofStates() *parts { return &parts{s, s.states, s.stateParts, "s."} }

func (p *parts) failed(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("natsstore: %s the part %.64q: %w", doing, key, unavailable(err))
}

func (p *parts) key(key string, i int) string { return fmt.Sprintf("%s%s.%d", p.prefix, key, i) }

// Put keeps a part or, if it is nil, removes the one with that key.
func (p *parts) Put(key string, part []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.of.opts.Timeout)
	defer cancel()
	return p.failed("putting", key, p.put(ctx, key, part))
}

func (p *parts) put(ctx context.Context, key string, part []byte) error {
	switch {
	case !store.IsKey(key):
		return errors.New("it is no key of a part")
	case part == nil:
		return p.stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+p.kv.Bucket()+"."+p.prefix+key+".*"))
	case len(part) > store.MaxDocument:
		return fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(part), store.MaxDocument)
	}
	packed := pack(part)
	size := min(partBytes, p.of.room()) - 2
	n, err := messages(len(packed), size)
	if err != nil {
		return err
	}
	for i := n - 1; i >= 0; i-- {
		value := packed[i*size : min((i+1)*size, len(packed))]
		if i == 0 {
			value = append(binary.BigEndian.AppendUint16(nil, uint16(n)), value...)
		}
		if _, err := p.kv.Put(ctx, p.key(key, i), value); err != nil {
			return err
		}
	}
	return nil
}

// PutOpening implements [openings.Keeper].
func (p *parts) PutOpening(ctx context.Context, key string, opening []byte) error {
	return p.of.retryAfterCut(ctx, func(ctx context.Context) error { return p.put(ctx, key, opening) })
}

// GetOpening implements [openings.Keeper].
func (p *parts) GetOpening(ctx context.Context, key string) (opening []byte, err error) {
	err = p.of.retryAfterCut(ctx, func(ctx context.Context) (err error) {
		opening, err = p.get(ctx, key)
		return err
	})
	return opening, err
}

// messages returns how many messages of at most size bytes a part of n bytes has. The first has
// room for no larger number.
func messages(n, size int) (int, error) {
	count := max((n+size-1)/size, 1)
	if count > math.MaxUint16 {
		return 0, fmt.Errorf("%w: %d bytes compressed, %d messages of %d: raise the server's max_payload", store.ErrTooLarge, n, count, size)
	}
	return count, nil
}

// Get returns the part with that key, or nil if there is none.
func (p *parts) Get(key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.of.opts.Timeout)
	defer cancel()
	part, err := p.get(ctx, key)
	return part, p.failed("getting", key, err)
}

func (p *parts) get(ctx context.Context, key string) ([]byte, error) {
	if !store.IsKey(key) {
		return nil, errors.New("it is no key of a part")
	}
	var packed []byte
	for i, n := 0, 1; i < n; i++ {
		e, err := p.kv.Get(ctx, p.key(key, i))
		if isMissing(err) {
			return nil, nil // if not the first, it is being removed
		}
		if err != nil {
			return nil, err
		}
		value := e.Value()
		if i == 0 {
			if len(value) < 2 {
				return nil, errors.New("it is not what was stored")
			}
			n, value = int(binary.BigEndian.Uint16(value)), value[2:]
		}
		if packed = append(packed, value...); len(packed) > p.of.maxPacked {
			return nil, errTooLong
		}
	}
	part, err := unpack(packed, store.MaxDocument)
	if part == nil && err == nil {
		part = []byte{}
	}
	return part, err
}
