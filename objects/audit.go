package objects

import (
	"context"
	"time"
)

// Damage is one thing that is wrong in a store.
type Damage struct {
	ID       ID     // the object that is lost; zero: it is about something else
	Where    string // such as: page 12, pack 3, the journal, ref "refs/heads/main"
	What     string // what is wrong there
	Means    string // what that is to somebody who uses the store
	Harmless bool   // no word and no name is lost by it
}

// Audit takes what an [Auditor] finds. Its functions are called one at a time, a
// function may be nil, and an error from one ends the audit. What they are given is
// theirs to keep, all but objects.
type Audit struct {
	// Deep looks in places to which nothing leads any more as well, when there is
	// damage: for who wants to save what can be saved.
	Deep bool

	// Begin is called first of all, with a guess of how many objects there are; and
	// again, when so much was written meanwhile that what came so far is void.
	Begin func(about int) error

	// Objects takes objects that are what their ids say, some that lie together at a
	// time, and each perhaps more than once. They are good until it returns.
	Objects func(list []Object) error

	Erased   func(Tombstone) error // a sound tombstone; perhaps more than once
	Ref      func(Ref) error       // a ref whose record is sound
	Entry    func(LogEntry) error  // a log entry whose record is sound, the oldest first
	Damage   func(Damage) error
	Progress func(done, total int64) // bytes read, and about how many there are
}

// Auditor is a store whose engine can read all that it keeps, page by page and
// whole or not. It is optional; ask with [As].
type Auditor interface {
	// Audit reads everything as it is at one moment and hashes every object. It
	// changes nothing, keeps no writer waiting for long, and takes damage for
	// nothing to stop at: an error says that the store could not be read at all,
	// or not in peace.
	Audit(ctx context.Context, a Audit) error
}

// Copier is a store that can copy itself while it is in use. It is optional; ask
// with [As].
type Copier interface {
	// Copy writes the store as it is at one moment into a folder that is there and
	// empty, and makes it durable. The copy is not verified. What is damaged is
	// copied as it is.
	Copy(ctx context.Context, dir string, progress func(done, total int64)) error
}

// Restorer is a store that takes many batches for the price of few. It is optional;
// ask with [As].
type Restorer interface {
	// Restore applies the batches one after the other as [Writer].Apply does. After
	// an error some of them may have been applied.
	Restore(ctx context.Context, list []Batch) error
}

// Sweep says what a [Cleaner] takes away.
type Sweep struct {
	Keep     []ID      // roots beside the refs and everything that a ref ever was
	Before   time.Time // only what was put before it; zero: nothing
	Dry      bool      // only count
	Progress func(done, total int64)
}

// Swept is what a [Cleaner] found, and has done unless the sweep was dry.
type Swept struct {
	Kept        int   // objects to which a root leads
	Young       int   // objects to which none does, not put before the time given
	Gone        int   // objects to which none does, put before it
	GoneBytes   int64 // of their data
	SizeBefore  int64 // bytes of the store
	SizeAfter   int64 // the same as before when the sweep was dry
	Unreachable []ID  // some of those that are gone, for people
}

// Cleaner is a store that can forget. It is optional; ask with [As].
type Cleaner interface {
	// Sweep takes away the objects to which no root leads, and packs the others
	// closely. Roots are the refs, every object that the ref log names, and those
	// of s. What a young object leads to is kept as well. Others may use the store
	// meanwhile. It is all or nothing; a damaged store is not swept.
	Sweep(ctx context.Context, s Sweep) (Swept, error)
}
