package bolt

import (
	"context"
	"os"
	"sync"
)

const (
	// pullers is how many read a file beside one another.
	pullers = 3
	// pullFirst is how much each of them reads from one place on at first, and pullMost at
	// last: a walk begins at the end and is not to wait there, and a disk is fastest with
	// much that lies together.
	pullFirst, pullMost = 2 << 20, 16 << 20
	// probes is at how many places of a file somebody looks whether it is in memory.
	probes = 16
)

// Expect is objects.Bulk. When about all of the file will be read, it is read from its end
// to its beginning in long pieces, if it is not in memory: that is how a walk comes by, and
// a disk gives it so in less than half the time that it takes from head to head and from
// body to body, or told in advance.
func (s *store) Expect(size int64) (read func(context.Context)) {
	return func(ctx context.Context) {
		p := pulling{size: pullFirst}
		err := s.view(ctx, "read", func(l *look) error { return p.begin(l, size) })
		if err != nil || p.file == nil {
			return // who needs it is told
		}
		defer func() { _ = p.file.Close() }()
		s.ahead.Store(true)
		defer s.ahead.Store(false)
		var all sync.WaitGroup
		for range pullers {
			all.Go(func() { p.read(ctx) })
		}
		all.Wait()
	}
}

// pulling reads a file once, for the system to have it. It sees nothing of what it reads, so
// that it needs no look: somebody may write meanwhile, or put another file in its place.
type pulling struct {
	file *os.File // opened for it alone; nil: there is nothing to be read

	mu   sync.Mutex
	left int64 // before this all is to be read
	size int64 // of the next piece
}

// begin looks whether a file is to be read of which so much will be needed.
func (p *pulling) begin(l *look, size int64) (err error) {
	f, ok := l.file.(*os.File)
	all := int64(l.meta.high) * int64(l.meta.pageSize)
	if !ok || size < all/2 || mostlyInMemory(f, all) {
		return nil
	}
	p.left = all
	p.file, err = again(f)
	return err
}

// mostlyInMemory tells whether so many bytes of a file can be read without the disk. To read
// what is there already costs little, to wait for the disk at each place much.
func mostlyInMemory(f *os.File, all int64) bool {
	for i := range int64(probes) {
		if !inMemory(f, all*(2*i+1)/(2*probes)) {
			return false
		}
	}
	return true
}

// read reads one piece after another. The system notes in an open file how far it was read,
// and reads ahead from there: therefore each has one of his own.
func (p *pulling) read(ctx context.Context) {
	f, err := again(p.file)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for ctx.Err() == nil {
		if from, to := p.next(); from == to || pull(f, from, to) != nil {
			return
		}
	}
}

// next is the piece to be read next; an empty one: all was.
func (p *pulling) next() (from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to = p.left
	p.left = max(0, to-p.size)
	p.size = min(2*p.size, pullMost)
	return p.left, to
}
