package bolt

import (
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// packCheck checks one pack.
type packCheck struct {
	a       *checker
	n       uint32
	page    node   // with the head
	head    extent // where its two values are
	body    extent
	found   bool  // it has a body
	readErr error // of reading the head
	headErr error // of parsing the head
	bodyErr error // of reading or unpacking the body
	stop    error // ends the audit

	whole   bool // every object matches its id
	sound   bool // both checksums are right
	inTurn  func() error
	wrong   []damagedObject
	indexed packTally
}

// pack starts the check of a pack.
func (a *checker) pack(page node, n uint32, head extent) error {
	c := &packCheck{a: a, n: n, page: page, head: head}
	c.body, c.found = a.bodies[n]
	delete(a.bodies, n) // a second head with this number has no body
	return a.start(c)
}

// run reads the pack and hashes every object of it.
func (c *packCheck) run(room *arena) {
	head, closed, err := c.readPack(room)
	if c.readErr = err; err != nil || c.stop != nil {
		return
	}
	p, err := parsePackIn(room, c.n, head)
	if c.headErr = err; err != nil {
		return
	}
	var body []byte
	sound := false
	switch {
	case !c.found:
		c.bodyErr = errNoBody
	case c.bodyErr == nil:
		body, sound, c.bodyErr = decodeBody(room, p, closed)
	}
	c.sound = sound && p.sound
	list := room.takeObjects(p.Len())
	for i := range p.Len() {
		if p.isPurged(i) {
			continue
		}
		list = list[:len(list)+1]
		o := &list[len(list)-1]
		*o = room.tables.Object(p.Table, i)
		var err error
		switch {
		case o.Kind == objects.KindCommit:
			err = o.Check()
		case c.bodyErr != nil:
			err = errors.New("the pack has no body that fits")
		default:
			from, size := p.Data(i)
			o.Data = body[from : from+size : from+size]
			err = o.Check()
		}
		if err != nil {
			c.wrong = append(c.wrong, damagedObject{c.where(), o.ID, err})
			list = list[:len(list)-1]
		}
	}
	c.whole = len(list) == p.Len()-len(p.purged) && c.bodyErr == nil
	c.indexed = tallyOf(p)
	c.inTurn = c.a.look(list)
}

// finish passes on the objects of the pack and reports damage.
func (c *packCheck) finish() error {
	a := c.a
	if c.stop != nil {
		return c.stop
	}
	if c.readErr != nil || c.headErr != nil {
		if c.found {
			a.bodies[c.n] = c.body // it has no head
		}
		if c.readErr != nil {
			return a.reportPage(c.page, c.readErr)
		}
		a.addHead(c.n, c.head)
		return a.reportDamage(c.where(), c.headErr, "its objects cannot be read; tract recover saves those that are whole")
	}
	if c.bodyErr != nil {
		if err := a.reportDamage(c.where(), c.bodyErr, "the words of its commits are lost"); err != nil {
			return err
		}
		a.addHead(c.n, c.head)
		if c.found {
			a.addBody(c.n, c.body)
		}
	}
	if err := a.pass(c.inTurn, c.wrong); err != nil {
		return err
	}
	a.whole[c.n] = c.whole
	if c.whole && !c.sound {
		err := a.reportDamage(c.where(), errors.New("a checksum of it is wrong"), "nothing is lost: its objects are what their ids say")
		if err != nil {
			return err
		}
	}
	a.index.packs[c.n] = c.indexed
	return nil
}
