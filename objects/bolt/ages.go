package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// Objects have no time, and gc must keep what was put recently, since a ref to it may be
// about to be written. So the file records which pack was the last one at some times: the
// objects of that pack and of earlier ones existed by then.
//
//	folds    in meta, checksummed: 1 number of a pack, and how many milliseconds after
//	         1970 it was the last; and so on, ascending
const (
	maxAges = 64
	ageStep = int64(time.Hour / time.Millisecond)
)

var agesKey = []byte("folds")

// packAge is a time at which a pack was the last one.
type packAge struct {
	pack uint32
	ms   uint64
}

func encodeAges(list []packAge) []byte {
	var numbers []uint64
	for _, f := range list {
		numbers = append(numbers, uint64(f.pack), f.ms)
	}
	return encodeRecord(agesKey, func(r *canonical.Record) { r.Uints(1, &numbers) })
}

// packAges reads the ages of packs; there are none before the first checkpoint.
func (l *snapshot) packAges() ([]packAge, error) {
	value, err := l.get(metaBucket, agesKey)
	if err != nil || value == nil {
		return nil, err
	}
	return decodeAges(value)
}

func decodeAges(value []byte) (list []packAge, err error) {
	var numbers []uint64
	err = decodeRecord(agesKey, value, func(r *canonical.Record) {
		if r.Uints(1, &numbers); len(numbers)%2 != 0 {
			r.Refuse("half a time")
		}
	})
	for ; len(numbers) > 1; numbers = numbers[2:] {
		list = append(list, packAge{uint32(numbers[0]), numbers[1]})
	}
	if err != nil {
		err = fmt.Errorf("ages of packs: %w", err)
	}
	return list, err
}

// lastPackIn returns the last pack that changes write; 0: they write none.
func lastPackIn(changes []journal.Change) (last uint32) {
	for _, c := range changes {
		if c.Bucket == headsBucket {
			last = max(last, binary.BigEndian.Uint32(c.Key))
		}
	}
	return last
}

// packAgeChange returns the change that records the time of the last pack; none if there is no pack,
// or if the last record is not old enough.
func (l *snapshot) packAgeChange(last uint32, now time.Time) ([]journal.Change, error) {
	list, err := l.packAges()
	if err != nil {
		return nil, err
	}
	ms := uint64(max(now.UnixMilli(), 0))
	if last == 0 || len(list) > 0 && int64(ms-list[len(list)-1].ms) < ageStep {
		return nil, nil
	}
	if list = append(list, packAge{last, ms}); len(list) > maxAges {
		for i := 1; i <= maxAges/4; i++ {
			list = slices.Delete(list, i, i+1) // every second of the older half
		}
	}
	return []journal.Change{setKey(metaBucket, agesKey, encodeAges(list))}, nil
}

// packBefore returns the last pack that existed at a time, or 0 if none is known.
func packBefore(list []packAge, t time.Time) (pack uint32) {
	for _, f := range list {
		if int64(f.ms) <= t.UnixMilli() {
			pack = max(pack, f.pack)
		}
	}
	return pack
}
