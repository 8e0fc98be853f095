// Package importers reads conversations with models from the files of other programs: message
// arrays and request bodies of OpenAI and Anthropic, one in a file or one on each line, and the
// session logs of Claude Code.
//
// For most uses: call [Read] with a file and range over the entries that it yields. An [Entry] is
// one message with content blocks, and with its place in the source: the session, the thread
// within the session, and the block that it follows. Entries have the order of the source. The
// file is read line by line, so that a log of any length needs little memory; a line may have up
// to 64 MiB. Reasoning keeps its seals. A damaged line is skipped and reported; the others are
// read.
//
// The package stores nothing and knows no branches. If a file has grown, Read yields the same
// entries with the same ids as before, and then the new ones.
package importers
