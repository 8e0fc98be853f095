package bolt

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// Nothing in a store says when an object was put, and gc must not take what somebody
// has just put and not named yet. So the file says which pack was the last at some
// times: what lies in that pack or before was there by then.
//
//	folds    in meta, sealed: 1 number of a pack, and how many milliseconds after
//	         1970 it was the last; and so on, ascending
const (
	mostFolds = 64
	foldsStep = int64(time.Hour / time.Millisecond)
)

var foldsKey = []byte("folds")

// folded says that a pack was the last one at a time.
type folded struct {
	pack uint32
	ms   uint64
}

func encodeFolds(list []folded) []byte {
	var numbers []uint64
	for _, f := range list {
		numbers = append(numbers, uint64(f.pack), f.ms)
	}
	var e canonical.Encoder
	e.Uints(1, numbers)
	return seal(foldsKey, e.Bytes())
}

func decodeFolds(value []byte) (list []folded, err error) {
	if value == nil {
		return nil, nil // a store that was never folded
	}
	record, err := unseal(foldsKey, value)
	if err != nil {
		return nil, err
	}
	d := canonical.NewDecoder(record)
	for f := range d.Fields() {
		if f != 1 {
			continue
		}
		numbers := d.Uints()
		for ; len(numbers) > 1; numbers = numbers[2:] {
			list = append(list, folded{uint32(numbers[0]), numbers[1]})
		}
		if len(numbers) > 0 {
			d.Refuse("half a time")
		}
	}
	return list, d.Err()
}

// noteFold is the change that says which pack is the last now, if it is time to.
func (l *snapshot) noteFold(changes []journal.Change, now time.Time) ([]journal.Change, error) {
	value, err := l.get(metaBucket, foldsKey)
	if err != nil {
		return nil, err
	}
	list, err := decodeFolds(value)
	if err != nil {
		return nil, errors.Join(errors.New("folds"), err)
	}
	last := uint32(0)
	for _, c := range changes {
		if c.Bucket == headsBucket {
			last = max(last, binary.BigEndian.Uint32(c.Key))
		}
	}
	ms := uint64(max(now.UnixMilli(), 0))
	if last == 0 || len(list) > 0 && int64(ms-list[len(list)-1].ms) < foldsStep {
		return nil, nil
	}
	if list = append(list, folded{last, ms}); len(list) > mostFolds {
		var thin []folded
		for i, f := range list {
			if i >= mostFolds/2 || i%2 == 0 {
				thin = append(thin, f)
			}
		}
		list = thin
	}
	return []journal.Change{setKey(metaBucket, foldsKey, encodeFolds(list))}, nil
}

// oldest gives the last pack that was there before a time; 0: none is known.
func packBefore(list []folded, t time.Time) (pack uint32) {
	for _, f := range list {
		if int64(f.ms) <= t.UnixMilli() {
			pack = max(pack, f.pack)
		}
	}
	return pack
}
