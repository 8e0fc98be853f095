// Package reconcile compares a client's list of messages with a history, and has nothing to do with merge.
// The list is the whole conversation, which the client sends again with each request; the
// comparison finds what is new in the list and where it goes. The package reads no store.
//
// A key is the hash of a conversation up to one block. It covers what a client cannot
// change when it sends the conversation again: roles, text, names and arguments of calls,
// and results. It does not cover reasoning, cache marks, ids, the order of parallel calls
// and of their results, empty lines and white space at the ends of a text, any white space
// in the text of a model, the way JSON is written, and the calls that a provider ran by
// itself. Neither does it cover how the blocks of one role are divided into blocks
// and messages.
//
// A [Builder] makes the entries of a conversation, and [Compare] plans how a list goes on from
// it. [CompareMessages] is for a caller that wants no more than the common beginning of two
// conversations; both find it by the same entries.
package reconcile

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tract-vcs/tract/content"
)

// Match is how much of a history a list repeats. Both counts are of blocks, from the
// first, whatever messages they are in.
type Match struct {
	Known  int  // blocks of the history that the list repeats or may leave out
	Listed int  // blocks of the list that the history has: the others are new
	Whole  bool // the list repeats the whole history: what is new goes after its end
}

// CompareMessages finds the longest beginning of a list that is also a beginning of a history.
// Where Match.Whole is false, the history goes on in another way than the list after
// its first Match.Known blocks, or the list ends there. A block has the role of its message.
func CompareMessages(history, list []content.Message) Match {
	ours := (&Builder{messageRoles: true}).Add(history, nil)
	theirs := (&Builder{messageRoles: true}).Add(list, nil)
	m := Match{}
	m.Known, m.Listed = commonBeginning(ours, theirs)
	m.Whole = !slices.ContainsFunc(ours[m.Known:], func(e Entry) bool { return e.Counts })
	for m.Known < len(ours) && m.Listed < len(theirs) && ours[m.Known].repeatedBy(theirs[m.Listed]) {
		m.Known, m.Listed = m.Known+1, m.Listed+1
	}
	if m.Whole {
		rest := ours[m.Known:]
		for m.Listed < len(theirs) && slices.ContainsFunc(rest, func(e Entry) bool { return e.repeatedBy(theirs[m.Listed]) }) {
			m.Listed++
		}
		m.Known = len(ours)
	}
	return m
}

// Rest returns a conversation without its first n blocks.
func Rest(messages []content.Message, n int) []content.Message {
	for i, m := range messages {
		if n < len(m.Blocks) {
			return append([]content.Message{{Role: m.Role, Blocks: m.Blocks[n:]}}, messages[i+1:]...)
		}
		n -= len(m.Blocks)
	}
	return nil
}

// ForkSuffix stands between the name of a branch and the number of a fork of it.
const ForkSuffix = "/fork-"

// forkNumber finds the end of the name of a fork.
var forkNumber = regexp.MustCompile(ForkSuffix + `[0-9]{1,6}$`)

// ForkedFrom returns the name of the branch that a fork is of, and the name of any other
// branch itself.
func ForkedFrom(branch string) string { return forkNumber.ReplaceAllString(branch, "") }

// ForkName returns the first name for a fork of a branch that is not taken.
func ForkName(branch string, taken func(name string) bool) string {
	for n := 2; ; n++ {
		if name := fmt.Sprint(ForkedFrom(branch), ForkSuffix, n); !taken(name) {
			return name
		}
	}
}
