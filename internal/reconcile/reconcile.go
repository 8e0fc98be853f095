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
// [Compare] plans how a list goes on from a conversation, of which a [Builder] keeps the
// entries. [CompareMessages] compares two conversations for a caller that wants no more than
// their common beginning.
package reconcile

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
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
// its first Match.Known blocks, or the list ends there.
func CompareMessages(history, list []content.Message) Match {
	ours, theirs := flatten(history), flatten(list)
	at := make(map[objects.ID]int, len(ours))
	last := -1 // block of the history that counts
	for i, b := range ours {
		if b.counts {
			at[b.key], last = i, i
		}
	}
	m, end := Match{}, -1
	for i, b := range slices.Backward(theirs) {
		if known, ok := at[b.key]; ok && b.counts {
			m, end = Match{Known: known + 1, Listed: i + 1}, known
			break
		}
	}
	same := func(a, b block) bool { return !a.counts && !b.counts && a.role == b.role && a.unit == b.unit }
	for m.Known < len(ours) && m.Listed < len(theirs) && same(ours[m.Known], theirs[m.Listed]) {
		m.Known, m.Listed = m.Known+1, m.Listed+1
	}
	if m.Whole = end == last; m.Whole {
		rest := ours[m.Known:]
		for m.Listed < len(theirs) && slices.ContainsFunc(rest, func(b block) bool { return same(b, theirs[m.Listed]) }) {
			m.Listed++
		}
		m.Known = len(ours)
	}
	return m
}

// block is a block of a conversation and how it is compared.
type block struct {
	role   content.Role
	unit   unit
	counts bool
	key    objects.ID // up to and including the block, where it counts
}

func flatten(messages []content.Message) []block {
	var list []block
	var all trail
	calls := map[string]objects.ID{}
	for _, m := range messages {
		for _, b := range m.Blocks {
			one := block{role: m.Role}
			if one.unit, one.counts = unitOf(m.Role, b, calls); one.counts {
				one.key = all.add(m.Role, one.unit)
			}
			list = append(list, one)
		}
	}
	return list
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
