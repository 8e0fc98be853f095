// Package objects stores immutable bytes under their hash, and names for them.
//
// An [Object] is a kind, parents, links and data; its [ID] is the BLAKE3 hash of all of these, so
// that it can never change. A [Ref] is a name for one object and moves only by compare-and-swap.
// The packages above decide what the bytes mean.
//
// [Open] opens a [Store] by URL: "mem:" is in this package, other engines are packages of their own
// that register a scheme when they are imported. A function that only reads takes a [Reader] or a
// [RefReader]. What some engines can do in addition is in optional interfaces, to be found with
// [As]: [Watcher], [Maintainer], [BulkReader]. Package objectstest tests the promises of all of them.
//
// Every object that a store from [Open] returns was hashed and compared with its id: wrong bytes
// are never returned. Ids in this package are always complete; abbreviations are for people, and
// for [Reader].Find.
package objects
