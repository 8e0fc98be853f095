// Package importers reads what other programs kept of conversations with models:
// message arrays and request bodies of OpenAI and Anthropic, alone or one a line,
// and the session logs of Claude Code.
//
// For most uses: give [Read] a file and range over what it yields. An [Entry] is
// one message in the words of package content, with its place in the source: the
// session, the thread of it, and the block that it follows. Entries come in the
// order of the source and line by line, so that a log of any length is read in
// little memory; a line may have 64 MiB. Thoughts keep their seals. What is damaged costs only
// its own line.
//
// The package stores nothing and knows no branches. What it yields for a file that
// has grown begins with what it yielded before, with the same ids.
package importers
