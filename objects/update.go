package objects

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// PendingUpdates compares what a batch wants with where its refs are, and returns the
// updates that move something: the same list, where all do. The error is a
// *[ConflictError], or at's own. It is for engines, inside the transaction that then moves
// the refs.
func PendingUpdates(wanted []RefUpdate, at func(name string) (ID, error)) (moves []RefUpdate, err error) {
	moves = wanted[:0:0]
	for i := range wanted {
		u := &wanted[i]
		have, err := at(u.Name)
		switch {
		case err != nil:
			return nil, err
		case have == u.New:
		case have != u.Old:
			return nil, &ConflictError{Ref: u.Name, Want: u.Old, Have: have}
		case len(moves) == i:
			moves = wanted[: i+1 : i+1]
		default:
			moves = append(moves, *u)
		}
	}
	return moves, nil
}

// Follows returns nil if an engine may append e as it is: e moves refs, its Seq is over last, that
// of the newest entry of the log, and at returns for each ref the target from which e moves it
// and the newest entry that e names as Prev. It is for engines, inside the transaction that then
// moves the refs.
func (e LogEntry) Follows(last uint64, at func(name string) (target, newest ID, err error)) error {
	follows := e.Seq > last && len(e.Refs) > 0
	moves, err := PendingUpdates(e.Refs, func(name string) (ID, error) {
		target, newest, err := at(name)
		for _, u := range e.Refs {
			follows = follows && (u.Name != name || u.Prev == newest)
		}
		return target, err
	})
	if err == nil && (!follows || len(moves) < len(e.Refs)) {
		err = &CorruptError{Cause: fmt.Errorf("log entry %d does not follow entry %d and those of its refs", e.Seq, last)}
	}
	return err
}

// Updates implements [Writer].Update with the other methods of an engine. The zero Updates is
// ready for use.
type Updates struct {
	refs    sync.Map     // name -> *sync.Mutex: writers of one ref wait for one another
	running sync.RWMutex // held by every Run, so that Stop waits for it
}

// Run is [Writer].Update.
func (u *Updates) Run(ctx context.Context, s Store, ref string, f func(tip ID) (Batch, error)) error {
	u.running.RLock()
	defer u.running.RUnlock()
	queue, _ := u.refs.LoadOrStore(ref, new(sync.Mutex))
	queue.(*sync.Mutex).Lock()
	defer queue.(*sync.Mutex).Unlock()
	for {
		at, err := ReadRef(ctx, s, ref)
		if err != nil {
			return err
		}
		b, err := f(at.Target)
		if err != nil {
			return err
		}
		err = s.Apply(ctx, b)
		if c := (*ConflictError)(nil); !errors.As(err, &c) || c.Ref != ref || c.Have == at.Target {
			return err // the last: f does not move the ref from where it is
		}
	}
}

// Stop waits for every Run, and lets none begin until the caller calls done.
func (u *Updates) Stop() (done func()) {
	u.running.Lock()
	return u.running.Unlock
}
