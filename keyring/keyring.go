// Package keyring keeps the tokens of package mcphybrid's logins in the user's keyring:
// the Keychain of macOS, the Credential Manager of Windows, or a Secret Service, such as
// GNOME Keyring or KWallet.
//
//	tokens, err := keyring.New(nil)
//	…
//	mcphybrid.Options{TokenStore: tokens}
//
// Keyrings take only a few kilobytes for an item. A longer document is in several. They
// have no lock either, so each document has a file that is locked while it changes.
// The file is empty.
package keyring

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/locks"
	"github.com/zalando/go-keyring"
)

// Options configure a [Store]. The zero value works.
type Options struct {
	// Service is the name under which people see the items in their keyring. If
	// empty, "mcphybrid". It may have 100 bytes.
	Service string

	// Locks is the folder of the files that are locked. All processes that use the
	// same Service must have the same. If empty, mcphybrid/locks in
	// [os.UserConfigDir].
	Locks string
}

// A Store keeps tokens, as a store.Tokens, in the user's keyring. Several processes may share
// it. A keyring may ask the user before it opens. Update waits for that until its
// context ends.
type Store struct {
	service, locks string
	ring           ring
}

// A ring is a keyring.
type ring interface {
	Get(service, item string) (string, error)
	Set(service, item, secret string) error
	Delete(service, item string) error
}

// New returns a store. opts may be nil. It does not open the keyring.
func New(opts *Options) (*Store, error) {
	s := &Store{service: "mcphybrid", ring: system{}}
	if opts != nil {
		s.locks = opts.Locks
	}
	if opts != nil && opts.Service != "" {
		s.service = opts.Service
	}
	if len(s.service) > maxName {
		return nil, fmt.Errorf("keyring: Options.Service has %d bytes, more than the limit of %d", len(s.service), maxName)
	}
	if s.locks == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("keyring: Options.Locks is not set: %w", err)
		}
		s.locks = filepath.Join(folder, "mcphybrid", "locks")
	}
	return s, nil
}

// The limits of an item. Windows takes 2,560 bytes and 513 characters of a name, macOS
// 4,096 bytes of a command that has all names, and the secret in base64.
const (
	maxName  = 100
	maxPiece = 2000
)

// maxDocument is how many bytes a document may have: more than mcphybrid writes.
const maxDocument = 128 << 10

// Update implements store.Tokens.
func (s *Store) Update(ctx context.Context, key string, change func(document []byte) ([]byte, error)) error {
	k, err := s.open(ctx, key)
	if err != nil {
		return err
	}
	saving := false
	defer func() {
		if !saving {
			k.unlock()
		}
	}()
	changed, err := change(k.document)
	if err != nil || bytes.Equal(changed, k.document) {
		return err
	}
	if len(changed) > maxDocument {
		return fmt.Errorf("keyring: the document has %d bytes, more than the limit of %d", len(changed), maxDocument)
	}
	// What it has may be had only once: it is saved even if ctx ends.
	saving = true
	_, err = hostcode.Detached(ctx, "keyring", func() (struct{}, error) {
		defer k.unlock()
		return struct{}{}, k.save(changed)
	})
	return err
}

// A kept is a document in the keyring while it is locked.
//
// If it is short, the item has "=" and the document. Else the document is in pieces, and
// the item says in which of two sets, how many, and their hash, as "*a 3 0f3c…". A new
// document goes to the other set before the item is changed, so a crash leaves the old
// or the new one.
type kept struct {
	*Store
	item     string
	head     string // the item; "" if there is none
	document []byte
	unlock   func()
}

// open locks the document of a key and loads it. The keyring may hang: then nobody
// waits for it when ctx ends.
func (s *Store) open(ctx context.Context, key string) (*kept, error) {
	type opened struct {
		*kept
		err error
	}
	done := make(chan opened) // without room: either we receive, or the sender unlocks
	go func() {
		k, err := hostcode.Call("keyring", func() (*kept, error) { return s.load(ctx, key) })
		select {
		case done <- opened{k, err}:
		case <-ctx.Done():
			if err == nil {
				k.unlock()
			}
		}
	}()
	select {
	case o := <-done:
		return o.kept, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// load locks the document of a key and loads it. It leaves no lock behind if it fails,
// or if the keyring panics.
func (s *Store) load(ctx context.Context, key string) (k *kept, err error) {
	k = &kept{Store: s, item: itemOf(key)}
	if _, k.unlock, err = locks.InFolder(ctx, s.locks, s.service+"/"+key); err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	loaded := false
	defer func() {
		if !loaded {
			k.unlock()
		}
	}()
	err = k.load()
	loaded = err == nil
	return k, err
}

// itemOf returns the name of the item with the document of a key.
func itemOf(key string) string {
	if len(key) <= maxName {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// piece returns the name of a piece in a set.
func (k *kept) piece(set string, i int) string { return fmt.Sprintf("%s %s%d", k.item, set, i) }

// load reads the document. One that is not whole counts as none: somebody has deleted
// an item.
func (k *kept) load() (err error) {
	if k.head, err = k.get(k.item); err != nil || k.head == "" {
		return err
	}
	if document, ok := strings.CutPrefix(k.head, "="); ok {
		k.document = []byte(document)
		return nil
	}
	set, n, sum := k.pieces()
	var document []byte
	for i := range n {
		piece, err := k.get(k.piece(set, i))
		if err != nil {
			return err
		}
		document = append(document, piece...)
	}
	if n > 0 && sum == sumOf(document) {
		k.document = document
	}
	return nil
}

// pieces returns what the item says of the pieces: n is 0 if there are none.
func (k *kept) pieces() (set string, n int, sum string) {
	fields := strings.Fields(k.head)
	if len(fields) != 3 || fields[0] != "*a" && fields[0] != "*b" {
		return "", 0, ""
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil || n < 0 || n > maxDocument/maxPiece+1 {
		return "", 0, ""
	}
	return fields[0][1:], n, fields[2]
}

// save replaces the document.
func (k *kept) save(document []byte) error {
	old, _, _ := k.pieces()
	switch {
	case document == nil:
		if err := k.remove(k.item); err != nil {
			return err
		}
		return cmp.Or(k.clear("a", 0), k.clear("b", 0))
	case len(document) < maxPiece:
		if err := k.set(k.item, "="+string(document)); err != nil || old == "" {
			return err
		}
		return k.clear(old, 0)
	}
	set, n := "a", 0
	if old == "a" {
		set = "b"
	}
	for piece := range slices.Chunk(document, maxPiece) {
		if err := k.set(k.piece(set, n), string(piece)); err != nil {
			return err
		}
		n++
	}
	if err := k.set(k.item, fmt.Sprintf("*%s %d %s", set, n, sumOf(document))); err != nil {
		return err
	}
	err := k.clear(set, n) // what a crash left
	if old != "" {
		err = cmp.Or(err, k.clear(old, 0))
	}
	return err
}

// clear removes the pieces of a set from the nth on, the last ones first: so none is
// ever behind a gap.
func (k *kept) clear(set string, from int) error {
	n := from
	for ; n <= maxDocument/maxPiece+1; n++ {
		if piece, err := k.get(k.piece(set, n)); err != nil || piece == "" {
			break
		}
	}
	for n--; n >= from; n-- {
		if err := k.remove(k.piece(set, n)); err != nil {
			return err
		}
	}
	return nil
}

func sumOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

func (k *kept) get(item string) (string, error) {
	secret, err := k.ring.Get(k.service, item)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", nil
	}
	return secret, failed("reading", err)
}

func (k *kept) set(item, secret string) error {
	return failed("writing", k.ring.Set(k.service, item, secret))
}

func (k *kept) remove(item string) error {
	err := k.ring.Delete(k.service, item)
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return failed("deleting", err)
}

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keyring: %s: %w", doing, err)
}

// system is the keyring of the user.
type system struct{}

func (system) Get(service, item string) (string, error) { return keyring.Get(service, item) }
func (system) Set(service, item, secret string) error   { return keyring.Set(service, item, secret) }
func (system) Delete(service, item string) error        { return keyring.Delete(service, item) }
