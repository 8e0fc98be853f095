package postgres

import (
	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// Values of tract_blob.codec.
const (
	codecPlain = 0
	codecZstd  = 1
)

// compressFrom is the least size of a blob that is compressed.
const compressFrom = 256

const idSize = uint64(len(objects.ID{}))

// readObject decodes a record of package pack and verifies that it has the id. The data shares the memory of
// b.
func readObject(id objects.ID, b []byte) (objects.Object, error) {
	o, err := pack.ParseRecord(b, new([]objects.ID))
	if err != nil {
		return objects.Object{ID: id}, &objects.CorruptError{ID: id, Cause: err}
	}
	o.ID = id
	return o, o.Check()
}

// encodeBlob encodes an object for a row of tract_blob.
func encodeBlob(o *objects.Object) (codec int16, data []byte) {
	data = pack.AppendRecord(nil, o)
	if len(data) >= compressFrom {
		if small := compression.CompressFast(nil, data); len(small) < len(data)*9/10 {
			return codecZstd, small
		}
	}
	return codecPlain, data
}

// readBlob decodes a row of tract_blob and verifies it.
func readBlob(id objects.ID, codec int16, data []byte) (objects.Object, error) {
	if codec == codecZstd {
		plain, err := compression.Append(nil, data)
		if err != nil {
			return objects.Object{ID: id}, &objects.CorruptError{ID: id, Cause: err}
		}
		data = plain
	}
	return readObject(id, data)
}

// readContent makes a content object of its data and verifies it.
func readContent(id objects.ID, data []byte) (objects.Object, error) {
	o := objects.Object{ID: id, Kind: objects.KindContent, Data: data}
	return o, o.Check()
}

// idColumn scans a column that has an id. Null is the zero id. Bytes that are no id become an
// id that no object has, so that whoever reads the object finds the damage.
type idColumn struct{ id *objects.ID }

// ScanBytes is pgtype.BytesScanner.
func (c idColumn) ScanBytes(b []byte) error {
	switch {
	case b == nil:
		*c.id = objects.ID{}
	case uint64(len(b)) == idSize:
		*c.id = objects.ID(b)
	default:
		*c.id = objects.Hash(b)
	}
	return nil
}

// idOrNull returns an id as a parameter; the zero id is null.
func idOrNull(id objects.ID) []byte {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

func idBytes(ids []objects.ID) [][]byte {
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	return list
}
