package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tract-vcs/tract/objects"
)

// SQLSTATE codes, from the appendix "PostgreSQL Error Codes" of the manual.
const (
	codeUniqueViolation      = "23505"
	codeReadOnly             = "25006"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeInvalidStatementName = "26000"
	codePrivilege            = "42501"
	codeNoTable              = "42P01"
	codeNoDatabase           = "3D000"
	codeTooManyConnections   = "53300"
	codeLockNotAvailable     = "55P03"
	codeAdminShutdown        = "57P01"
	codeCrashShutdown        = "57P02"
	codeCannotConnectNow     = "57P03"
	codeIdleTimeout          = "57P05"
	codeDivisionByZero       = "22012" // of togetherSQL
)

func hasCode(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// isTransient reports whether the same call may succeed a moment later.
func isTransient(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, "08") || hasCode(err, codeSerializationFailure, codeDeadlock, codeInvalidStatementName,
			codeReadOnly, codeTooManyConnections, codeLockNotAvailable, codeAdminShutdown, codeCrashShutdown, codeCannotConnectNow, codeIdleTimeout)
	}
	return isConnectionLoss(err)
}

// isConnectionLoss reports whether the connection was lost or could not be made.
func isConnectionLoss(err error) bool {
	return errors.As(err, new(*pgconn.ConnectError)) || errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}

// isUndone reports whether the server says that the statement did not happen. After any
// other error the outcome is unknown.
func isUndone(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return !strings.HasPrefix(e.Code, "08") && !hasCode(err, codeAdminShutdown, codeCrashShutdown, codeIdleTimeout)
	}
	return errors.As(err, new(*pgconn.ConnectError)) || pgconn.SafeToRetry(err) || errors.Is(err, errNotSent) || errors.Is(err, objects.ErrClosed)
}

// retry calls f until it succeeds or fails for good, or until it has failed for too long.
// Between two calls no connection is held.
func (s *store) retry(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	return s.retryWhileTransient(ctx, func() error { return s.attempt(ctx, limit, f) })
}

// retryWhileTransient is retry for an f that calls attempt itself.
func (s *store) retryWhileTransient(ctx context.Context, f func() error) error {
	until := time.Now().Add(s.wait)
	for n := 0; ; n++ {
		err := f()
		if err == nil || !isTransient(err) {
			return s.explain(ctx, err)
		}
		if time.Now().After(until) {
			return fmt.Errorf("store %s: %w: %w", s.name, objects.ErrBusy, withoutURL(err))
		}
		if err := s.pause(ctx, n); err != nil {
			return err
		}
	}
}

// attempt calls f once, for a limited time, while the store is open.
func (s *store) attempt(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil && !s.closed.Load() {
		return errors.Join(errNotSent, err)
	}
	s.using.RLock()
	defer s.using.RUnlock()
	if s.closed.Load() {
		return objects.ErrClosed
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return context.Cause(limited)
	}
	return err
}

var errSlow = errors.New("the statement took too long")

// pause waits before attempt n+1.
func (s *store) pause(ctx context.Context, n int) error {
	limit := 2 * time.Millisecond << min(n, 8)
	select {
	case <-time.After(limit/2 + rand.N(limit)):
		return nil
	case <-s.closing:
		return objects.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain adds the store to an error of the server, and gives a context's own error otherwise.
func (s *store) explain(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, objects.ErrClosed):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case hasCode(err, codePrivilege):
		return fmt.Errorf("store %s: %w: %w", s.name, objects.ErrReadOnly, withoutURL(err))
	case errors.As(err, new(*pgconn.PgError)) || isConnectionLoss(err) || errors.Is(err, errSlow):
		return fmt.Errorf("store %s: %w", s.name, withoutURL(err))
	}
	return err
}

// withoutURL removes from an error of pgx what may repeat the URL.
func withoutURL(err error) error {
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return errors.New("a parameter of the URL is invalid")
	}
	if errors.As(err, new(*pgconn.ConnectError)) {
		return oneLine{err}
	}
	return err
}

// oneLine is an error of pgx that has a line for each address it has tried.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e oneLine) Unwrap() error { return e.error }
