package importers

import (
	"fmt"

	"github.com/tract-vcs/tract/content"
)

// claudeCode puts the lines of a log into threads.
//
// The parents of the lines make a tree, but most of its forks are none: of calls
// made side by side, each is the parent of the next and of its own result, and
// what hooks report hangs on a call too. A line that follows one of the last
// message and its results goes on with the thread; only one that leaves something
// else behind begins a thread of its own.
type claudeCode struct {
	out     *sink
	n, nth  int               // line of the file, and which record on it
	at      map[string]place  // by the id of a line: where it stands, or what it hangs on stands
	calls   map[string]string // by the id of a call: the message that made it
	current map[string]*thread
	threads []*thread
	counts  map[string]int // threads by session and sort
}

// place is where a line stands in a thread.
type place struct {
	thread *thread // nil: before the log begins, or nowhere
	seq    int
	id     string // of the line, or of the one said before it
	group  string // the message that it is part of
	before string // of a compaction: the line it comes after
	cut    bool   // a compaction: what follows begins anew
}

type thread struct {
	session, name, from string
	side                bool
	seq                 int    // lines so far
	group               string // that the last lines are of
	since               int    // the first of those
	id                  string // of the last line

	open *Entry  // message that may go on
	held []Entry // what its calls gave: it comes after the message
}

// line takes the next line.
func (c *claudeCode) line(v []byte) error {
	l := readClaudeLine(v)
	if l.uuid != "" {
		if _, twice := c.at[l.uuid]; twice {
			return nil
		}
	} else {
		l.uuid = fmt.Sprintf("line-%d", c.n)
		if c.nth > 0 {
			l.uuid += fmt.Sprintf("-%d", c.nth)
		}
	}
	on, known := c.at[l.parent]
	switch {
	case l.subtype == "compact_boundary":
		c.at[l.uuid] = place{cut: true, before: l.before}
		return nil
	case !l.isMessage():
		if known || l.parent != "" {
			c.at[l.uuid] = on
		}
		return nil
	}
	blocks, err := l.blocks()
	if err != nil || len(blocks) == 0 {
		c.at[l.uuid] = on
		return err
	}
	group := c.group(&l, blocks)
	t := c.thread(&l, on, group)
	if t.group != group {
		t.group, t.since = group, t.seq
	}
	c.at[l.uuid] = place{thread: t, seq: t.seq, id: l.uuid, group: group}
	t.seq, t.id = t.seq+1, l.uuid
	c.add(t, &l, on, blocks)
	return nil
}

// group is the message that a line is part of: its own for an answer, that of the
// call for a result.
func (c *claudeCode) group(l *claudeLine, blocks []content.Block) string {
	if id := l.message.Get("id").Text(); l.kind == "assistant" && id != "" {
		for _, b := range blocks {
			if call, ok := b.(content.ToolCall); ok {
				c.calls[call.CallID] = id
			}
		}
		return id
	}
	if result, ok := blocks[0].(content.ToolResult); ok && c.calls[result.CallID] != "" {
		return c.calls[result.CallID]
	}
	return l.uuid
}

// thread finds the thread that a line goes on with, or begins one.
func (c *claudeCode) thread(l *claudeLine, on place, group string) *thread {
	who := l.session + "\x00" + l.agent
	if l.side {
		who += "\x00side"
	}
	now := c.current[who]
	t := on.thread
	switch {
	case on.cut:
		t = c.begin(l, "compact", "")
	case l.side && (t == nil || !t.side):
		// Without a name each line that hangs on none of the sort begins another one.
		if t = now; t == nil || l.agent == "" && (l.orphan || on.thread != nil) {
			t = c.begin(l, "agent", "")
		}
	case (t == nil || t.side != l.side) && now == nil:
		t = c.begin(l, "", "")
	case t != nil && t.side != l.side:
		t = now
	case t == nil && l.orphan && l.kind == "user" && group == l.uuid:
		t = c.begin(l, "fork", "")
	case t == nil:
		t = now
	case t.session != l.session:
		if now == nil {
			t = c.begin(l, "", on.id)
		} else {
			t = c.begin(l, "fork", on.id)
		}
	case on.id != t.id && !(on.group == t.group && on.seq >= t.since):
		t = c.begin(l, "fork", on.id)
	}
	c.current[who] = t
	return t
}

// begin begins a thread after a line, or with nothing before it.
func (c *claudeCode) begin(l *claudeLine, sort, from string) *thread {
	t := &thread{session: l.session, from: from, side: l.side}
	switch {
	case sort == "agent" && l.agent != "":
		t.name = threadName("agent-" + l.agent)
	case sort != "":
		c.counts[l.session+"\x00"+sort]++
		t.name = fmt.Sprintf("%s-%d", sort, c.counts[l.session+"\x00"+sort])
	}
	if sort != "agent" { // what is left behind has ended
		for _, other := range c.threads {
			if other.side == t.side {
				c.flush(other)
			}
		}
	}
	c.threads = append(c.threads, t)
	return t
}

// add adds the blocks of a line to the message that they are part of.
func (c *claudeCode) add(t *thread, l *claudeLine, on place, blocks []content.Block) {
	e := l.entry(c.n)
	if e.Compaction && on.before != "" {
		e.Original["compacted"] = on.before
	}
	for _, b := range blocks {
		e.Parts = append(e.Parts, Part{ID: l.uuid, Time: l.time, Block: b})
	}
	id := l.message.Get("id").Text()
	_, result := blocks[0].(content.ToolResult)
	switch {
	case l.kind == "assistant" && t.open != nil && id != "" && t.open.ResponseID == id:
		t.open.Parts = append(t.open.Parts, e.Parts...)
		t.open.cost(l.message)
	case l.kind == "assistant":
		c.flush(t)
		e.cost(l.message)
		t.open = &e
	case result && t.open != nil:
		t.held = append(t.held, e)
	default:
		c.flush(t)
		c.put(t, e)
	}
}

// flush ends the message that is open, with what its calls gave.
func (c *claudeCode) flush(t *thread) {
	if t.open != nil {
		c.put(t, *t.open)
	}
	for _, e := range t.held {
		c.put(t, e)
	}
	t.open, t.held = nil, nil
}

func (c *claudeCode) put(t *thread, e Entry) {
	e.Thread, e.From = t.name, t.from
	c.out.put(e)
}

// end ends all threads.
func (c *claudeCode) end() {
	for _, t := range c.threads {
		c.flush(t)
	}
}
