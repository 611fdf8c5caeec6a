package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mcphybrid/mcphybrid"
)

// trustFlags are the flags about definitions that change.
type trustFlags struct{ file, policy string }

func (f *trustFlags) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.file, "trust", "", "keep in this `file` what is known of tools, resources and prompts, and hold back those that change until gateway "+approveCommand)
	flags.StringVar(&f.policy, "trust-policy", "", "with -trust: quarantine, which is the default, approve, to hold back new ones too, or warn, to log changes only")
}

// options returns what the flags say.
func (f *trustFlags) options(from sources) (trustOptions, error) {
	o := trustOptions{policy: mcphybrid.TrustPolicy(f.policy), file: f.file}
	if o.file == "" {
		if f.policy != "" {
			return o, errors.New("-trust-policy needs -trust")
		}
		return o, nil
	}
	o.policy = cmp.Or(o.policy, mcphybrid.TrustQuarantine)
	switch o.policy {
	case mcphybrid.TrustQuarantine, mcphybrid.TrustApprove, mcphybrid.TrustWarn:
	default:
		return o, fmt.Errorf("-trust-policy %q: must be quarantine, approve or warn", f.policy)
	}
	if err := checkUnshared(f.file); err != nil {
		return o, fmt.Errorf("-trust: %w", err)
	}
	o.approve = approveLine(from, f.file)
	return o, nil
}

// trustOptions say what becomes of tools whose definitions change.
type trustOptions struct {
	policy  mcphybrid.TrustPolicy
	file    string // with what is known of tools; "" for none
	approve string // the command by which a person approves a change
}

func (o trustOptions) store() mcphybrid.Store {
	if o.file == "" {
		return nil
	}
	return mcphybrid.FileStore(o.file)
}

// heldBack returns what is held back until somebody approves it.
func heldBack(mgr *mcphybrid.Manager) (held []*mcphybrid.ChangedError) {
	for _, err := range mgr.Problems() {
		if changed, ok := err.(*mcphybrid.ChangedError); ok && changed.Held {
			held = append(held, changed)
		}
	}
	return held
}

// logger returns a logger that says, with each report of what is held back, how to approve
// it.
func (o trustOptions) logger(log *slog.Logger) *slog.Logger {
	if o.approve == "" {
		return log
	}
	return slog.New(heldLog{log.Handler(), o.approve})
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
