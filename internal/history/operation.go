package history

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Operation is what the batches of one operation of the user share.
type Operation struct {
	group   objects.Group
	command string      // that the ref log names; empty: that of each batch
	begun   atomic.Bool // one of the batches may have moved a ref
}

type operationKey struct{}

// AsOperation returns a context under which all calls are one operation. The ref log names
// it by command; when that is empty, by what each call does.
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

// Command returns the command that the operation is named by; that of the batch when it has
// none.
func (o *Operation) Command(batch string) string { return cmp.Or(o.command, batch) }

// Note returns the note of the next batch of the operation, however often the batch is
// tried. command names what the batch does.
func (o *Operation) Note(at time.Time, author, command string) objects.Note {
	return objects.Note{Time: at, Author: author, Command: o.Command(command), Group: o.group, Continues: o.begun.Swap(true)}
}
