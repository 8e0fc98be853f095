package bolt

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/tract-vcs/tract/objects"
)

// packCheck is one pack that is looked at while the next are read.
type packCheck struct {
	n     uint32
	head  []byte
	place extent // of the body
	found bool   // it has one
	raw   []byte
	err   error // why there is no body that can be read

	pack    *pack // nil: headErr
	headErr error
	body    []byte // nil: err
	sound   bool   // the checksum of the body is right
	list    []objects.Object
	wrong   []error // what is wrong with which object; nil: with none
	done    chan struct{}
}

// pack reads a pack and has it looked at beside the others. What is found is told in
// the order of the packs.
func (a *auditor) pack(n uint32, head []byte) error {
	c := &packCheck{n: n, head: head, done: make(chan struct{})}
	c.place, c.found = a.bodies[n]
	if c.raw, c.err = a.bodyOf(n); foreign(c.err) {
		return c.err
	}
	go func() {
		defer close(c.done)
		c.run()
	}()
	if a.checks = append(a.checks, c); len(a.checks) <= 2*runtime.GOMAXPROCS(0) {
		return nil
	}
	oldest := a.checks[0]
	a.checks = a.checks[1:]
	return a.settlePack(oldest)
}

// settlePacks waits for the packs that are still looked at.
func (a *auditor) settlePacks() error {
	for _, c := range a.checks {
		if err := a.settlePack(c); err != nil {
			return err
		}
	}
	a.checks = nil
	return nil
}

// run hashes every object of the pack.
func (c *packCheck) run() {
	if c.pack, c.headErr = parsePack(c.n, c.head); c.headErr != nil {
		return
	}
	if c.err == nil {
		c.body, c.sound, c.err = openBody(nil, c.pack, c.raw)
	}
	if c.err != nil {
		c.body = nil
	}
	c.list = make([]objects.Object, c.pack.Len())
	room := make([]objects.ID, 0, 2*len(c.list))
	for i := range c.list {
		o, err := c.pack.Object(i, &room)
		switch {
		case err != nil:
		case o.Kind == objects.KindCommit:
			err = o.Check()
		case c.body == nil:
			err = errors.New("the pack has no body that fits")
		default:
			from, size := c.pack.Data(i)
			o.Data = c.body[from : from+size : from+size]
			err = o.Check()
		}
		if c.list[i] = o; err != nil {
			if c.wrong == nil {
				c.wrong = make([]error, len(c.list))
			}
			c.wrong[i] = err
		}
	}
}

// settlePack passes on what a pack holds and what is wrong with it.
func (a *auditor) settlePack(c *packCheck) error {
	<-c.done
	where := fmt.Sprintf("pack %d", c.n)
	if c.headErr != nil {
		if c.found {
			a.bodies[c.n] = c.place // no head asks for it
		}
		a.scrapHead(c.n, extent{value: c.head})
		return a.damage(where, c.headErr, "its objects cannot be read; tract recover saves those that are whole")
	}
	if c.err != nil {
		if err := a.damage(where, c.err, "the words of its commits are lost"); err != nil {
			return err
		}
		a.scrapHead(c.n, extent{value: c.head})
		a.scrapBody(c.n, extent{value: c.raw})
	}
	a.told = c.n
	defer func() { a.told = 0 }()
	before := a.harm
	for i, o := range c.list {
		err := error(nil)
		if c.wrong != nil {
			err = c.wrong[i]
		}
		if err := a.object(where, o, err); err != nil {
			return err
		}
	}
	a.whole[c.n] = a.harm == before && c.body != nil
	if a.whole[c.n] && (!c.sound || !c.pack.sound) {
		err := a.damage(where, errors.New("a checksum of it is wrong"), "nothing is lost: its objects are what their ids say")
		if err != nil {
			return err
		}
	}
	a.index.add(c.n, c.pack)
	return nil
}
