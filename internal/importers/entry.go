package importers

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/content"
)

// Entry is one message of a conversation.
type Entry struct {
	Importer string // who gave the ids: claude-code, or messages
	Session  string // id of the conversation; of others than the first in a file, where they have none, their number
	Thread   string // empty: the first of the session; else compact-1, fork-2, agent-ID, ...
	From     string // ID of the part that a thread begins after; empty: with nothing before it
	Line     int    // of the file that it begins at, from 1
	Parts    []Part

	Provider, Dialect string
	Model             string
	ResponseID        string
	Finish            string
	Usage             content.Usage
	Compaction        bool              // it stands for what was said before the thread
	Original          map[string]string // what the source knows beside that, by name
}

// Part is one block of a message. Several may come from one place of the source,
// with the same ID.
type Part struct {
	ID    string // of its place in the source; the same whenever the source is read
	Time  time.Time
	Block content.Block
}

// Format is how a file holds conversations.
type Format string

// The formats. Auto looks at the file.
const (
	Auto       Format = "auto"
	OpenAI     Format = "openai"      // a message array or a request body, or one a line
	Anthropic  Format = "anthropic"   // likewise
	ClaudeCode Format = "claude-code" // a session log
)

// Formats lists the formats.
func Formats() []Format { return []Format{Auto, OpenAI, Anthropic, ClaudeCode} }

// LineError says which line of a file cannot be read.
type LineError struct {
	File  string
	Line  int  // from 1
	Last  bool // nothing follows the line: it was probably cut off
	Cause error
}

// Error names the file and the line.
func (e *LineError) Error() string {
	if e.Last {
		return fmt.Sprintf("%s:%d: the last line is damaged: %v", e.File, e.Line, e.Cause)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Cause)
}

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.Cause }

// UnknownError says that a file is in none of the formats.
type UnknownError struct {
	File string
	Why  string
}

// Error says what was found.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: %s", e.File, e.Why)
}
