package bolt

import (
	"encoding/binary"

	"github.com/tract-vcs/tract/objects"
)

// frame is a frame in the making: the changes of a group, one behind the other as
// they come, so that they are copied once. What has been put stays where it is in
// memory for as long as somebody reads it.
type frame struct {
	b     []byte
	spans []span
}

// span is where a change lies in a frame. One that takes its key away has no value.
type span struct {
	begin       int
	key, keyEnd int32 // from begin on, and so are these:
	value, end  int32
	bucket      uint8
	gone        bool
}

// framing is memory for frames: they lie one behind the other in pieces of it, so that
// one whose length was guessed wrong leaves nothing unused.
type framing struct {
	b     []byte
	spans []span
}

// roomFrames is for about how many frames memory is taken at once, and mostRoom the most
// that is.
const (
	roomFrames = 8
	mostRoom   = 512 << 10
)

// frame begins a frame of about so many bytes and changes. Until it is done no other begins.
func (r *framing) frame(size, changes int) frame {
	if size += frameSize + frameAlign; cap(r.b) < size {
		r.b = make([]byte, 0, max(size, min(roomFrames*size, mostRoom)))
	}
	if cap(r.spans) < changes {
		r.spans = make([]span, 0, changes)
	}
	f := frame{b: r.b[:frameSize], spans: r.spans}
	r.b, r.spans = nil, nil
	return f
}

// done takes back what a frame did not need, but for the zeros that follow it.
func (r *framing) done(f *frame) {
	end := min(int(aligned(int64(len(f.b)))), cap(f.b))
	r.b, f.b = f.b[end:end:cap(f.b)], f.b[:len(f.b):end]
}

func (f *frame) head(bucket int, key []byte, gone bool) *span {
	at := span{bucket: uint8(bucket), begin: len(f.b), gone: gone}
	kind := byte(bucket)
	if gone {
		kind |= deleted
	}
	f.b = append(f.b, kind)
	f.b = binary.AppendUvarint(f.b, uint64(len(key)))
	at.key = int32(len(f.b) - at.begin)
	f.b = append(f.b, key...)
	at.keyEnd = int32(len(f.b) - at.begin)
	at.value, at.end = at.keyEnd, at.keyEnd
	f.spans = append(f.spans, at)
	return &f.spans[len(f.spans)-1]
}

// put adds a change: a key whose value is the pieces, one after the other.
func (f *frame) put(bucket int, key []byte, pieces ...[]byte) {
	at, size := f.head(bucket, key, false), 0
	for _, p := range pieces {
		size += len(p)
	}
	f.b = binary.AppendUvarint(f.b, uint64(size))
	at.value = int32(len(f.b) - at.begin)
	for _, p := range pieces {
		f.b = append(f.b, p...)
	}
	at.end = int32(len(f.b) - at.begin)
}

// putObject adds an object and gives its record.
func (f *frame) putObject(o *objects.Object) []byte {
	at := f.head(objectsNumber, o.ID[:], false)
	f.b = binary.AppendUvarint(f.b, uint64(recordSize(o)))
	at.value = int32(len(f.b) - at.begin)
	f.b = appendObject(f.b, o)
	at.end = int32(len(f.b) - at.begin)
	return f.b[at.begin:][at.value:at.end:at.end]
}

// delete adds a change that takes a key away.
func (f *frame) delete(bucket int, key []byte) { f.head(bucket, key, true) }

// drop takes the last change back. Nobody else has seen it.
func (f *frame) drop() {
	last := len(f.spans) - 1
	f.b, f.spans = f.b[:f.spans[last].begin], f.spans[:last]
}

// cut takes back all changes but the first n. Somebody may be reading the others.
func (f *frame) cut(n int) {
	if n == len(f.spans) {
		return
	}
	end := f.spans[n].begin
	f.b, f.spans = append(make([]byte, 0, 2*end), f.b[:end]...), f.spans[:n]
}

// size is how long the changes are.
func (f *frame) size() int { return len(f.b) - frameSize }

// changes lists what was put, in pieces of the frame.
func (f *frame) changes() []change {
	list := make([]change, len(f.spans))
	for i := range list {
		list[i].bucket = buckets[f.spans[i].bucket]
		list[i].key, list[i].value = f.edit(i)
	}
	return list
}

// edit is one of them; without a value it takes the key away.
func (f *frame) edit(i int) (key, value []byte) {
	s := &f.spans[i]
	b := f.b[s.begin:]
	if !s.gone {
		value = b[s.value:s.end:s.end]
	}
	return b[s.key:s.keyEnd:s.keyEnd], value
}

// seal gives the frame as it is written at a place in the journal, with the zeros
// behind it. After that nothing is put into it any more.
func (f *frame) seal(b binding, at int64, seq uint64) []byte {
	head, size := f.b[:frameSize], len(f.b)
	copy(head, frameMagic)
	binary.BigEndian.PutUint32(head[4:], uint32(size-frameSize))
	binary.BigEndian.PutUint64(head[8:], b.gen)
	binary.BigEndian.PutUint64(head[16:], seq)
	binary.BigEndian.PutUint64(head[24:], frameSum(b.salt, at, head, f.b[frameSize:]))
	f.b = append(f.b, make([]byte, frameAlign)[:aligned(int64(size))-int64(size)]...)
	return f.b
}
