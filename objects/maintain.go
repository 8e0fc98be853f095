package objects

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Maintainer is a store that can be checked, copied and cleaned. It is optional; ask with
// [As]. objects/bolt is one, and so is [Memory], which has no files to copy or to measure
// and keeps unreachable objects. A method that an engine does not have returns
// [errors.ErrUnsupported].
type Maintainer interface { //nolint:interfacebloat // one for all that packages above do to a whole store
	// Audit reads everything as it is at one moment and hashes every object. It
	// changes nothing, blocks no writer for long, and goes on after damage: an error
	// means that the store could not be read at all.
	Audit(ctx context.Context, a Audit) error

	// Copy writes the store as it is at one moment into an existing empty folder, and
	// makes it durable. It does not verify the copy, and copies damage as it is.
	Copy(ctx context.Context, dir string, progress func(done, total int64)) error

	// Restore appends the entries, oldest first, with their Seq and Prev, and moves the
	// refs. An entry that does not follow what the store has, by its Seq or in the
	// chain of a ref, is an error. After an error some of them may have been appended.
	Restore(ctx context.Context, list []LogEntry) error

	// Sweep removes unreachable objects, and packs the others closely. Roots are the
	// refs, every object that the ref log names, and those of s. What a young object
	// refers to is kept as well. Others may use the store meanwhile. It removes all of
	// them or none; a damaged store is not swept.
	Sweep(ctx context.Context, s Sweep) (Swept, error)

	// Purge puts a tombstone in the place of each object: all of them, durably, or
	// none; call [Purge]. If it is interrupted after the first of them, the next write
	// to the store completes it. When it returns nil the bytes are in no file of the store.
	// Kind and Size are set from an object that exists. One that does not exist gets
	// its tombstone all the same, if that has a kind; else it is a *[NotFoundError].
	// One that was purged before keeps its tombstone. Others may use the store
	// meanwhile; nothing is purged from a part of the store that is damaged. purged counts the new tombstones.
	Purge(ctx context.Context, list []Tombstone, progress func(done, total int64)) (purged int, err error)

	// Size returns where the store is and how many bytes it takes.
	Size(ctx context.Context) (path string, bytes int64, err error)

	// Leftovers returns the paths of files beside the store that killed processes have
	// left. The next writer removes them.
	Leftovers(ctx context.Context) ([]string, error)
}

// Damage is one thing that is wrong in a store.
type Damage struct {
	ID       ID     // the object that is lost; zero: it is about something else
	Where    string // such as: page 12, pack 3, the journal, ref "refs/heads/main"
	What     string // what is wrong there
	Means    string // what that means to a user of the store
	Harmless bool   // no content and no ref is lost
}

// Audit has the functions that [Maintainer].Audit calls with what it finds, one at a time. A
// function may be nil, and an error from one ends the audit. All arguments but the objects belong
// to the function.
type Audit struct {
	// Deep also looks in unreachable places when there is damage, to salvage what is
	// there.
	Deep bool

	// Begin is called first, with an estimate of the number of objects. It is called again
	// when the audit starts over because of concurrent writes: earlier results are void.
	Begin func(about int) error

	// Objects is given objects whose hash is their id, several at a time, some perhaps more
	// than once. They are valid until it returns.
	Objects func(list []Object) error

	Tombstone func(Tombstone) error // a sound tombstone; perhaps more than once
	Ref       func(Ref) error       // a ref whose record is sound
	Entry     func(LogEntry) error  // a log entry whose record is sound, the oldest first
	Damage    func(Damage) error
	Progress  func(done, total int64) // bytes read, and about how many there are
}

// AuditStore audits a store by what it returns, as [Maintainer].Audit does, for engines without
// files. It reads the refs before the objects, so that it finds what they lead to.
func AuditStore(ctx context.Context, s Store, a Audit) error {
	refs, err := s.Refs(ctx, RefQuery{})
	if err != nil {
		return err
	}
	entries, err := s.Log(ctx, "", 0, 0)
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	ids, err := s.Find(ctx, 0, "", 0)
	if err == nil && a.Begin != nil {
		err = a.Begin(len(ids))
	}
	if err != nil {
		return err
	}
	for o, err := range s.Get(ctx, ids) {
		var c *CorruptError
		var purged *PurgedError
		switch {
		case errors.As(err, &purged):
			err = callForEach(a.Tombstone, purged.Tombstone)
		case err == nil:
			err = callForEach(a.Objects, []Object{o})
		case errors.As(err, &c) && !c.ID.IsZero():
			err = callForEach(a.Damage, Damage{ID: c.ID, Where: "object " + c.ID.Short(), What: c.Cause.Error()})
		}
		if err != nil {
			return err
		}
	}
	if err := callForEach(a.Ref, refs...); err != nil {
		return err
	}
	return callForEach(a.Entry, entries...)
}

// callForEach calls f, if it is not nil, with each element of a list, up to an error.
func callForEach[T any](f func(T) error, list ...T) error {
	for i := 0; i < len(list) && f != nil; i++ {
		if err := f(list[i]); err != nil {
			return err
		}
	}
	return nil
}

// Sweep has the options of [Maintainer].Sweep.
type Sweep struct {
	Keep     []ID      // roots beside the refs and the ref log
	Before   time.Time // only what was put before it; zero: nothing
	Dry      bool      // only count
	Progress func(done, total int64)
}

// Swept is what [Maintainer].Sweep found, and has done unless the sweep was dry.
type Swept struct {
	Kept         int   // objects to which a root leads
	Young        int   // objects to which none does, not put before the time given
	Removed      int   // objects to which none does, put before it
	RemovedBytes int64 // of their data
	SizeBefore   int64 // bytes of the store
	SizeAfter    int64 // the same as before when the sweep was dry
	Examples     []ID  // some of those that are gone, for people
}
