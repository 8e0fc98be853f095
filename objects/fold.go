package objects

import "sync"

// Fold tells the data of commits in few bytes: by what they have in common, and by
// what follows from the commits and links beside them in a [Sheet]. The room that
// knows what the data means registers one. All methods may be called by any number of
// goroutines at once.
type Fold interface {
	// Fold tells the data of each commit of a list, whose objects lie as in a sheet;
	// what it says of other objects is not looked at. It need not fold a commit, nor
	// be right: what does not unfold to the very same bytes is kept as it is.
	Fold(list []Object) []Folded

	// Unfold looks at a sheet, which may be damaged. It may use the memory of what it
	// gave before and nobody uses any more, unless that is nil.
	Unfold(s *Sheet, before Unfolded) Unfolded
}

// Folded is the data of an object in short. Without a Tag it is not folded.
type Folded struct {
	Tag  []byte // what it has in common with others of its sheet
	Own  uint64
	Rest []byte
}

// Unfolded gives the data of the folded objects of one sheet. It may be used by any
// number of goroutines at once.
type Unfolded interface {
	// Data is the data of a folded object, the caller's own: in the free room behind
	// room, or in memory of its own where that is not enough.
	Data(i int, room []byte) ([]byte, error)
}

var (
	folds   [256]Fold
	foldNow byte // with which sheets are made; 0: with none
	foldsMu sync.RWMutex
)

// RegisterFold makes a fold known by its number, which is in sheets and never changes.
// The highest is the one that sheets are made with. It is called from an init function
// and panics when the number is taken, or 0.
func RegisterFold(number byte, f Fold) {
	foldsMu.Lock()
	defer foldsMu.Unlock()
	if number == 0 || folds[number] != nil {
		panic("objects: two folds of one number")
	}
	folds[number] = f
	foldNow = max(foldNow, number)
}

// foldOf is the fold with a number; nil: there is none.
func foldOf(number byte) Fold {
	foldsMu.RLock()
	defer foldsMu.RUnlock()
	return folds[number]
}

func newestFold() (byte, Fold) {
	foldsMu.RLock()
	defer foldsMu.RUnlock()
	return foldNow, folds[foldNow]
}
