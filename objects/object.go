package objects

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/zeebo/blake3"
)

// MaxSize is the most bytes that the data of one object may have. Larger
// content is cut into chunks by the room that writes it.
const MaxSize = 1 << 20

// MaxEdges is the most parents, and the most links, that one object may have.
const MaxEdges = 1 << 12

// Kind is the kind of an object. It is part of what is hashed, so that the bytes
// of one kind can never be taken for another.
type Kind uint8

// The kinds. Their numbers are in the hash and never change.
const (
	KindCommit   Kind = 1 + iota // one step of a history
	KindContent                  // one block of a conversation
	KindOrigin                   // where the blocks of one message came from
	KindManifest                 // what one request was made of
	KindList                     // content in chunks
	KindChunk                    // one of them
	KindTools                    // the tool definitions of a request
	KindLabel                    // a person's note on a commit
	KindBody                     // the body of a request as another program sent it
	kindEnd
)

var kindNames = [...]string{"", "commit", "content", "origin", "manifest", "list", "chunk", "tools", "label", "body"}

// String returns the name of the kind.
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return k > 0 && k < kindEnd }

// ParseKind reads the name of a kind.
func ParseKind(name string) (Kind, error) {
	for k := KindCommit; k < kindEnd; k++ {
		if kindNames[k] == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("object kind %q: want one of %v", name, kindNames[1:])
}

// Object is immutable bytes under their hash. Parents and Links are hashed and
// not repeated in Data. An object from a store is the caller's own copy.
type Object struct {
	ID      ID
	Kind    Kind
	Parents []ID
	Links   []ID
	Data    []byte
}

// New makes an object and computes its id. It keeps the slices it is given.
func New(kind Kind, parents, links []ID, data []byte) Object {
	o := Object{Kind: kind, Parents: parents, Links: links, Data: data}
	o.ID = o.Sum()
	return o
}

var hashers = sync.Pool{New: func() any { return blake3.New() }}

// Clone returns a copy that shares nothing with o.
func (o Object) Clone() Object {
	o.Parents, o.Links, o.Data = slices.Clone(o.Parents), slices.Clone(o.Links), bytes.Clone(o.Data)
	return o
}

// FirstParent returns the first parent of a commit; zero: it has none.
func (o *Object) FirstParent() (id ID) {
	if len(o.Parents) > 0 {
		id = o.Parents[0]
	}
	return id
}

// Sum computes the id that the object must have:
//
//	BLAKE3-256("tract 1\0" | kind | n | n parents | m | m links | len | data)
//
// where kind is one byte, n, m and len are unsigned varints (LEB128), and ids
// are their 32 bytes.
func (o Object) Sum() (id ID) { return o.sum() }

// sum is Sum without a copy of the object.
func (o *Object) sum() (id ID) {
	h := hashers.Get().(*blake3.Hasher)
	h.Reset()
	head := make([]byte, 0, 128)
	head = append(head, "tract 1\x00"...)
	head = append(head, byte(o.Kind))
	head = appendCountedIDs(head, o.Parents)
	head = appendCountedIDs(head, o.Links)
	head = binary.AppendUvarint(head, uint64(len(o.Data)))
	_, _ = h.Write(head)
	_, _ = h.Write(o.Data)
	h.Sum(id[:0])
	hashers.Put(h)
	return id
}

// appendCountedIDs appends the number of the ids, as a uvarint, and the ids.
func appendCountedIDs(b []byte, ids []ID) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for i := range ids {
		b = append(b, ids[i][:]...)
	}
	return b
}

// Check returns what is wrong with the object: its kind, a size over a limit, or
// an id that is not its hash. Wrong bytes are a *[CorruptError].
func (o Object) Check() error {
	switch {
	case !o.Kind.Valid():
		return &CorruptError{ID: o.ID, Cause: fmt.Errorf("unknown object kind %d", uint8(o.Kind))}
	case len(o.Data) > MaxSize:
		return fmt.Errorf("object %s: %d bytes: %w of %d bytes", o.ID.Short(), len(o.Data), ErrLimit, MaxSize)
	case len(o.Parents) > MaxEdges || len(o.Links) > MaxEdges:
		return fmt.Errorf("object %s: %d parents, %d links: %w of %d", o.ID.Short(), len(o.Parents), len(o.Links), ErrLimit, MaxEdges)
	}
	if sum := o.sum(); sum != o.ID {
		return &CorruptError{ID: o.ID, Cause: fmt.Errorf("the bytes have the hash %s", sum.Short())}
	}
	return nil
}
