// Package llm is what tract and models say to each other, in the blocks of package
// content and whatever the wire format. It knows nothing of stores and histories.
//
// A [Client] answers a [Request] with a [Response]. What else a client can do is a
// second small interface, found by assertion: a [Streamer] yields the response in events
// while it arrives, a [ReasoningExtractor] finds reasoning that the client left in its
// text, a [Target] turns requests into bytes and bytes into events without a network, a
// [Checker] knows what its provider refuses.
//
// Package providers has clients that can do all of it. To use another transport,
// implement Client; to use the bytes of another library, see providers.Feed.
//
// An [Accumulator] turns events into a response and loses nothing when they break off.
// The package sends nothing and parses no wire format.
package llm
