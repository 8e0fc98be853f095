package recorder

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/tract-vcs/tract/llm"
)

// maxBody is how many bytes of a request or an answer are looked at.
const maxBody = 64 << 20

// copied is the bytes of a body as they went by. Whoever writes never waits for who
// reads.
type copied struct {
	mu    sync.Mutex
	more  sync.Cond
	bytes []byte
	ended bool
	err   error // why it ended; nil: it was whole
	read  int
}

func newCopied() *copied {
	c := &copied{}
	c.more.L = &c.mu
	return c
}

func (c *copied) write(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if len(c.bytes)+len(p) > maxBody {
		c.ended, c.err = true, fmt.Errorf("body: %w", llm.ErrTooLong)
	} else {
		c.bytes = append(c.bytes, p...)
	}
	c.more.Broadcast()
}

// end says that nothing comes any more; only the first time counts.
func (c *copied) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended, c.err = true, err
		c.more.Broadcast()
	}
}

// over tells whether nothing comes any more.
func (c *copied) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Read gives what went by, and waits for more.
func (c *copied) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.read == len(c.bytes) && !c.ended {
		c.more.Wait()
	}
	if c.read < len(c.bytes) {
		n := copy(p, c.bytes[c.read:])
		c.read += n
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	return 0, io.EOF
}

// all waits for the end and gives everything from the beginning.
func (c *copied) all() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended {
		c.more.Wait()
	}
	return bytes.Clone(c.bytes), c.err
}

// tee is a body that is copied while it is read. Nothing is read that its reader
// does not ask for, but for the rest of a refusal: libraries leave that unread.
type tee struct {
	io.ReadCloser
	to      *copied
	ended   func() // called when no more is read, once or more
	refusal bool
	left    bool // Close was called
}

// maxRefusal is how much of the rest of a refusal is read.
const maxRefusal = 64 << 10

func (b *tee) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.write(p[:n])
	if err == io.EOF {
		b.to.end(nil)
	} else if err != nil {
		b.to.end(err)
	}
	if err != nil {
		b.ended()
	}
	return n, err
}

func (b *tee) Close() error {
	if b.refusal && !b.left && !b.to.over() {
		b.left = true
		go func() {
			rest, err := io.ReadAll(io.LimitReader(b.ReadCloser, maxRefusal))
			b.to.write(rest)
			b.to.end(err)
			b.ReadCloser.Close()
		}()
		b.ended()
		return nil
	}
	err := b.ReadCloser.Close()
	b.to.end(errLeft)
	b.ended()
	return err
}
