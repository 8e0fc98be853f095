package bolt

import (
	"errors"
	"runtime"

	"github.com/tract-vcs/tract/objects"
)

// check is a part of the store that is looked at beside others while the next are read.
type check interface {
	run(room *arena) // in a goroutine of its own
	settle() error   // tells what was found, in the order in which the checks were begun
}

// pendingCheck is one that was begun.
type pendingCheck struct {
	check
	room *arena
	done chan struct{}
}

// A check begins with so much memory, which is enough for most and taken from the system
// as far as it is used, and no more than so much is kept for the next.
const (
	checkLeast = 2 << 20
	checkMost  = 16 << 20
)

// begin has a part looked at. Only so many are looked at at once, so that what they
// need is taken again for others.
func (a *auditor) begin(c check) error {
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
	return a.settleOldest()
}

func (a *auditor) settleOldest() error {
	p := a.checks[0]
	<-p.done
	a.checks = a.checks[1:]
	err := p.settle()
	if cap(p.room.pieces.Buf) < checkMost { // more is asked for by damage, and by nothing else
		a.rooms = append(a.rooms, p.room)
	}
	return err
}

// settleChecks waits for everything that is still looked at.
func (a *auditor) settleChecks() error {
	if err := a.beginLoose(); err != nil {
		return err
	}
	if err := a.beginIndex(); err != nil {
		return err
	}
	for len(a.checks) > 0 {
		if err := a.settleOldest(); err != nil {
			return err
		}
	}
	return nil
}

// abandon waits until nobody looks at anything any more: after an error the one who
// listens is not called again.
func (a *auditor) abandon() {
	for _, p := range a.checks {
		<-p.done
	}
	a.checks, a.gathering, a.indexing = nil, nil, nil
}

// look gives what shows objects to the one who listens.
func (a *auditor) look(list []objects.Object) (inTurn func() error) {
	if a.to.Objects == nil || len(list) == 0 {
		return nil
	}
	return func() error { return a.to.Objects(list) }
}

// wrongObject is an object that is not what its id says.
type wrongObject struct {
	where string
	id    objects.ID
	err   error
}

// pass passes on what was seen of objects, and what is wrong with others.
func (a *auditor) pass(inTurn func() error, wrong []wrongObject) error {
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
		if err := a.tell(objects.Damage{ID: w.id, Where: w.where, What: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}

// looseCheck is objects that lie for themselves.
type looseCheck struct {
	a    *auditor
	list []looseRecord
	size int

	inTurn func() error
	erased []objects.Tombstone
	wrong  []wrongObject
}

// looseRecord is the record of one, and where it was found.
type looseRecord struct {
	where string
	id    objects.ID
	value []byte
}

// So many records, or bytes of them, are looked at at once.
const (
	looseRecords = 256
	looseBytes   = 256 << 10
)

// loose has an object looked at that lies for itself. It keeps the value. pack is the one
// that stands for the place.
func (a *auditor) loose(where string, key, value []byte) error {
	if len(key) != idSize {
		return a.damage(where, errors.New("an object whose key is no id"), "an object cannot be found by its id")
	}
	c := a.gathering
	if c == nil {
		c = &looseCheck{a: a}
		a.gathering = c
	}
	c.list, c.size = append(c.list, looseRecord{where, objects.ID(key), value}), c.size+len(value)
	if len(c.list) < looseRecords && c.size < looseBytes {
		return nil
	}
	return a.beginLoose()
}

// beginLoose has the records looked at that were gathered.
func (a *auditor) beginLoose() error {
	c := a.gathering
	if a.gathering = nil; c == nil {
		return nil
	}
	return a.begin(c)
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
			c.wrong = append(c.wrong, wrongObject{r.where, r.id, err})
			continue
		}
		sound = append(sound, o)
	}
	c.inTurn = c.a.look(sound)
}

func (c *looseCheck) settle() error {
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
