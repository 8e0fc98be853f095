package tract

import (
	"context"
	"crypto/rand"
	"sync/atomic"

	"github.com/tract-vcs/tract/objects"
)

// operation is what the calls of one operation share.
type operation struct {
	group objects.Group
	begun atomic.Bool // one of the calls may have moved a ref
}

type operationKey struct{}

// AsOperation returns a context under which all calls are one [Operation]: what they do to
// refs is undone together. Without it each call is an operation.
func AsOperation(ctx context.Context) context.Context {
	return context.WithValue(ctx, operationKey{}, newOperation())
}

func newOperation() *operation {
	op := &operation{}
	rand.Read(op.group[:])
	return op
}

// operationOf is the operation that a context is of, or else a new one.
func operationOf(ctx context.Context) *operation {
	if op, ok := ctx.Value(operationKey{}).(*operation); ok {
		return op
	}
	return newOperation()
}

// inOperation returns a context that is of an operation, for a call that writes more than
// one batch.
func inOperation(ctx context.Context) context.Context {
	if _, ok := ctx.Value(operationKey{}).(*operation); ok {
		return ctx
	}
	return AsOperation(ctx)
}
