// Package trust is what gateway and approve share: the file with what is known of tools,
// resources and prompts, and what is held back because it has changed.
package trust

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	history "github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/store"
)

// Command is the command by which a person approves what is held back.
const Command = "approve"

// Flags are the flags about definitions that change.
type Flags struct{ File, policy string }

// AddFlags adds the flags for f.
func (f *Flags) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.File, "trust", "", "keep in this `file` what is known of tools, resources and prompts, and hold back those that change until mcphybrid "+Command)
	flags.StringVar(&f.policy, "trust-policy", "", "with -trust: quarantine, which is the default, approve, to hold back new ones too, or warn, to log changes only")
}

// Options returns what the flags say.
func (f *Flags) Options(from servers.Sources) (Options, error) {
	o := Options{Policy: mcphybrid.TrustPolicy(f.policy), File: f.File}
	if o.File == "" {
		if f.policy != "" {
			return o, errors.New("-trust-policy needs -trust")
		}
		return o, nil
	}
	o.Policy = cmp.Or(o.Policy, mcphybrid.TrustQuarantine)
	switch o.Policy {
	case mcphybrid.TrustQuarantine, mcphybrid.TrustApprove, mcphybrid.TrustWarn:
	default:
		return o, fmt.Errorf("-trust-policy %q: must be quarantine, approve or warn", f.policy)
	}
	var err error
	if o.File, err = Linked(f.File); err == nil {
		err = files.CheckUnshared(o.File)
	}
	if err == nil && o.Policy != mcphybrid.TrustWarn { // else a Manager would start no server
		_, err = o.Store().Load()
	}
	if err != nil {
		return o, fmt.Errorf("-trust: %w", err)
	}
	o.Approve = ApproveLine(from, f.File)
	return o, nil
}

// Linked returns the file to which a path leads through links. To store would otherwise
// replace a link, and part those who share the file by different paths.
func Linked(path string) (string, error) {
	to, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return to, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a link to a file that is not there", path)
	}
	return path, nil
}

// Options say what becomes of tools whose definitions change.
type Options struct {
	Policy  mcphybrid.TrustPolicy
	File    string // with what is known of tools; "" for none
	Approve string // the command by which a person approves a change
}

// Store returns where what is known is kept, or nil for nowhere.
func (o Options) Store() store.Document {
	if o.File == "" {
		return nil
	}
	return NewFile(o.File)
}

// A File is a store of what is known. It refuses a file that others can write: who
// writes it can approve what they want. Of one that is damaged, it says what to do.
type File struct {
	store.Shared
	path string
}

// NewFile returns the store in a file.
func NewFile(path string) File { return File{store.File(path), path} }

// Load implements [store.Document].
func (f File) Load() ([]byte, error) {
	if err := files.CheckUnshared(f.path); err != nil {
		return nil, err
	}
	document, err := f.Shared.Load()
	if err != nil {
		return nil, err
	}
	return document, f.checkContent(document)
}

// Update implements [store.Shared].
func (f File) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return f.Shared.Update(ctx, func(document []byte) ([]byte, error) {
		if err := files.CheckUnshared(f.path); err != nil {
			return nil, err
		}
		if err := f.checkContent(document); err != nil {
			return nil, err
		}
		return change(document)
	})
}

func (f File) checkContent(document []byte) error {
	if err := history.Check(document); err != nil {
		return fmt.Errorf("%s can't be used (%w): restore it, or remove it, and what servers list next is trusted", f.path, err)
	}
	return nil
}

// Quarantined returns what is held back until somebody approves it.
func Quarantined(mgr *mcphybrid.Manager) (held []*mcphybrid.ChangedError) {
	for _, err := range mgr.Problems() {
		if changed, ok := err.(*mcphybrid.ChangedError); ok && changed.Quarantined {
			held = append(held, changed)
		}
	}
	return held
}

// Logger returns a logger that says, with each report of what is held back, how to approve
// it.
func (o Options) Logger(log *slog.Logger) *slog.Logger {
	if o.Approve == "" {
		return log
	}
	return slog.New(heldLog{log.Handler(), o.Approve})
}

type heldLog struct {
	slog.Handler
	approve string
}

func (h heldLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return heldLog{h.Handler.WithAttrs(attrs), h.approve}
}

func (h heldLog) WithGroup(name string) slog.Handler {
	return heldLog{h.Handler.WithGroup(name), h.approve}
}

// Handle implements [slog.Handler].
func (h heldLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasSuffix(r.Message, mcphybrid.ErrQuarantined.Error()) {
		r = r.Clone()
		r.AddAttrs(slog.String("approve", h.approve))
	}
	return h.Handler.Handle(ctx, r)
}

// ApproveLine returns the command that shows and approves what is held back.
func ApproveLine(from servers.Sources, file string) string {
	words := []string{filepath.Base(os.Args[0]), Command, "-config", from.Config, "-trust", file}
	if from.Dialect != "" {
		words = append(words, "-dialect", from.Dialect)
	}
	if from.Logins != "" {
		words = append(words, "-tokens", from.Logins)
	}
	for i, word := range words {
		words[i] = plain.Quoted(word)
	}
	return strings.Join(words, " ")
}
