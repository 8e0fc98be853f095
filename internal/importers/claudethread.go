package importers

import (
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
)

// claudeCode assigns the lines of a session log to threads.
//
// Each line names its parent, so the lines form a tree, but most forks of the tree are not forks
// of the conversation: each of several parallel calls is the parent of the next call and of its
// own result, and reports of hooks also have a call as their parent. A line whose parent is in the
// last message of a thread, or in the results of that message, continues the thread. A line with
// an earlier parent begins a new thread.
type claudeCode struct {
	out           *sink
	n, nth        int                       // line of the file, and which record on it
	byLineID      map[string]threadPosition // by the id of a line: its position, or that of its nearest message above
	calls         map[string]string         // by the id of a call: the message that has the call
	currentThread map[string]*thread
	openThreads   []*thread      // threads with an open message, in the order in which they began
	threadCount   int            // number of threads
	counts        map[string]int // number of threads by session and kind
}

func newClaudeCode(out *sink) *claudeCode {
	return &claudeCode{
		out: out, byLineID: map[string]threadPosition{}, calls: map[string]string{}, currentThread: map[string]*thread{}, counts: map[string]int{},
	}
}

// threadPosition is the position of a line in a thread.
type threadPosition struct {
	thread     *thread // nil: before the beginning of the log, or unknown
	index      int
	id         string // id of the line, or of the nearest message line before it
	messageID  string // id of its message
	before     string // for a compaction: the last line that it replaces
	compaction bool   // the line is a compaction: the next line begins a new thread
}

type thread struct {
	number              int // threads that began before it
	session, name, from string
	side                bool
	lineCount           int    // lines so far
	messageID           string // message id of the last lines
	messageStart        int    // index of the first of those lines
	id                  string // of the last line

	open    *Entry  // message that may get more lines
	results []Entry // results of its calls, which follow the message
}

// addLine adds the next line of the log.
func (c *claudeCode) addLine(v []byte) error {
	l := readClaudeLine(v)
	if l.uuid != "" {
		if _, twice := c.byLineID[l.uuid]; twice {
			return nil
		}
	} else {
		l.uuid = fmt.Sprintf("line-%d", c.n)
		if c.nth > 0 {
			l.uuid += fmt.Sprintf("-%d", c.nth)
		}
	}
	parent, known := c.byLineID[l.parent]
	switch {
	case l.subtype == "compact_boundary":
		c.byLineID[l.uuid] = threadPosition{compaction: true, before: l.before}
		return nil
	case !l.isMessage():
		if known || l.parent != "" {
			c.byLineID[l.uuid] = parent
		}
		return nil
	}
	blocks, err := l.decodeBlocks()
	if err != nil || len(blocks) == 0 {
		c.byLineID[l.uuid] = parent
		return err
	}
	c.noteCalls(&l, blocks)
	messageID := c.messageGroupID(&l, blocks)
	t, kind, parentID := c.findThread(&l, parent, messageID)
	if t == nil {
		if kind != "agent" { // the other threads have ended
			c.flushWhereSide(l.side)
		}
		t = c.newThread(&l, kind, parentID)
	}
	c.currentThread[l.threadKey()] = t
	if t.messageID != messageID {
		t.messageID, t.messageStart = messageID, t.lineCount
	}
	c.byLineID[l.uuid] = threadPosition{thread: t, index: t.lineCount, id: l.uuid, messageID: messageID}
	t.lineCount, t.id = t.lineCount+1, l.uuid
	c.addBlocks(t, &l, parent, blocks)
	return nil
}

// noteCalls records which response made the calls of a line, for their results.
func (c *claudeCode) noteCalls(l *claudeLine, blocks []content.Block) {
	if id := l.responseID(); id != "" {
		for _, b := range blocks {
			if call, ok := b.(content.ToolCall); ok {
				c.calls[call.CallID] = id
			}
		}
	}
}

// messageGroupID returns the id that groups the lines of one message: the id of the response, for a
// result the id of the response with its call, otherwise the id of the line.
func (c *claudeCode) messageGroupID(l *claudeLine, blocks []content.Block) string {
	if id := l.responseID(); id != "" {
		return id
	}
	if result, ok := blocks[0].(content.ToolResult); ok && c.calls[result.CallID] != "" {
		return c.calls[result.CallID]
	}
	return l.uuid
}

// threadKey returns the key of a line in currentThread: its session, agent and side.
func (l *claudeLine) threadKey() string {
	key := l.session + "\x00" + l.agent
	if l.side {
		key += "\x00side"
	}
	return key
}

// findThread returns the thread that a line continues. If the line begins a thread, t is nil, and
// kind and parentID are the arguments for newThread. parent is the position of the line's parent,
// and messageID that of its message.
func (c *claudeCode) findThread(l *claudeLine, parent threadPosition, messageID string) (t *thread, kind, parentID string) {
	now := c.currentThread[l.threadKey()]
	t = parent.thread
	switch {
	case parent.compaction:
		return nil, "compact", ""
	case l.side && (t == nil || !t.side):
		// Without an agent id, each line whose parent is not in a side thread begins a side
		// thread.
		if now == nil || l.agent == "" && (l.orphan || t != nil) {
			return nil, "agent", ""
		}
		return now, "", ""
	case (t == nil || t.side != l.side) && now == nil:
		return nil, "", ""
	case t != nil && t.side != l.side:
		return now, "", ""
	case t == nil && l.orphan && l.kind == "user" && messageID == l.uuid:
		return nil, "fork", ""
	case t == nil:
		return now, "", ""
	case t.session != l.session && now == nil:
		return nil, "", parent.id
	case t.session != l.session, parent.id != t.id && !(parent.messageID == t.messageID && parent.index >= t.messageStart):
		return nil, "fork", parent.id
	}
	return t, "", ""
}

// newThread returns a new thread of a kind: agent, compact, fork, or empty for the first of a
// session. It is open once it has a message. parentID is the id of the line that it follows; empty: none.
func (c *claudeCode) newThread(l *claudeLine, kind, parentID string) (notOpen *thread) {
	t := &thread{number: c.threadCount, session: l.session, from: parentID, side: l.side}
	c.threadCount++
	switch {
	case kind == "agent" && l.agent != "":
		t.name = refs.SafeName("agent-" + l.agent)
	case kind != "":
		c.counts[l.session+"\x00"+kind]++
		t.name = fmt.Sprintf("%s-%d", kind, c.counts[l.session+"\x00"+kind])
	}
	return t
}

// addBlocks adds the blocks of a line to their message.
func (c *claudeCode) addBlocks(t *thread, l *claudeLine, parent threadPosition, blocks []content.Block) {
	e := l.entryWithoutParts(c.n)
	if e.Compaction && parent.before != "" {
		e.Original["compacted"] = parent.before
	}
	for _, b := range blocks {
		e.Parts = append(e.Parts, Part{ID: l.uuid, Time: l.time, Block: b})
	}
	id := l.message.Get("id").Text()
	_, result := blocks[0].(content.ToolResult)
	switch {
	case l.kind == "assistant" && t.open != nil && id != "" && t.open.ResponseID == id:
		t.open.Parts = append(t.open.Parts, e.Parts...)
		t.open.setResponse(l.message)
	case l.kind == "assistant":
		c.flushThread(t)
		e.setResponse(l.message)
		t.open = &e
		i, _ := c.findOpenThread(t)
		c.openThreads = slices.Insert(c.openThreads, i, t)
	case result && t.open != nil:
		t.results = append(t.results, e)
	default:
		c.flushThread(t)
		c.emit(t, e)
	}
}

// findOpenThread returns the index of a thread in openThreads, or where it would be.
func (c *claudeCode) findOpenThread(t *thread) (index int, isOpen bool) {
	return slices.BinarySearchFunc(c.openThreads, t.number, func(other *thread, number int) int { return other.number - number })
}

// flushThread emits the open message, if there is one, and the results of its calls.
func (c *claudeCode) flushThread(t *thread) {
	i, open := c.findOpenThread(t)
	if !open {
		return
	}
	c.openThreads = slices.Delete(c.openThreads, i, i+1)
	c.emit(t, *t.open)
	for _, e := range t.results {
		c.emit(t, e)
	}
	t.open, t.results = nil, nil
}

func (c *claudeCode) emit(t *thread, e Entry) {
	e.Thread, e.From = t.name, t.from
	c.out.yieldEntry(e)
}

// flushWhereSide flushes the side threads, or the others.
func (c *claudeCode) flushWhereSide(side bool) {
	for _, t := range slices.Clone(c.openThreads) {
		if t.side == side {
			c.flushThread(t)
		}
	}
}

// flushAll flushes all threads.
func (c *claudeCode) flushAll() {
	for _, t := range slices.Clone(c.openThreads) {
		c.flushThread(t)
	}
}
