// Package maintain checks, copies, repairs and shrinks stores, and removes content from them.
//
// For most uses: [Fsck] finds damage, [Recover] salvages the intact objects of a damaged store
// into a new one, [Backup] copies a store in use, [GC] removes unreachable objects and repacks a
// store, [Scan] finds stored secrets, and [Purge] removes content for good.
//
// Fsck and Recover take the url of a store, which may be too damaged to open normally; the other
// functions take a [tract.Repo]. Options are structs whose zero value is the default; their
// Progress may be nil.
//
// Promises: Fsck, Backup and Scan never change a store, and Recover never changes the old
// one. GC removes only objects that no ref leads to or ever led to. Purge removes only the
// content that its options select, equal content, and transcripts that repeat it; the commits and
// their hashes stay. A target folder exists only when it is complete. No function reaches copies
// of a store, remotes or providers.
package maintain
