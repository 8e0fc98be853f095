// Package objects keeps immutable bytes under their hash, and names for them.
//
// An [Object] is bytes with the ids of its parents and links; its [ID] is the
// BLAKE3 hash of all of that, so it can never change. A [Ref] is a name that
// points at one object and moves only by compare-and-swap. What the bytes mean
// is the business of the rooms above.
//
// [Open] gives a [Store] by URL: "mem:" is in this package, other engines are
// packages of their own which register a scheme when imported. Whoever only
// reads asks for a [Reader] or a [RefReader]. Every engine is held to the
// promises written at these interfaces by package objectstest.
//
// Every object that leaves a store from [Open] was hashed and compared with its
// id: wrong bytes are never returned. Ids in this package are always whole;
// abbreviations are for people, and for [Reader].Find.
package objects
