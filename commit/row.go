package commit

import (
	"time"

	"github.com/tract-vcs/tract/objects"
)

// readLine is read for a line alone, newest first, whose states are in its order.
func (r *rows) readLine(s *objects.Sheet, places []int16) {
	r.line = append(r.line[:0], places...)
	for at := s.Parent(int(places[len(places)-1])); at >= 0; at = s.Parent(at) { // a walk with a limit ends before
		r.line = append(r.line, int16(at))
	}
	r.begin(s, len(r.line))
	rows, forms, states := s.Rows(), r.forms, r.states
	var before *state
	for k := len(states) - 1; k >= 0; k-- {
		i, now := int(r.line[k]), &states[k]
		row := &rows[i]
		f := forms[row.Form()].formed
		if link := row.Link(); !f.plain || row.Size() > 0 || link < 0 || before == nil || before.whole == 0 {
			r.work(i, now, before)
		} else { // as work does it, for most
			own, size := s.OwnOf(row), f.Kind.Weight(int64(rows[link].Size()))
			now.depth, now.ms = before.depth+1, before.ms+unzigzag(own)
			now.weight.All, now.weight.Sent = before.weight.All+size, before.weight.Sent+size&f.sends
			now.mark, now.next, now.index, now.whole = before.next, before.next, int32(f.Index), plain
		}
		before = now
	}
}

// give yields the commits of a line that was read, each good until the next one is asked
// for, and tells whether there may be more. Most are as the one of their form that was given
// before, but for what differs in each: a copy would take longer than all else.
func (r *rows) give(run *objects.Run, places []int16, yield func(*Commit, error) bool) bool {
	s, all, forms, states := r.sheet, r.sheet.Rows(), r.forms, r.states[:len(places)]
	for k, at := range places {
		i, now := int(at), &states[k]
		row := &all[i]
		f := &forms[row.Form()]
		c := &f.given
		if now.whole == plain && f.quick && now.mark == f.mark && c.Block == nil && c.From == nil && c.Erased == nil && c.Words.IsZero() {
			if from := row.Apart(); f.shows && from != f.origin {
				f.origin, c.Origin = from, *s.ID(from)
			}
			link := row.Link()
			c.ID = *s.ID(i)
			r.parent[0] = *s.ID(row.Parent())
			c.Content = *s.ID(link)
			c.Size, c.Spot = int64(all[link].Size()), r.spot(&all[link])
			c.Time, c.Depth, c.Weight = time.UnixMilli(now.ms).UTC(), now.depth, now.weight
		} else {
			var err error
			if c, err = r.at(i, now); err != nil {
				yield(nil, err)
				return false
			}
			if now.whole > 0 {
				c.Spot = run.Spot(i)
			}
		}
		if !yield(c, nil) {
			return false
		}
	}
	return true
}

// at gives a commit of any kind with its state.
func (r *rows) at(i int, now *state) (*Commit, error) {
	if now.whole == 0 {
		return nil, &objects.CorruptError{ID: *r.sheet.ID(i), Cause: errFold}
	} else if now.whole > 0 {
		return &r.whole[now.whole-1], nil
	}
	row := &r.sheet.Rows()[i]
	f := &r.forms[row.Form()]
	c := &f.given
	c.Block, c.From, c.Words, c.Erased = nil, nil, Label{}, nil
	r.told(c, i, row, f, now)
	f.mark, f.origin = now.mark, none
	return c, nil
}

// told fills in what the sheet and the state say of a commit that has its form. It has room
// for its parents.
func (r *rows) told(c *Commit, i int, row *objects.Row, f *laidForm, now *state) {
	s := r.sheet
	if c.ID = *s.ID(i); f.parents > 0 {
		c.Parents[0] = *s.ID(row.Parent())
	}
	if k := row.Link(); k >= 0 && f.links[0] >= 0 {
		c.Content = *s.ID(k)
		said := &s.Rows()[k]
		if f.follows&followsSize != 0 {
			c.Size = int64(said.Size())
		}
		c.Spot = r.spot(said)
	} else if c.Spot = (objects.Spot{}); f.links[0] >= 0 {
		c.Content = *s.ID(s.Place(i, int(f.links[0])))
	}
	if f.links[1] >= 0 {
		c.Origin = *s.ID(s.Place(i, int(f.links[1])))
	}
	if f.links[2] >= 0 {
		c.Label = *s.ID(s.Place(i, int(f.links[2])))
	}
	c.Index, c.Time = int(now.index), time.UnixMilli(now.ms).UTC()
	c.Depth, c.Weight, c.Mark = now.depth, now.weight, r.markOf(now.mark)
}

// spot is where what a commit says lies, if that is content.
func (r *rows) spot(said *objects.Row) objects.Spot {
	if r.body == 0 || !r.forms[said.Form()].says {
		return objects.Spot{}
	}
	return said.Spot(r.body)
}

// markOf is the mark that a state says; zero: there is none.
func (r *rows) markOf(mark int32) (id objects.ID) {
	switch {
	case mark > 0:
		return *r.sheet.ID(int(mark) - 1)
	case mark < 0:
		return r.marks[-mark-1]
	}
	return id
}
