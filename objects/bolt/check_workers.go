package bolt

import (
	"errors"
	"runtime"

	"github.com/tract-vcs/tract/objects"
)

// check is a part of the store that is checked concurrently with others.
type check interface {
	run(room *arena) // in a goroutine of its own
	finish() error   // reports the results, in the order in which the checks were started
}

// pendingCheck is a check that was started.
type pendingCheck struct {
	check
	room *arena
	done chan struct{}
}

// The memory of a check: its initial size, which is enough for most, and the largest that
// is kept for the next check.
const (
	checkLeast = 2 << 20
	checkMost  = 16 << 20
)

// start starts a check. The number of running checks is bounded, and so is their memory.
func (a *checker) start(c check) error {
	p := pendingCheck{check: c, done: make(chan struct{})}
	if n := len(a.rooms); n > 0 {
		p.room, a.rooms = a.rooms[n-1], a.rooms[:n-1]
	} else {
		p.room = newArena(checkLeast)
	}
	p.room.reset()
	go func() {
		defer close(p.done)
		c.run(p.room)
	}()
	if a.checks = append(a.checks, p); len(a.checks) <= 1+runtime.GOMAXPROCS(0) {
		return nil
	}
	return a.finishOldest()
}

func (a *checker) finishOldest() error {
	p := a.checks[0]
	<-p.done
	a.checks = a.checks[1:]
	err := p.finish()
	if cap(p.room.pieces.Buf) < checkMost { // only damage needs more
		a.rooms = append(a.rooms, p.room)
	}
	return err
}

// finishChecks waits for all running checks.
func (a *checker) finishChecks() error {
	if err := a.startLoose(); err != nil {
		return err
	}
	if err := a.startIndex(); err != nil {
		return err
	}
	for len(a.checks) > 0 {
		if err := a.finishOldest(); err != nil {
			return err
		}
	}
	return nil
}

// abandon waits for the running checks and drops their results: after an error no callback
// is called again.
func (a *checker) abandon() {
	for _, p := range a.checks {
		<-p.done
	}
	a.checks, a.nextLoose, a.nextIndex = nil, nil, nil
}

// look returns a function that passes objects to the callback, or nil.
func (a *checker) look(list []objects.Object) (inTurn func() error) {
	if a.to.Objects == nil || len(list) == 0 {
		return nil
	}
	return func() error { return a.to.Objects(list) }
}

// damagedObject is an object that does not match its id.
type damagedObject struct {
	where string
	id    objects.ID
	err   error
}

// pass passes intact objects to the callback, and reports the others.
func (a *checker) pass(inTurn func() error, wrong []damagedObject) error {
	if inTurn != nil {
		if err := inTurn(); err != nil {
			return err
		}
	}
	for _, w := range wrong {
		err := w.err
		if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
			err = c.Cause
		}
		if err := a.report(objects.Damage{ID: w.id, Where: w.where, What: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// looseCheck checks objects that are in no pack.
type looseCheck struct {
	a    *checker
	list []looseRecord
	size int

	inTurn func() error
	erased []objects.Tombstone
	wrong  []damagedObject
}

// looseRecord is the record of an object, and where it was found.
type looseRecord struct {
	where string
	id    objects.ID
	value []byte
}

// The records, or bytes of records, of one check.
const (
	looseRecords = 256
	looseBytes   = 256 << 10
)

// loose checks an object that is in no pack. It keeps the value.
func (a *checker) loose(where string, key, value []byte) error {
	if len(key) != idSize {
		return a.reportDamage(where, errors.New("an object whose key is no id"), "an object cannot be found by its id")
	}
	c := a.nextLoose
	if c == nil {
		c = &looseCheck{a: a}
		a.nextLoose = c
	}
	c.list, c.size = append(c.list, looseRecord{where, objects.ID(key), value}), c.size+len(value)
	if len(c.list) < looseRecords && c.size < looseBytes {
		return nil
	}
	return a.startLoose()
}

// startLoose starts the check of the records that were gathered.
func (a *checker) startLoose() error {
	c := a.nextLoose
	if a.nextLoose = nil; c == nil {
		return nil
	}
	return a.start(c)
}

func (c *looseCheck) run(*arena) {
	sound := make([]objects.Object, 0, len(c.list))
	for _, r := range c.list {
		o, err := decodeObject(r.id, r.value)
		if e := (*objects.PurgedError)(nil); errors.As(err, &e) {
			c.erased = append(c.erased, e.Tombstone)
			continue
		}
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			c.wrong = append(c.wrong, damagedObject{r.where, r.id, err})
			continue
		}
		sound = append(sound, o)
	}
	c.inTurn = c.a.look(sound)
}

func (c *looseCheck) finish() error {
	if err := c.a.pass(c.inTurn, c.wrong); err != nil {
		return err
	}
	for _, t := range c.erased {
		if err := c.a.erased(t); err != nil {
			return err
		}
	}
	return nil
}
