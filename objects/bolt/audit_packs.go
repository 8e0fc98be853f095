package bolt

import (
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// packCheck is one pack that is looked at.
type packCheck struct {
	a       *auditor
	n       uint32
	page    node   // that has its head
	head    extent // of its two values
	body    extent
	found   bool  // it has a body
	readErr error // why there is no head that can be read
	headErr error // why there is none that makes sense
	bodyErr error // why there is no body that can be read
	stop    error // why the audit ends

	whole   bool // every object is what its id says
	sound   bool // so are the checksums
	inTurn  func() error
	wrong   []wrongObject
	indexed packTally
}

// pack has a pack looked at.
func (a *auditor) pack(page node, n uint32, head extent) error {
	c := &packCheck{a: a, n: n, page: page, head: head}
	c.body, c.found = a.bodies[n]
	delete(a.bodies, n) // no other head may have it
	return a.begin(c)
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
			c.wrong = append(c.wrong, wrongObject{c.where(), o.ID, err})
			list = list[:len(list)-1]
		}
	}
	c.whole = len(list) == p.Len()-len(p.purged) && c.bodyErr == nil
	c.indexed = tallyOf(p)
	c.inTurn = c.a.look(list)
}

// settle passes on what a pack holds and what is wrong with it.
func (c *packCheck) settle() error {
	a := c.a
	if c.stop != nil {
		return c.stop
	}
	if c.readErr != nil || c.headErr != nil {
		if c.found {
			a.bodies[c.n] = c.body // no head asks for it
		}
		if c.readErr != nil {
			return a.spoilt(c.page, c.readErr)
		}
		a.scrapHead(c.n, c.head)
		return a.damage(c.where(), c.headErr, "its objects cannot be read; tract recover saves those that are whole")
	}
	if c.bodyErr != nil {
		if err := a.damage(c.where(), c.bodyErr, "the words of its commits are lost"); err != nil {
			return err
		}
		a.scrapHead(c.n, c.head)
		if c.found {
			a.scrapBody(c.n, c.body)
		}
	}
	if err := a.pass(c.inTurn, c.wrong); err != nil {
		return err
	}
	a.whole[c.n] = c.whole
	if c.whole && !c.sound {
		err := a.damage(c.where(), errors.New("a checksum of it is wrong"), "nothing is lost: its objects are what their ids say")
		if err != nil {
			return err
		}
	}
	a.index.packs[c.n] = c.indexed
	return nil
}
