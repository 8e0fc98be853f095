package reconcile

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Entry is one block of a conversation in the form in which it is compared.
type Entry struct {
	Message, Block int // position in the messages that the entry was made of
	Role           content.Role
	Kind           content.Kind
	Counts         bool
	Key            objects.ID // of the conversation up to and including the block; zero where it does not count
	Unit           objects.ID // of the block alone
	CallID         string     // of a call or a result
	Seal           objects.ID // hash of the provider's seal of a reasoning block; zero: none
	Ref            objects.ID // for the caller: the commit of the block
}

// Override returns a hash by which a block is compared instead of its content, such as a block
// whose content was purged. If ok is false, the content is compared.
type Override func(content.Block) (unit objects.ID, ok bool)

// Builder makes the entries of a growing conversation. The zero Builder is for a conversation
// without blocks.
type Builder struct {
	all   runningKey
	calls map[string]objects.ID // hashes of calls by id
	n     int                   // messages

	messageRoles bool // the role of the message is used instead of the default role of a block's kind
}

// Clone returns an independent copy.
func (b *Builder) Clone() *Builder {
	c := &Builder{all: b.all, calls: maps.Clone(b.calls), n: b.n, messageRoles: b.messageRoles}
	c.all.ordered, c.all.otherText, c.all.modelText = slices.Clone(b.all.ordered), slices.Clone(b.all.otherText), slices.Clone(b.all.modelText)
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
					u, e.Counts = unit{hash: as, unordered: u.unordered}, true
				}
			}
			switch block := block.(type) {
			case content.ToolCall:
				e.CallID = block.CallID
			case content.ToolResult:
				e.CallID = block.CallID
			}
			if seal := block.Form().Seal.Data; seal != "" && e.Kind == content.KindReasoning {
				e.Seal = hashParts("seal", seal)
			}
			e.Unit = hashParts(e.Role.String(), string(u.hash[:]), u.modelText, u.otherText)
			if e.Counts {
				e.Key = b.all.addBlock(e.Role, u)
			}
			list = append(list, e)
		}
		b.n++
	}
	return list
}

// isCountedResponse reports whether an entry is part of a model's response and counts.
func (e *Entry) isCountedResponse() bool { return e.Counts && e.Role == content.RoleAssistant }

// Kind is how a list continues a stored conversation.
type Kind uint8

// The kinds of plans, in the order of how much of the conversation the list repeats.
const (
	Begins    Kind = iota // the list repeats no response: it is another conversation
	Forks                 // the list continues after an earlier block
	Repeats               // like Forks, but the list has nothing new: the same question is asked again
	Continues             // the list continues after the last block
)

// Plan is what a list of messages adds to a conversation, and where.
type Plan struct {
	Kind    Kind
	Base    int   // number of entries of the conversation before the new ones
	Listed  int   // number of entries of the list that the conversation has, or that were inserted before its end; the others are new
	Known   []int // for each entry of the list: the entry of the conversation that it repeats, or -1
	Replies int   // number of response entries that both have

	Changed  [][2]int // pairs of entries of the conversation and of the list: the same block with other content
	Missing  []int    // entries of the conversation that the list leaves out
	Inserted []int    // entries of the list that were inserted between known entries
}

// Compare returns the plan by which list continues the conversation known.
func Compare(known, list []Entry) *Plan {
	c := comparison{known: known, list: list, knownOf: slices.Repeat([]int{-1}, len(list)), listedOf: slices.Repeat([]int{-1}, len(known))}
	begin, listed := c.pairPrefix()
	c.pairRest(begin, listed)
	c.unpairLastResponseIfSealsDiffer()
	return c.makePlan(listed)
}

// comparison pairs the entries of a list with those of the conversation. Compare works in steps:
// pairPrefix pairs the common beginning, by the keys; pairRest pairs the rest, by the longest
// common subsequence of units; unpairLastResponseIfSealsDiffer takes pairs apart whose responses have
// different seals; makePlan derives the plan from the pairs.
type comparison struct {
	known, list []Entry
	knownOf     []int // for each entry of the list: the known entry that it repeats; -1: none
	listedOf    []int // for each known entry: the entry of the list; -1: none
}

func (c *comparison) pair(known, listed int) { c.knownOf[listed], c.listedOf[known] = known, listed }

// commonPrefix returns the lengths of the longest common beginning, found by the keys. The lengths
// may differ in entries that do not count.
func commonPrefix(known, list []Entry) (ofKnown, ofList int) {
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

// equalsUncounted reports whether both entries are the same block and do not count.
func (e *Entry) equalsUncounted(listed Entry) bool {
	return !e.Counts && !listed.Counts && e.Unit == listed.Unit
}

// pairPrefix pairs the entries of the longest common beginning, and returns its lengths.
func (c *comparison) pairPrefix() (known, listed int) {
	known, listed = commonPrefix(c.known, c.list)
	// Within the beginning, the order of parallel calls and the division of texts may differ.
	same := 0
	for ; same < min(known, listed) && c.known[same].Unit == c.list[same].Unit; same++ {
		c.pair(same, same)
	}
	units := map[objects.ID][]int{}
	for i := same; i < known; i++ {
		units[c.known[i].Unit] = append(units[c.known[i].Unit], i)
	}
	last := same - 1
	for i := same; i < listed; i++ {
		if all := units[c.list[i].Unit]; len(all) > 0 {
			c.pair(all[0], i)
			last, units[c.list[i].Unit] = all[0], all[1:]
		} else if c.list[i].Counts && last >= 0 {
			c.knownOf[i] = last // a part of a text that is divided in another way
		}
	}
	for i := range known {
		if c.listedOf[i] < 0 {
			c.listedOf[i] = max(listed-1, 0)
		}
	}
	for known < len(c.known) && listed < len(c.list) && c.known[known].equalsUncounted(c.list[listed]) {
		c.pair(known, listed)
		known, listed = known+1, listed+1
	}
	return known, listed
}

// entryRun is one entry that counts, or consecutive texts of a model: a response is repeated only if all
// its texts are.
type entryRun struct {
	first, last int
	unit        objects.ID
}

// joinModelTexts returns the entries that count, from begin on, with consecutive texts of a model
// joined to one entryRun.
func joinModelTexts(list []Entry, begin int) []entryRun {
	var all []entryRun
	for i := begin; i < len(list); i++ {
		e := &list[i]
		if !e.Counts {
			continue
		}
		if n := len(all); n > 0 && e.Kind == content.KindAssistant && list[all[n-1].last].Kind == content.KindAssistant && all[n-1].last == i-1 {
			all[n-1].last, all[n-1].unit = i, hashParts(string(all[n-1].unit[:]), string(e.Unit[:]))
			continue
		}
		all = append(all, entryRun{i, i, e.Unit})
	}
	return all
}

// maxTableCells is the largest table of the longest common subsequence. In longer rests, only the
// common beginning and moved blocks are paired.
const maxTableCells = 4 << 20

// pairRest pairs the entries after the common beginning: first the longest common subsequence,
// then blocks that only moved.
func (c *comparison) pairRest(begin, listed int) {
	a, b := joinModelTexts(c.known, begin), joinModelTexts(c.list, listed)
	if len(a) == 0 || len(b) == 0 {
		return
	}
	match := func(x, y entryRun) {
		for n := range x.last - x.first + 1 { // equal runs have equal entries
			c.pair(x.first+n, y.first+n)
		}
	}
	for len(a) > 0 && len(b) > 0 && a[0].unit == b[0].unit {
		match(a[0], b[0])
		a, b = a[1:], b[1:]
	}
	if len(a)*len(b) <= maxTableCells {
		pairLCS(a, b, match)
	}
	moved := map[objects.ID][]int{}
	for _, x := range a {
		if c.listedOf[x.first] < 0 && c.known[x.first].Role != content.RoleAssistant {
			moved[x.unit] = append(moved[x.unit], x.first)
		}
	}
	for _, y := range b {
		if same := moved[y.unit]; c.knownOf[y.first] < 0 && len(same) > 0 {
			c.pair(same[0], y.first)
			moved[y.unit] = same[1:]
		}
	}
}

// pairLCS calls match for each pair of the longest common subsequence of two lists.
func pairLCS(a, b []entryRun, match func(x, y entryRun)) {
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

// unpairLastResponseIfSealsDiffer unpairs the last repeated response, and everything after it, if its reasoning
// has other seals in the list: it is another response with the same text.
func (c *comparison) unpairLastResponseIfSealsDiffer() {
	last := -1
	for i := range c.list {
		if c.knownOf[i] >= 0 && c.list[i].isCountedResponse() {
			last = i
		}
	}
	if last < 0 {
		return
	}
	have, known := responseSeals(c.list, last), responseSeals(c.known, c.knownOf[last])
	if len(have) == 0 || len(known) == 0 || slices.ContainsFunc(have, func(id objects.ID) bool { return slices.Contains(known, id) }) {
		return
	}
	begin, begun := responseBegin(c.list, last), responseBegin(c.known, c.knownOf[last])
	for i := begin; i < len(c.list); i++ {
		c.knownOf[i] = -1
	}
	for i := begun; i < len(c.known); i++ {
		c.listedOf[i] = -1
	}
}

// responseBegin returns the index of the first entry of the response that includes the entry at.
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

// makePlan returns the plan for the pairs that were found. commonListed is the length of the
// common beginning in the list.
func (c *comparison) makePlan(commonListed int) *Plan {
	p := &Plan{Known: c.knownOf}
	replies, lastReply, lastKept := 0, -1, -1
	repliesBefore := 0 // number of known responses up to lastKept
	spoken := false    // a block other than an instruction is repeated
	for i := range c.known {
		e := &c.known[i]
		if e.isCountedResponse() {
			replies, lastReply = replies+1, i
			if c.listedOf[i] >= 0 {
				p.Replies, lastKept, repliesBefore = p.Replies+1, i, replies
			}
		}
		spoken = spoken || e.Counts && e.Role != content.RoleSystem && c.listedOf[i] >= 0
	}
	switch {
	case lastKept == lastReply && (replies > 0 || spoken || len(c.known) == 0):
		p.Kind, p.Base = Continues, len(c.known)
	case lastKept >= 0:
		p.Kind, p.Base = Forks, c.endOfPairedKnown(lastKept)
	case spoken && !slices.ContainsFunc(c.list[commonListed:], func(e Entry) bool { return e.Counts }):
		p.Kind, p.Base = Repeats, slices.Max(c.knownOf)+1
		p.Listed = len(c.list)
		return p
	default:
		return p
	}
	if p.Replies*2 < repliesBefore { // most earlier responses are missing: it is a new conversation
		p.Kind, p.Base = Begins, 0
		return p
	}
	p.Listed = c.firstNewListed(p.Base)
	c.addChanges(p)
	return p
}

// endOfPairedKnown returns the end of the known entries that are repeated without a gap after the
// entry last.
func (c *comparison) endOfPairedKnown(last int) int {
	for i := last + 1; i < len(c.known) && (!c.known[i].Counts || c.listedOf[i] >= 0); i++ {
		if c.known[i].Counts {
			last = i
		}
	}
	return last + 1
}

// firstNewListed returns where the entries of the list begin that are new after base.
func (c *comparison) firstNewListed(base int) int {
	n := 0
	for i, of := range c.knownOf {
		if of >= 0 && of < base {
			n = i + 1
		}
	}
	for n < len(c.list) && c.list[n].Role == content.RoleAssistant && slices.ContainsFunc(c.known, func(e Entry) bool { return e.equalsUncounted(c.list[n]) }) {
		n++
	}
	return n
}

// addChanges adds the changed, inserted and missing entries before p.Base and p.Listed to the plan.
func (c *comparison) addChanges(p *Plan) {
	free := map[Entry][]int{} // missing known entries, by the role, kind and call that a changed entry must share
	slot := func(e *Entry) Entry { return Entry{Role: e.Role, Kind: e.Kind, CallID: e.CallID} }
	for i := range c.known[:p.Base] {
		if e := &c.known[i]; e.Counts && c.listedOf[i] < 0 {
			free[slot(e)] = append(free[slot(e)], i)
		}
	}
	seen := map[objects.ID]bool{}
	for i := range c.list[:p.Listed] {
		if c.knownOf[i] >= 0 {
			seen[c.list[i].Unit] = true
		}
	}
	for i := range c.list[:p.Listed] {
		e := &c.list[i]
		if !e.Counts || c.knownOf[i] >= 0 {
			continue
		}
		if same := free[slot(e)]; len(same) > 0 && c.isSamePosition(same[0], i) {
			p.Changed = append(p.Changed, [2]int{same[0], i})
			c.pair(same[0], i)
			free[slot(e)] = same[1:]
		} else if !seen[e.Unit] { // otherwise the client sends a block twice
			p.Inserted = append(p.Inserted, i)
		}
	}
	for i := range c.known[:p.Base] {
		if c.known[i].Counts && c.listedOf[i] < 0 {
			p.Missing = append(p.Missing, i)
		}
	}
}

// isSamePosition reports whether a known entry and an entry of the list are between the same
// repeated entries, or belong to the same call.
func (c *comparison) isSamePosition(known, listed int) bool {
	if c.known[known].CallID != "" {
		return true
	}
	before, after := -1, len(c.known)
	for i := listed - 1; i >= 0 && before < 0; i-- {
		before = c.knownOf[i]
	}
	if i := slices.IndexFunc(c.knownOf[listed+1:], func(known int) bool { return known >= 0 }); i >= 0 {
		after = c.knownOf[listed+1+i]
	}
	return before < known && known < after
}
