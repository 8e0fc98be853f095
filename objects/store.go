package objects

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"time"
)

// Ref is a name for an object.
type Ref struct {
	Name    string
	Target  ID
	Version uint64    // grows by one with every move
	Updated time.Time // of the last move, UTC
}

// RefUpdate moves one ref from Old to New.
type RefUpdate struct {
	Name string
	Old  ID // zero: the ref must not exist
	New  ID // zero: the ref is deleted

	// Prev is the hash of the newest earlier log entry that moves this name, across
	// deletions; zero: there is none. The engine sets it and ignores it in a batch.
	Prev ID
}

// Group identifies an operation: all that one command of a user did. It is chosen at
// random before the first batch of the operation. The zero Group is none.
type Group [16]byte

// IsZero reports whether g is the zero Group.
func (g Group) IsZero() bool { return g == Group{} }

// String is 32 hexadecimal digits.
func (g Group) String() string { return hex.EncodeToString(g[:]) }

// MarshalText returns what String does.
func (g Group) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Note records who moved refs, when, and with which command: the name of the command and its
// ids, never its other arguments.
type Note struct {
	Time    time.Time // UTC milliseconds are kept
	Author  string
	Command string

	Group     Group // the operation that the batch belongs to
	Continues bool  // earlier entries of the log may have the same Group; false: none has
	Reverts   Group // of an undo: the operation that it takes back
}

// Batch is what one [Writer].Apply does. Put may hold an object more than once.
type Batch struct {
	Put  []Object
	Refs []RefUpdate // each name once
	Note Note

	// Copies reports whether Put holds copies from elsewhere, such as an import: purged
	// objects among them stay purged. Otherwise putting a purged object restores it.
	Copies bool
}

// LogEntry is one move of one or more refs. Seq grows from entry to entry of a store
// and may have gaps. Entries are linked per ref: Hash covers the entry and, as
// [RefUpdate].Prev, the entry before it in the chain of each ref that it moves.
type LogEntry struct {
	Seq  uint64
	Hash ID
	Note Note
	Refs []RefUpdate
}

// ChainOptions bounds a walk.
type ChainOptions struct {
	Limit int  // most commits; 0 is no limit
	Stop  []ID // where the walk ends, not yielded; zero ids do not count
}

// RefQuery selects refs.
type RefQuery struct {
	Prefix string
	After  string // only names greater than this one
	Limit  int    // most refs; 0 is no limit
	Newest bool   // last moved first, instead of by name in byte order
}

// Reader looks at objects. All methods may be called by any number of
// goroutines at once, and by the body of a loop over one of them: no lock and
// no transaction is held while a loop body runs. What is yielded belongs to the
// caller.
//
// An error in a sequence that is a *[CorruptError] with an id, or an
// *[PurgedError], concerns one object, and the sequence goes on; any other error is
// its last element.
type Reader interface {
	// Get yields each of the objects that is there, once, in any order. An id
	// that is not there is not yielded.
	Get(ctx context.Context, ids []ID) iter.Seq2[Object, error]

	// Missing returns the ids that do not exist, in the order given. A purged object is
	// not missing: its tombstone exists.
	Missing(ctx context.Context, ids []ID) ([]ID, error)

	// Find lists ids that begin with the hexadecimal digits of prefix, an odd
	// number of them included, in ascending order: of one kind, or of all when
	// kind is 0; at most limit, when it is over 0.
	Find(ctx context.Context, kind Kind, prefix string, limit int) ([]ID, error)

	// Chain yields tip, its first parent, and so on, until a root, a Stop or the
	// Limit. A Stop that is no ancestor of tip ends the walk before the first
	// commit that both have, with a *[DivergedError]. A hole ends it with a
	// *[NotFoundError], a damaged commit with a *[CorruptError].
	Chain(ctx context.Context, tip ID, o ChainOptions) iter.Seq2[Object, error]
}

// RefReader looks at refs and at how they moved. Its methods may be called by
// any number of goroutines at once; each answers from one moment.
type RefReader interface {
	// GetRefs returns those of the named refs that exist, in the order asked.
	GetRefs(ctx context.Context, names ...string) ([]Ref, error)

	// Refs lists the refs that q selects.
	Refs(ctx context.Context, q RefQuery) ([]Ref, error)

	// Log lists the moves of a ref, or of all refs when name is empty, newest
	// first: those with Seq below before (0: from the newest), at most limit
	// (0: all). A deleted ref keeps its entries.
	Log(ctx context.Context, name string, before uint64, limit int) ([]LogEntry, error)
}

// Writer adds objects and moves refs. Its methods may be called by any number
// of goroutines and processes at once.
type Writer interface {
	// Apply puts the objects and moves the refs: all refs, with one log entry,
	// or none. When it returns nil everything is durable, and a reader that sees
	// one of the refs sees every object of the batch. A ref that is already at New
	// counts as moved, so that repeating a batch whose outcome is unknown is
	// right; when all are, nothing is logged. Putting an object that exists
	// does nothing; a purged one is restored, unless the batch has copies. A ref elsewhere is a *[ConflictError].
	//
	// When Apply fails no ref has moved, unless the outcome is unknown
	// ([IsUnknown]); unreachable objects may have been put.
	Apply(ctx context.Context, b Batch) error

	// Update calls f with the present target of a ref (zero: there is none) and
	// applies the batch that it returns, as many times as it takes until no
	// other writer came in between: writers of one ref wait for one another and
	// all succeed. f may read the store and must not write to it. An error from
	// f ends Update and is returned as it is; an empty batch writes nothing.
	Update(ctx context.Context, ref string, f func(tip ID) (Batch, error)) error
}

// Store is an engine: all of the above. Close waits for what is running; later
// calls give [ErrClosed].
type Store interface {
	Reader
	RefReader
	Writer
	Close() error
}

// Watcher is a store that reports when a ref moves. It is optional; ask with [As].
type Watcher interface {
	// Watch yields the ref as it is (a zero Target: it does not exist) and then
	// every newer state, until ctx is done. States between two looks may be
	// skipped, the last one never is. It ends with ctx's error, or its own.
	Watch(ctx context.Context, name string) iter.Seq2[Ref, error]
}

// As finds an optional interface of a store: in s itself or in what it wraps.
func As[T any](s Store) (T, bool) {
	for {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			var none T
			return none, false
		}
		s = w.Unwrap()
	}
}

// Read returns one object; a missing one is a *[NotFoundError].
func Read(ctx context.Context, r Reader, id ID) (Object, error) {
	for o, err := range r.Get(ctx, []ID{id}) {
		return o, err
	}
	return Object{}, &NotFoundError{ID: id}
}

// ReadAll reads and parses the objects of some ids, each once. Those that do not exist are not in
// the result.
func ReadAll[T any](ctx context.Context, r Reader, ids []ID, parse func(Object) (*T, error)) (map[ID]*T, error) {
	found := make(map[ID]*T, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	for o, err := range r.Get(ctx, ids) {
		if err == nil {
			found[o.ID], err = parse(o)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ReadRef returns one ref; a missing one has a zero Target.
func ReadRef(ctx context.Context, r RefReader, name string) (Ref, error) {
	refs, err := r.GetRefs(ctx, name)
	if err != nil || len(refs) == 0 {
		return Ref{Name: name}, err
	}
	return refs[0], nil
}

type unknownError struct{ error }

func (e unknownError) Unwrap() error { return e.error }

// Unknown marks an error of Apply after which the batch may have been written.
func Unknown(err error) error { return unknownError{err} }

// IsUnknown reports whether the batch may have been written although Apply
// failed. Repeating it is right: it then lands once.
func IsUnknown(err error) bool { return errors.As(err, new(unknownError)) }
