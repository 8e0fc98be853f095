// Package requestbody keeps the bodies of requests as other programs sent them, in objects of kind
// body. A client repeats most of a body in its next request, so a body is stored as a difference to
// the one before it in the conversation, its base. docs/format.md specifies the record.
//
// For most uses: [Encode] makes the objects of a body, and [Read] returns a body. When a base is
// purged, [Encode] first stores each body that differs from it whole, and a ref leads from the id of
// the body to that copy (refs.Bodies), because the manifest that links to the body never changes.
package requestbody

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/internal/lru"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

const (
	// MaxSize is the largest size of a body in bytes.
	MaxSize = 64 << 20

	// maxChain bounds the work of reading a body: the sum of the sizes of a difference and of the
	// bodies that it is based on, in units of chainUnit, each rounded up.
	maxChain  = 256
	chainUnit = 1 << 20

	// A difference of so many bytes or more is compressed with a dictionary, which begins so many bytes
	// before it in the base, and has at most so many bytes. For shorter ones it would save 2 % of the
	// captured bodies, and take most of the time; a larger dictionary costs much time too.
	minDifference    = 4 << 10
	dictionaryBefore = 64 << 10
	maxDictionary    = 1 << 20

	// maxInline is the largest frame that is stored in the object itself and not in chunks.
	maxInline = objects.MaxSize - 128
)

// Body is the body of a request.
type Body struct {
	ID     objects.ID
	Data   []byte     // shared: it must not be changed
	Hash   objects.ID // of the data
	Masked bool       // secrets were masked: the client sent other bytes
	chain  uint64

	manifest objects.ID // that links to it; zero: not known
}

// manifestOrID returns the key of a body in a cache: the manifest that links to it, as long as it is known.
func (b *Body) manifestOrID() objects.ID { return cmp.Or(b.manifest, b.ID) }

// record is the object of a body without its frame.
type record struct {
	id     objects.ID
	base   objects.ID // zero: the body is stored whole
	chunks []objects.ID

	size           int
	hash           objects.ID // of the body
	masked         bool
	chain          uint64
	prefix, suffix int // bytes at the beginning and at the end that the base has too
	frame          []byte
}

func (d *record) fields(r *canonical.Record) {
	canonical.Number(r, 1, &d.size, MaxSize+1)
	r.Hash(2, (*[32]byte)(&d.hash))
	r.Bool(3, &d.masked)
	r.Uint(4, &d.chain)
	canonical.Number(r, 5, &d.prefix, MaxSize+1)
	canonical.Number(r, 6, &d.suffix, MaxSize+1)
	r.Raw(7, &d.frame)
}

// parse reads the object of a body. Anything else is a *[objects.CorruptError].
func parse(obj objects.Object) (*record, error) {
	d := &record{id: obj.ID, base: obj.FirstParent(), chunks: obj.Links}
	r := canonical.NewReader(obj.Data)
	d.fields(&r)
	switch {
	case obj.Kind != objects.KindBody || len(obj.Parents) > 1:
		r.Refuse(fmt.Sprintf("a %s with %d parents", obj.Kind, len(obj.Parents)))
	case d.prefix+d.suffix > d.size || d.base.IsZero() && d.prefix+d.suffix > 0:
		r.Refuse(fmt.Sprintf("%d and %d bytes of a base in %d", d.prefix, d.suffix, d.size))
	case d.base.IsZero() && d.chain != chainUnits(d.size), !d.base.IsZero() && (d.chain <= chainUnits(d.size) || d.chain > maxChain):
		r.Refuse(fmt.Sprintf("a chain of %d", d.chain))
	case len(d.frame) > 0 && len(d.chunks) > 0:
		r.Refuse("a frame and chunks")
	}
	if err := r.Err(); err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("body record: %w", err)}
	}
	return d, nil
}

// Check returns a *[objects.CorruptError] for an object that is no valid body. It does not
// decompress it.
func Check(obj objects.Object) error {
	_, err := parse(obj)
	return err
}

// chainUnits returns what a body of a size adds to the length of a chain.
func chainUnits(size int) uint64 { return max(1, uint64(size+chainUnit-1)/chainUnit) }

// dictionary returns the part of a base with which the changed bytes after a prefix are compressed;
// empty: none.
func dictionary(base []byte, prefix, changed int) []byte {
	if changed < minDifference {
		return nil
	}
	begin := max(0, prefix-dictionaryBefore)
	return base[begin:min(len(base), begin+maxDictionary)]
}

// Encode returns the objects of a body, the last of which is the body itself: a difference to base,
// or the whole body if base is nil or its chain is too long. The body must have MaxSize bytes at most.
func Encode(data []byte, masked bool, base *Body) (*Body, []objects.Object) {
	d := record{size: len(data), hash: objects.Hash(data), masked: masked, chain: chainUnits(len(data))}
	var parents, chunks []objects.ID
	var old []byte
	if base != nil && base.chain+d.chain <= maxChain {
		parents = []objects.ID{base.ID}
		d.chain += base.chain
		old = base.Data
		d.prefix = CommonPrefix(old, data)
		d.suffix = commonSuffix(old[d.prefix:], data[d.prefix:])
	}
	changed := data[d.prefix : len(data)-d.suffix]
	switch dict := dictionary(old, d.prefix, len(changed)); {
	case len(changed) == 0:
	case len(dict) == 0:
		d.frame = compression.CompressFast(nil, changed)
	default:
		d.frame = compression.CompressWith(dict, changed)
	}
	var put []objects.Object
	if len(d.frame) > maxInline {
		for piece := range slices.Chunk(d.frame, objects.MaxSize) {
			chunk := objects.New(objects.KindChunk, nil, nil, piece)
			put, chunks = append(put, chunk), append(chunks, chunk.ID)
		}
		d.frame = nil
	}
	var r canonical.Record
	d.fields(&r)
	obj := objects.New(objects.KindBody, parents, chunks, r.Bytes())
	return &Body{ID: obj.ID, Data: data, Hash: d.hash, Masked: masked, chain: d.chain}, append(put, obj)
}

// CommonPrefix returns how many bytes at the beginning two bodies have in common.
func CommonPrefix(a, b []byte) (n int) {
	const step = 4 << 10
	for n+step <= min(len(a), len(b)) && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// commonSuffix returns how many bytes at the end two bodies have in common.
func commonSuffix(a, b []byte) (n int) {
	const step = 4 << 10
	for n+step <= min(len(a), len(b)) && bytes.Equal(a[len(a)-n-step:len(a)-n], b[len(b)-n-step:len(b)-n]) {
		n += step
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// decode returns the body of a record, given its base.
func (d *record) decode(base *Body) (*Body, error) {
	b := &Body{ID: d.id, Hash: d.hash, Masked: d.masked, chain: d.chain}
	var old []byte
	if base != nil {
		old = base.Data
	}
	if d.prefix+d.suffix > len(old) || base != nil && d.chain != base.chain+chainUnits(d.size) {
		return nil, errors.New("does not fit its base")
	}
	changed := d.size - d.prefix - d.suffix
	b.Data = make([]byte, 0, d.size)
	b.Data = append(b.Data, old[:d.prefix]...)
	if changed > 0 {
		part, err := compression.DecompressWith(dictionary(old, d.prefix, changed), d.frame, changed)
		if err != nil {
			return nil, err
		}
		b.Data = append(b.Data, part...)
	}
	b.Data = append(b.Data, old[len(old)-d.suffix:]...)
	if objects.Hash(b.Data) != d.hash {
		return nil, errors.New("has another hash")
	}
	return b, nil
}

// Store is what bodies are read from.
type Store interface {
	objects.Reader
	objects.RefReader
}

// Read reads a body. A purged one is an [objects.ErrPurged], and so is one whose base was purged
// without a whole copy of the body.
func Read(ctx context.Context, s Store, id objects.ID) (*Body, error) {
	b, err := read(ctx, s, id, nil)
	if err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	return b, nil
}

// read reads a body. difference is the record that has the body as its base; nil when the body itself is
// asked for.
func read(ctx context.Context, s Store, id objects.ID, difference *record) (*Body, error) {
	c := cacheOf(s)
	if b := c.Get(id); b != nil {
		return b, nil
	}
	d, err := readRecord(ctx, s, id)
	if err == nil && difference != nil && difference.chain != d.chain+chainUnits(difference.size) {
		err = difference.corruptError(errors.New("its chain does not fit its base"))
	}
	var base *Body
	if err == nil && !d.base.IsZero() {
		d.frame = nil // there may be maxChain of them
		base, err = read(ctx, s, d.base, d)
		if errors.Is(err, objects.ErrPurged) {
			return readWholeCopy(ctx, s, d, err)
		}
		if err == nil {
			d, err = readRecord(ctx, s, id)
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := d.load(ctx, s, base)
	if err == nil {
		c.Put(b.manifestOrID(), b, len(b.Data)) // also those in between: a scan reads the newest body first
	}
	return b, err
}

func readRecord(ctx context.Context, r objects.Reader, id objects.ID) (*record, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return parse(obj)
}

// corruptError returns the error of a damaged body.
func (d *record) corruptError(cause error) error {
	return &objects.CorruptError{ID: d.id, Cause: cause}
}

// load reads the chunks of a body, if there are any, and decodes it.
func (d *record) load(ctx context.Context, r objects.Reader, base *Body) (*Body, error) {
	for _, id := range d.chunks {
		chunk, err := objects.Read(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if chunk.Kind != objects.KindChunk || len(d.frame)+len(chunk.Data) > MaxSize+MaxSize/64 {
			return nil, d.corruptError(fmt.Errorf("chunk %s does not fit", id.Short()))
		}
		d.frame = append(d.frame, chunk.Data...)
	}
	b, err := d.decode(base)
	if err != nil {
		return nil, d.corruptError(fmt.Errorf("body: %w", err))
	}
	return b, nil
}

// readWholeCopy reads the whole copy of a body whose base was purged, which is cause; cause is returned
// if there is none. The body keeps its id and its chain, which later differences build on.
func readWholeCopy(ctx context.Context, s Store, d *record, cause error) (*Body, error) {
	ref, err := objects.ReadRef(ctx, s, CopyRef(d.id))
	if err != nil || ref.Target.IsZero() {
		return nil, errors.Join(err, cause)
	}
	whole, err := readRecord(ctx, s, ref.Target)
	if err == nil && (!whole.base.IsZero() || whole.hash != d.hash || whole.masked != d.masked) {
		err = whole.corruptError(fmt.Errorf("it is no copy of body %s", d.id.Short()))
	}
	if err != nil {
		return nil, err
	}
	b, err := whole.load(ctx, s, nil)
	if err == nil {
		b.ID, b.chain = d.id, d.chain
		cacheOf(s).Put(b.manifestOrID(), b, len(b.Data))
	}
	return b, err
}

// OfManifest reads the body that a manifest links to; nil if it links to none.
func OfManifest(ctx context.Context, s Store, manifest objects.ID) (*Body, error) {
	if b := cacheOf(s).Get(manifest); b != nil {
		return b, nil
	}
	m, err := compile.ReadManifest(ctx, s, manifest)
	if err != nil || m.Body.IsZero() {
		return nil, err
	}
	return Read(ctx, s, m.Body)
}

// Purge purges the body that a manifest links to. why is the reason in the tombstones.
func Purge(ctx context.Context, s objects.Store, manifest objects.ID, why string) error {
	m, err := compile.ReadManifest(ctx, s, manifest)
	if err != nil {
		return err
	}
	body, err := objects.Read(ctx, s, m.Body)
	if err != nil {
		return err
	}
	var list []objects.Tombstone
	for _, id := range append(body.Links, body.ID) {
		list = append(list, objects.Tombstone{ID: id, Time: time.Now(), Why: why})
	}
	_, err = objects.Purge(ctx, s, list, nil)
	return err
}

// CopyRef returns the name of the ref that leads to the whole copy of a body.
func CopyRef(id objects.ID) string { return refs.Bodies + id.String() }

// Keep adds a body that was just stored with a manifest to the cache of a store, in place of its base:
// the next request of the conversation is a difference to this body.
func Keep(s objects.Reader, manifest objects.ID, b, base *Body) {
	b.manifest = manifest
	c := cacheOf(s)
	if base != nil {
		c.Remove(base.manifestOrID())
	}
	c.Put(b.manifestOrID(), b, len(b.Data))
}

// maxCached is the largest sum of the sizes of the bodies in a cache, in bytes.
const maxCached = 32 << 20

type cacheKey struct{}

// cacheOf returns the cache of a store, which has the bodies that were read or stored last.
func cacheOf(r objects.Reader) *lru.Cache[objects.ID, *Body] {
	c := lru.New[objects.ID, *Body](maxCached)
	if store, ok := r.(objects.Cacher); ok {
		c = store.Cache().Get(cacheKey{}, func() any { return c }).(*lru.Cache[objects.ID, *Body])
	}
	return c
}
