// Package page reads the pages and B+trees of a bbolt file without trusting them.
//
// bbolt maps its file into memory and follows what is there: a damaged page becomes a
// fault, an endless recursion or an allocation without limit. This package reads with
// ReadAt and checks every size, offset and page number before it is used, so that damage
// is an error that names the page. It only reads, never holds a lock, and never trusts
// the freelist.
//
// [ReadMeta] finds the current state of a file; a [Reader] reads its buckets.
//
// The file is bbolt's, version 2, in the byte order of the machine:
//
//	page     id u64, flags u16, count u16, overflow u32; then its elements
//	branch   element: pos u32, key size u32, child u64
//	leaf     element: flags u32, pos u32, key size u32, value size u32
//	freelist count page ids, u64 each; if count is 0xffff the first of them is the count
//	meta     magic u32, version u32, page size u32, flags u32, root u64,
//	         sequence u64, freelist u64, high-water mark u64, transaction u64,
//	         FNV-64a of the preceding fields u64
//
// pos counts from the element itself.
package page
