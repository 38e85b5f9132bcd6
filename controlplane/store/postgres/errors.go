package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/felixlog/felix/controlplane/store"
)

// The codes of Postgres that the store tells apart.
const (
	codeForeignKey    = "23503"
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
)

// unavailable are the codes and classes of codes that say that the database
// does not serve now: connections, resources, an operator or a timeout ended
// it, a standby refuses writes.
var unavailable = []string{"08", "53", "57", "58", "25006", "25P03", "55P03"}

// refused tells the errors that callers decide on from the rest.
func refused(err error) bool {
	var missing *store.NotFoundError
	var conflict *store.ConflictError
	return errors.As(err, &missing) || errors.As(err, &conflict)
}

// violates says whether err breaks the constraint of that code, and its name.
func violates(err error, code string) (constraint string, ok bool) {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == code {
		return e.ConstraintName, true
	}
	return "", false
}

// again says whether a transaction failed because of another, and certainly did
// nothing.
func again(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == codeSerialization || e.Code == codeDeadlock)
}

// broken says whether the connection is at fault, so that another may do.
func broken(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P")
	}
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network)
}

// silent says whether the database did not answer, or not in time.
func silent(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		for _, prefix := range unavailable {
			if strings.HasPrefix(e.Code, prefix) {
				return true
			}
		}
		return again(err)
	}
	return broken(err) || pgconn.Timeout(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, pgx.ErrTxClosed)
}

// fault is err as a caller of the store gets it.
func (s *Store) fault(err error) error {
	switch {
	case err == nil || refused(err):
		return err
	case errors.Is(err, store.ErrClosed) || errors.Is(err, puddle.ErrClosedPool) || s.closed.Load():
		return store.ErrClosed
	case silent(err):
		return &store.UnavailableError{Err: s.secrets.clean(err)}
	}
	return s.secrets.clean(err)
}

// A scrubber takes the passwords of a connection string out of errors. The
// driver does not put them there; this is the second lock.
type scrubber []string

func newScrubber(connection string) scrubber {
	var found scrubber
	add := func(secret string) {
		if secret != "" {
			found = append(found, secret, url.QueryEscape(secret), url.PathEscape(secret))
		}
	}
	if config, err := pgconn.ParseConfig(connection); err == nil {
		add(config.Password)
	}
	if u, err := url.Parse(connection); err == nil {
		secret, _ := u.User.Password()
		add(secret)
		for _, key := range secretKeys {
			add(u.Query().Get(key))
		}
	}
	return found
}

// clean is err, with its words replaced where they hold a secret.
func (s scrubber) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
