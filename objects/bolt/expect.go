package bolt

import (
	"context"
	"os"
)

const (
	// readAtOnce is how much of a file is read at one look, for the system to have it: a
	// writer waits so long.
	readAtOnce = 1 << 20
	// readPiece is how much of that at a time: it lies in the cache of the processor.
	readPiece = 128 << 10
)

// Expect is objects.Bulk. When about all of the file will be read, it is read from its
// beginning to its end, if it is not in memory: a disk gives it so in less than half the
// time that it takes from head to head and from body to body, or told in advance.
func (s *store) Expect(size int64) (read func(context.Context)) {
	return func(ctx context.Context) {
		r := reading{size: size}
		for ctx.Err() == nil && !r.done {
			if err := s.view(ctx, "read", r.read); err != nil {
				break // who needs it is told
			}
			s.ahead.Store(!r.done)
		}
		s.ahead.Store(false)
	}
}

// reading reads a file once.
type reading struct {
	size   int64 // that will be needed of it
	at     int64
	number uint64
	room   []byte
	done   bool
}

// read reads the next piece.
func (r *reading) read(l *look) error {
	f, ok := l.file.(*os.File)
	all := int64(l.meta.high) * int64(l.meta.pageSize)
	if r.room == nil {
		r.number, r.done = l.number, !ok || r.size < all/2 || inMemory(f, all/4) && inMemory(f, all/2)
		r.room = make([]byte, readPiece)
	}
	if r.done = r.done || l.number != r.number; r.done {
		return nil
	}
	for end := min(r.at+readAtOnce, all); r.at < end; {
		n, err := f.ReadAt(r.room[:min(readPiece, end-r.at)], r.at)
		if r.at += int64(n); err != nil {
			return err
		}
	}
	r.done = r.at >= all
	return nil
}
