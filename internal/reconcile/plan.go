package reconcile

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Entry is one block of a conversation, as it is compared.
type Entry struct {
	Message, Block int // position in the messages that the entry was made of
	Role           content.Role
	Kind           content.Kind
	Counts         bool
	Key            objects.ID // of the conversation up to and including the block; zero where it does not count
	Unit           objects.ID // of the block alone
	CallID         string     // of a call or a result
	Seal           objects.ID // hash of the provider's seal of a reasoning block; zero: none
	Ref            objects.ID // a caller's own: the commit of the block
}

// Override returns the unit of a block that is compared by something else than its
// content, such as a block whose content was purged.
type Override func(content.Block) (unit objects.ID, ok bool)

// Builder makes the entries of a conversation that grows. The zero Builder is one of a
// conversation without blocks.
type Builder struct {
	all   trail
	calls map[string]objects.ID // hashes of calls by id
	n     int                   // messages

	messageRoles bool // the role of a message counts before the usual one of its blocks
}

// Clone returns a copy that grows on its own.
func (b *Builder) Clone() *Builder {
	c := &Builder{all: b.all, calls: maps.Clone(b.calls), n: b.n, messageRoles: b.messageRoles}
	c.all.row, c.all.lines, c.all.words = slices.Clone(b.all.row), slices.Clone(b.all.lines), slices.Clone(b.all.words)
	return c
}

// Add returns the entries of more messages. override may be nil.
func (b *Builder) Add(messages []content.Message, override Override) []Entry {
	if b.calls == nil {
		b.calls = map[string]objects.ID{}
	}
	var list []Entry
	for _, m := range messages {
		for j, block := range m.Blocks {
			e := Entry{Message: b.n, Block: j, Role: cmp.Or(content.RoleOf(block), m.Role), Kind: block.Kind()}
			if b.messageRoles {
				e.Role = m.Role
			}
			var u unit
			u, e.Counts = unitOf(e.Role, block, b.calls)
			if override != nil {
				if as, ok := override(block); ok {
					u, e.Counts = unit{hash: as, loose: u.loose}, true
				}
			}
			switch block := block.(type) {
			case content.ToolCall:
				e.CallID = block.CallID
			case content.ToolResult:
				e.CallID = block.CallID
			}
			if seal := block.Form().Seal.Data; seal != "" && e.Kind == content.KindReasoning {
				e.Seal = digest("seal", seal)
			}
			e.Unit = digest(e.Role.String(), string(u.hash[:]), u.words, u.lines)
			if e.Counts {
				e.Key = b.all.add(e.Role, u)
			}
			list = append(list, e)
		}
		b.n++
	}
	return list
}

// isReply reports whether an entry is part of a response of a model.
func (e *Entry) isReply() bool { return e.Counts && e.Role == content.RoleAssistant }

// Kind is how a list goes on from a conversation that is stored.
type Kind uint8

// The kinds of plans.
const (
	Begins    Kind = iota // the list repeats no response of the conversation: it is another one
	Continues             // after its last block
	Forks                 // after an earlier block
	Repeats               // like Forks, and the list ends there: the same is asked again
)

// Plan says what a list of messages adds to a conversation, and where.
type Plan struct {
	Kind    Kind
	Base    int   // entries of the conversation that come before what is new
	Listed  int   // entries of the list that the conversation has, or that were inserted into its past; the others are new
	Known   []int // of each listed entry: the entry of the conversation that it repeats, or -1
	Replies int   // entries of responses that both have

	Changed  [][2]int // entries of the conversation and of the list: the same block, which says something else now
	Missing  []int    // entries of the conversation that the list leaves out
	Inserted []int    // entries of the list within the past of the conversation
}

// Compare plans how a list goes on from a conversation.
func Compare(known, list []Entry) *Plan {
	c := comparison{known: known, list: list, of: make([]int, len(list)), by: make([]int, len(known))}
	for i := range c.of {
		c.of[i] = -1
	}
	for i := range c.by {
		c.by[i] = -1
	}
	begin, listed := c.prefix()
	c.align(begin, listed)
	c.otherReasoning()
	return c.plan(listed)
}

// comparison is a list on its way to a plan.
type comparison struct {
	known, list []Entry
	of          []int // of each entry of the list: the known entry that it repeats; -1: none
	by          []int // and the reverse
}

func (c *comparison) pair(known, listed int) { c.of[listed], c.by[known] = known, listed }

// commonBeginning returns the ends of the longest beginning that both have, by the keys.
func commonBeginning(known, list []Entry) (ofKnown, ofList int) {
	at := make(map[objects.ID]int, len(known))
	for i := range known {
		if known[i].Counts {
			at[known[i].Key] = i
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if end, ok := at[list[i].Key]; ok && list[i].Counts {
			return end + 1, i + 1
		}
	}
	return 0, 0
}

// repeatedBy reports whether an entry of a list is the same block, which does not count.
func (e *Entry) repeatedBy(listed Entry) bool {
	return !e.Counts && !listed.Counts && e.Unit == listed.Unit
}

// prefix pairs the longest beginning that both have, by the keys.
func (c *comparison) prefix() (known, listed int) {
	known, listed = commonBeginning(c.known, c.list)
	// Within the beginning the order of parallel calls and the cutting of texts may differ.
	units := map[objects.ID][]int{}
	for i := range known {
		units[c.known[i].Unit] = append(units[c.known[i].Unit], i)
	}
	last := -1
	for i := range listed {
		if same := units[c.list[i].Unit]; len(same) > 0 {
			c.pair(same[0], i)
			last, units[c.list[i].Unit] = same[0], same[1:]
		} else if c.list[i].Counts && last >= 0 {
			c.of[i] = last // a part of a text that was cut in another way
		}
	}
	for i := range known {
		if c.by[i] < 0 {
			c.by[i] = max(listed-1, 0)
		}
	}
	for known < len(c.known) && listed < len(c.list) && c.known[known].repeatedBy(c.list[listed]) {
		c.pair(known, listed)
		known, listed = known+1, listed+1
	}
	return known, listed
}

// item is an entry, or the texts of a model that follow one another, on either side.
type item struct {
	first, last int
	unit        objects.ID
}

func items(list []Entry, begin int) []item {
	var all []item
	for i := begin; i < len(list); i++ {
		e := &list[i]
		if !e.Counts {
			continue
		}
		if n := len(all); n > 0 && e.Kind == content.KindAssistant && list[all[n-1].last].Kind == content.KindAssistant && all[n-1].last == i-1 {
			all[n-1].last, all[n-1].unit = i, digest(string(all[n-1].unit[:]), string(e.Unit[:]))
			continue
		}
		all = append(all, item{i, i, e.Unit})
	}
	return all
}

// mostCompared is the most cells of the table that the alignment fills in. Longer
// rests have nothing in common but what their beginning and their end have.
const mostCompared = 4 << 20

// align pairs what follows the beginning: the longest common subsequence, and then
// blocks that only moved.
func (c *comparison) align(begin, listed int) {
	a, b := items(c.known, begin), items(c.list, listed)
	if len(a) == 0 || len(b) == 0 {
		return
	}
	match := func(x, y item) {
		for n := 0; x.first+n <= x.last && y.first+n <= y.last; n++ {
			c.pair(x.first+n, y.first+n)
		}
		for n := y.first; n <= y.last; n++ {
			c.of[n] = max(c.of[n], x.first)
		}
		for n := x.first; n <= x.last; n++ {
			c.by[n] = max(c.by[n], y.first)
		}
	}
	for len(a) > 0 && len(b) > 0 && a[0].unit == b[0].unit {
		match(a[0], b[0])
		a, b = a[1:], b[1:]
	}
	if len(a)*len(b) <= mostCompared {
		common(a, b, match)
	}
	moved := map[objects.ID][]int{}
	for _, x := range a {
		if c.by[x.first] < 0 && c.known[x.first].Role != content.RoleAssistant {
			moved[x.unit] = append(moved[x.unit], x.first)
		}
	}
	for _, y := range b {
		if same := moved[y.unit]; c.of[y.first] < 0 && len(same) > 0 {
			c.pair(same[0], y.first)
			moved[y.unit] = same[1:]
		}
	}
}

// common matches the longest common subsequence of two lists.
func common(a, b []item, match func(x, y item)) {
	width := len(b) + 1
	length := make([]uint16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].unit == b[j].unit {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].unit == b[j].unit:
			match(a[i], b[j])
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
}

// otherReasoning unpairs the last repeated response, and what follows it, when the list has
// other sealed reasoning in it: it is another response that says the same.
func (c *comparison) otherReasoning() {
	last := -1
	for i := range c.list {
		if c.of[i] >= 0 && c.list[i].isReply() {
			last = i
		}
	}
	if last < 0 {
		return
	}
	have, known := responseSeals(c.list, last), responseSeals(c.known, c.of[last])
	if len(have) == 0 || len(known) == 0 || slices.ContainsFunc(have, func(id objects.ID) bool { return slices.Contains(known, id) }) {
		return
	}
	begin, begun := responseBegin(c.list, last), responseBegin(c.known, c.of[last])
	for i := begin; i < len(c.list); i++ {
		c.of[i] = -1
	}
	for i := begun; i < len(c.known); i++ {
		c.by[i] = -1
	}
}

// responseBegin returns the first entry of the response that an entry is part of.
func responseBegin(list []Entry, at int) int {
	for at > 0 && list[at-1].Role == content.RoleAssistant {
		at--
	}
	return at
}

func responseSeals(list []Entry, at int) (seals []objects.ID) {
	for i := responseBegin(list, at); i < len(list) && list[i].Role == content.RoleAssistant; i++ {
		if !list[i].Seal.IsZero() {
			seals = append(seals, list[i].Seal)
		}
	}
	return seals
}

// plan decides what became of the conversation.
func (c *comparison) plan(prefix int) *Plan {
	p := &Plan{Known: c.of}
	replies, lastReply, lastKept := 0, -1, -1
	spoken := false // the user's side of the conversation is repeated, at least in part
	for i := range c.known {
		e := &c.known[i]
		if e.isReply() {
			replies, lastReply = replies+1, i
			if c.by[i] >= 0 {
				p.Replies, lastKept = p.Replies+1, i
			}
		}
		spoken = spoken || e.Counts && e.Role != content.RoleSystem && c.by[i] >= 0
	}
	counted := 0 // end of what counts in the list
	for i := range c.list {
		if c.list[i].Counts {
			counted = i + 1
		}
	}
	switch {
	case lastKept == lastReply && (replies > 0 || spoken || len(c.known) == 0):
		p.Kind, p.Base = Continues, len(c.known)
	case lastKept >= 0:
		p.Kind, p.Base = Forks, c.after(lastKept)
	case spoken && prefix >= counted && counted > 0:
		p.Kind, p.Base = Repeats, c.lastPaired()+1
		p.Listed = len(c.list)
		return p
	default:
		return p
	}
	if kept := c.repliesBefore(p.Base); p.Replies*2 < kept { // most of the past is gone: the client begins anew
		p.Kind, p.Base = Begins, 0
		return p
	}
	c.edits(p)
	return p
}

// after returns the end of what a list repeats without a gap from an entry on.
func (c *comparison) after(last int) int {
	for i := last + 1; i < len(c.known) && (!c.known[i].Counts || c.by[i] >= 0); i++ {
		if c.known[i].Counts {
			last = i
		}
	}
	return last + 1
}

func (c *comparison) lastPaired() int {
	last := -1
	for _, i := range c.of {
		last = max(last, i)
	}
	return last
}

func (c *comparison) repliesBefore(end int) (n int) {
	for i := range c.known[:end] {
		if c.known[i].isReply() {
			n++
		}
	}
	return n
}

// edits fills in what changed before the base, and where what is new begins.
func (c *comparison) edits(p *Plan) {
	for i, of := range c.of {
		if of >= 0 && of < p.Base {
			p.Listed = i + 1
		}
	}
	for p.Listed < len(c.list) && !c.list[p.Listed].Counts && c.list[p.Listed].Role == content.RoleAssistant && c.repeatsReasoning(p.Listed) {
		p.Listed++
	}
	free := map[Entry][]int{} // known blocks that the list leaves out, by what they may have become
	slot := func(e *Entry) Entry { return Entry{Role: e.Role, Kind: e.Kind, CallID: e.CallID} }
	for i := range c.known[:p.Base] {
		if e := &c.known[i]; e.Counts && c.by[i] < 0 {
			free[slot(e)] = append(free[slot(e)], i)
		}
	}
	seen := map[objects.ID]bool{}
	for i := range c.list[:p.Listed] {
		if c.of[i] >= 0 {
			seen[c.list[i].Unit] = true
		}
	}
	for i := range c.list[:p.Listed] {
		e := &c.list[i]
		if !e.Counts || c.of[i] >= 0 {
			continue
		}
		if same := free[slot(e)]; len(same) > 0 && c.near(same[0], i) {
			p.Changed = append(p.Changed, [2]int{same[0], i})
			c.pair(same[0], i)
			free[slot(e)] = same[1:]
		} else if !seen[e.Unit] { // else the client sends a block twice
			p.Inserted = append(p.Inserted, i)
		}
	}
	for i := range c.known[:p.Base] {
		if c.known[i].Counts && c.by[i] < 0 {
			p.Missing = append(p.Missing, i)
		}
	}
}

// repeatsReasoning reports whether a block of the list that does not count is one of the
// conversation.
func (c *comparison) repeatsReasoning(listed int) bool {
	for i := range c.known {
		if !c.known[i].Counts && c.known[i].Unit == c.list[listed].Unit {
			return true
		}
	}
	return false
}

// near reports whether a known entry and one of the list stand between the same repeated
// entries, or are a result of the same call.
func (c *comparison) near(known, listed int) bool {
	if c.known[known].CallID != "" {
		return true
	}
	before, after := -1, len(c.known)
	for i := listed - 1; i >= 0 && before < 0; i-- {
		before = c.of[i]
	}
	for i := listed + 1; i < len(c.list); i++ {
		if c.of[i] >= 0 {
			after = c.of[i]
			break
		}
	}
	return before < known && known < after
}
