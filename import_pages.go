package tract

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tract-vcs/tract/content"
)

// How many messages are handed over at once, and how many such pages may wait for the
// next goroutine.
const (
	pageSize  = 128
	pagesAway = 4
)

// pages hands the messages of a list to a goroutine that masks their secrets, and from
// there to one that makes commits of them, so that reading goes on meanwhile.
type pages struct {
	full   chan *page
	masked chan *page
	used   chan *page // to be filled again
	over   chan error // what ended the goroutine that makes commits

	masks masking
	grows atomic.Bool // something is new: before that nothing need be masked
}

// page is some messages.
type page struct {
	list   []Foreign
	blocks []content.Block // of all their parts, as they are to be stored; none: nobody has looked
	found  [][]Secret      // in each of these; none: in none
}

// safe is the parts of a message as they are to be stored, if somebody has looked.
type safe struct {
	blocks []content.Block
	found  [][]Secret
}

// all takes all messages of a list.
func (m *importing) all(ctx context.Context, list iter.Seq2[Foreign, error]) error {
	p := &m.pages
	p.full, p.masked, p.used = make(chan *page, pagesAway), make(chan *page, pagesAway), make(chan *page, 4*pagesAway)
	p.over = make(chan error, 1)
	kept := context.WithoutCancel(ctx) // who stops it keeps what was read
	go p.mask()
	go func() {
		defer close(p.over)
		p.over <- p.empty(func(f *Foreign, s safe) error { return m.add(kept, f, s) })
		p.grows.Store(false)
		for range p.masked { // nobody wants them any more
		}
	}()
	ended, err := p.fill(ctx, list)
	close(p.full)
	if !ended {
		if bad := <-p.over; bad != nil {
			err = bad // it was before what ended the list
		}
	}
	for range p.over { // until nobody reads a message any more
	}
	return err
}

// fill hands over what a list yields, until it or the goroutine that takes it ends, and
// tells whether the goroutine has. What is before an error of the list is handed over.
func (p *pages) fill(ctx context.Context, list iter.Seq2[Foreign, error]) (ended bool, err error) {
	now := p.fresh()
	for f, bad := range list {
		if err = bad; err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
		if now.list = append(now.list, f); len(now.list) < pageSize {
			continue
		}
		select {
		case p.full <- now:
		case err := <-p.over:
			return true, err
		}
		now = p.fresh()
	}
	if len(now.list) > 0 {
		select {
		case p.full <- now:
		case bad := <-p.over:
			return true, bad
		}
	}
	return false, err
}

// fresh is a page to be filled.
func (p *pages) fresh() *page {
	select {
	case now := <-p.used:
		return now
	default:
		return &page{list: make([]Foreign, 0, pageSize)}
	}
}

// mask masks the secrets of all messages, from where on they are new.
func (p *pages) mask() {
	defer close(p.masked)
	for now := range p.full {
		if p.grows.Load() {
			p.masks.page(now)
		}
		p.masked <- now
	}
}

// page masks a page.
func (m *masking) page(p *page) {
	for i := range p.list {
		for _, part := range p.list[i].Parts {
			b := part.Block
			if content.CheckBlock(b) == nil { // others end the import
				b = m.block(b, true)
			}
			if p.blocks = append(p.blocks, b); len(m.found) > 0 {
				p.found = append(p.found, make([][]Secret, len(p.blocks)-len(p.found))...)
				p.found[len(p.blocks)-1], m.found = m.found, nil
			}
		}
	}
	if len(p.found) > 0 {
		p.found = append(p.found, make([][]Secret, len(p.blocks)-len(p.found))...)
	}
}

// empty takes messages until there are no more, or one gives an error.
func (p *pages) empty(take func(*Foreign, safe) error) error {
	for now := range p.masked {
		var rest safe
		rest.blocks, rest.found = now.blocks, now.found
		for i := range now.list {
			if err := take(&now.list[i], rest.cut(len(now.list[i].Parts))); err != nil {
				return err
			}
		}
		clear(now.list)
		clear(now.blocks)
		now.list, now.blocks, now.found = now.list[:0], now.blocks[:0], nil
		p.used <- now
	}
	return nil
}

// cut takes the next n parts.
func (s *safe) cut(n int) (first safe) {
	if len(s.blocks) > 0 {
		first.blocks, s.blocks = s.blocks[:n], s.blocks[n:]
	}
	if len(s.found) > 0 {
		first.found, s.found = s.found[:n], s.found[n:]
	}
	return first
}

// part is a part of a message as it is to be stored, and what was found in it.
func (s safe) part(i int, b content.Block, m *masking) content.Block {
	if len(s.blocks) == 0 {
		return m.block(b, true)
	}
	if len(s.found) > 0 {
		m.found = append(m.found, s.found[i]...)
	}
	return s.blocks[i]
}
