package bolt

import (
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// Yardstick opens a bbolt file of its own, for measuring: put writes a value under
// a new key in a transaction of its own, with all that bbolt does and nothing else.
func Yardstick(path string) (put func(value []byte) error, shut func() error, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType, NoStatistics: true})
	if err != nil {
		return nil, nil, err
	}
	name := []byte("yardstick")
	n := uint64(0)
	return func(value []byte) error {
		n++
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			return b.Put(binary.BigEndian.AppendUint64(nil, n), value)
		})
	}, db.Close, nil
}
