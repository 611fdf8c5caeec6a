package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mcphybrid/mcphybrid/store"
)

// unavailable returns err, as [store.ErrUnavailable] if the database could not be reached or
// did not answer in time.
func unavailable(err error) error {
	said, refused, line := new(pgconn.PgError), new(pgconn.ConnectError), net.Error(nil)
	switch {
	case errors.As(err, &said):
		if !isAway(said.Code) {
			return err
		}
	case errors.As(err, &refused), errors.As(err, &line), errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), pgconn.SafeToRetry(err):
	default:
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// isAway reports whether an error code says that the database takes no queries for now: a lost
// connection, too many of them, a database that starts or stops, or one that is read-only since
// another took its place.
//
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func isAway(code string) bool {
	switch code {
	case "53300", "57P01", "57P02", "57P03", "57P05", "25006":
		return true
	}
	return strings.HasPrefix(code, "08")
}
