// Package reconcile compares the messages that a client sends with a stored history. A client
// sends its whole conversation with each request; the comparison finds the messages that are new,
// and the place in the history that they follow. The package does not merge branches, and reads no
// store.
//
// A key is the hash of a conversation up to one block. It covers what clients do not change when
// they send the conversation again: roles, text, names and arguments of calls, and results. It
// does not cover what clients may change: reasoning, cache marks, ids, the order of parallel calls
// and of their results, empty lines and white space at the ends of a text, white space in the text
// of a model, the formatting of JSON, the calls that a provider ran by itself, and the division of
// one role's text into blocks and messages.
//
// For most uses: a [Builder] makes the entries of both conversations, and [Compare] returns a
// [Plan] with the new messages and the changes of earlier ones. [CompareMessages] is for a caller
// that needs only the common beginning of two conversations. Both use the same entries.
package reconcile

import (
	"slices"

	"github.com/tract-vcs/tract/content"
)

// Match is how much of a history a list repeats. The counts are numbers of blocks from the
// beginning, in any messages.
type Match struct {
	Known  int  // blocks of the history that the list repeats or may leave out
	Listed int  // blocks of the list that the history has; the others are new
	Whole  bool // the list repeats the whole history: new blocks follow its end
}

// CompareMessages finds the longest beginning of a list that is also a beginning of a history. If
// Match.Whole is false, the list ends after the first Match.Known blocks of the history, or
// differs from it after them. Each block is compared with the role of its message.
func CompareMessages(history, list []content.Message) Match {
	ours := (&Builder{messageRoles: true}).Add(history, nil)
	theirs := (&Builder{messageRoles: true}).Add(list, nil)
	m := Match{}
	m.Known, m.Listed = commonPrefix(ours, theirs)
	m.Whole = !slices.ContainsFunc(ours[m.Known:], func(e Entry) bool { return e.Counts })
	for m.Known < len(ours) && m.Listed < len(theirs) && ours[m.Known].equalsUncounted(theirs[m.Listed]) {
		m.Known, m.Listed = m.Known+1, m.Listed+1
	}
	if m.Whole {
		rest := ours[m.Known:]
		for m.Listed < len(theirs) && slices.ContainsFunc(rest, func(e Entry) bool { return e.equalsUncounted(theirs[m.Listed]) }) {
			m.Listed++
		}
		m.Known = len(ours)
	}
	return m
}
