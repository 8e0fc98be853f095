package importers

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/content"
)

// Entry is one message of a conversation.
type Entry struct {
	Importer string // source of the ids: claude-code or messages
	Session  string // id of the conversation; without one, its number in the file, or empty for the first
	Thread   string // empty: the first of the session; else compact-1, fork-2, agent-ID, ...
	From     string // ID of the part that the thread follows; empty: none
	Line     int    // line of the file at which it begins, from 1
	Parts    []Part

	Provider, Dialect string
	Model             string
	ResponseID        string
	Finish            string
	Usage             content.Usage
	Compaction        bool              // it is a summary of the conversation before the thread
	Original          map[string]string // other fields of the source, by name
}

// Part is one block of a message. Several parts may come from one place in the source and have the
// same ID.
type Part struct {
	ID    string // id of its place in the source; the same each time the source is read
	Time  time.Time
	Block content.Block
}

// Format is the format of a file with conversations.
type Format string

// The formats. Auto detects the format.
const (
	Auto       Format = "auto"
	OpenAI     Format = "openai"      // a message array or a request body, or one on each line
	Anthropic  Format = "anthropic"   // likewise
	ClaudeCode Format = "claude-code" // a session log
)

// Formats lists the formats.
func Formats() []Format { return []Format{Auto, OpenAI, Anthropic, ClaudeCode} }

// LineError reports a line of a file that cannot be read.
type LineError struct {
	File  string
	Line  int  // from 1
	Last  bool // it is the last line: it was probably cut off
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

// UnknownError reports that a file is in none of the formats.
type UnknownError struct {
	File string
	Why  string
}

// Error returns the file and the reason.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: %s", e.File, e.Why)
}
