package history

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Operation identifies one operation of the user, which may write several batches: their log
// entries have the same group.
type Operation struct {
	group   objects.Group
	command string      // the name of the operation in the ref log; empty: each batch has its own
	begun   atomic.Bool // one of the batches may have moved a ref
}

type operationKey struct{}

// AsOperation returns a context under which all calls are one operation. command is its name in
// the ref log; when it is empty, the log has the name of each call.
func AsOperation(ctx context.Context, command string) context.Context {
	return context.WithValue(ctx, operationKey{}, newOperation(command))
}

// InOperation returns ctx when it is part of an operation, and otherwise AsOperation: for a
// call that writes several batches.
func InOperation(ctx context.Context, command string) context.Context {
	if _, ok := ctx.Value(operationKey{}).(*Operation); ok {
		return ctx
	}
	return AsOperation(ctx, command)
}

// OperationOf returns the operation that a context is part of, or a new one.
func OperationOf(ctx context.Context) *Operation {
	if op, ok := ctx.Value(operationKey{}).(*Operation); ok {
		return op
	}
	return newOperation("")
}

func newOperation(command string) *Operation {
	op := &Operation{command: command}
	rand.Read(op.group[:])
	return op
}

// Command returns the name of the operation; when it has none, that of the batch.
func (o *Operation) Command(batch string) string { return cmp.Or(o.command, batch) }

// Note returns the note of the next batch of the operation. Call it once for each batch, not for
// each attempt to write the batch. command is the name of the batch.
func (o *Operation) Note(at time.Time, author, command string) objects.Note {
	return objects.Note{Time: at, Author: author, Command: o.Command(command), Group: o.group, Continues: o.begun.Swap(true)}
}
