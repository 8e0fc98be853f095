// Package maintain checks, repairs and shrinks stores: damage is found by [Fsck], and
// [Recover] salvages what is intact; [Backup] copies a store in use, and [GC] repacks it.
//
// Fsck and Recover take the url of a store, which need not open; the others take a
// [tract.Repo]. A struct of options says more about one call, and its zero value is the
// default; its Progress may be nil.
package maintain
