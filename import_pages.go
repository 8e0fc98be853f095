package tract

import (
	"context"
	"iter"
)

// How many messages are handed over at once, and how many such pages may wait.
const (
	pageSize  = 128
	pagesAway = 4
)

// pages hands the messages of a list to the goroutine that makes commits of them, so
// that reading goes on meanwhile.
type pages struct {
	full chan []Foreign
	used chan []Foreign // to be filled again
	over chan error     // what ended the goroutine
}

// all takes all messages of a list.
func (m *importing) all(ctx context.Context, list iter.Seq2[Foreign, error]) error {
	p := pages{make(chan []Foreign, pagesAway), make(chan []Foreign, 2*pagesAway), make(chan error, 1)}
	kept := context.WithoutCancel(ctx) // who stops it keeps what was read
	go func() { p.over <- p.empty(func(f *Foreign) error { return m.add(kept, f) }) }()
	ended, err := p.fill(ctx, list)
	close(p.full)
	if !ended {
		if bad := <-p.over; bad != nil {
			return bad // it was before what ended the list
		}
	}
	return err
}

// fill hands over what a list yields, until it or the goroutine ends, and tells whether
// the goroutine has. What is before an error of the list is handed over.
func (p *pages) fill(ctx context.Context, list iter.Seq2[Foreign, error]) (ended bool, err error) {
	page := make([]Foreign, 0, pageSize)
	for f, bad := range list {
		if err = bad; err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
		if page = append(page, f); len(page) < pageSize {
			continue
		}
		select {
		case p.full <- page:
		case err := <-p.over:
			return true, err
		}
		select {
		case page = <-p.used:
		default:
			page = make([]Foreign, 0, pageSize)
		}
	}
	if len(page) > 0 {
		select {
		case p.full <- page:
		case bad := <-p.over:
			return true, bad
		}
	}
	return false, err
}

// empty takes messages until there are no more, or one gives an error.
func (p *pages) empty(take func(*Foreign) error) error {
	for page := range p.full {
		for i := range page {
			if err := take(&page[i]); err != nil {
				return err
			}
		}
		clear(page)
		p.used <- page[:0]
	}
	return nil
}
