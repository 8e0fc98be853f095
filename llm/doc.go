// Package llm speaks with models in the words of package content, whatever the
// wire. It knows nothing of stores and histories.
//
// A [Client] answers a [Request] with a [Response]. What else a client can do is
// a second small interface, found by assertion: [Streamer] gives the answer in
// [Event]s as it comes, [ReasoningExtractor] finds thoughts that the client left
// in its text, [Target] turns requests into bytes and bytes into events without
// a network. Package providers has clients that can do all of it; to use another
// transport, implement Client.
//
// An [Accumulator] turns events into a response and loses nothing when they
// break off; who receives the bytes of an answer by himself gives them to a
// providers.Feed, which has one inside. [ServerSent] and [TagSplitter] are the parts that dialects share.
package llm
