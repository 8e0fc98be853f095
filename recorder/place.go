package recorder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// asked is a request on its way to its place.
type asked struct {
	claim    claim
	on       string // the branch that On names; may be empty
	sent     []byte // the body, without compression
	body     rawjson.Value
	request  *llm.Request
	messages []content.Message // masked, as they are compared
	entries  []reconcile.Entry
	tail     *reconcile.Builder // after the entries
	anchors  []string
	at       time.Time
	early    bool // exchanges that ended before it are not committed yet
}

// place is where a request belongs.
type place struct {
	branch  string
	from    objects.ID        // the commit that it goes on from; zero: none
	thread  *thread           // whose branch it is; nil: the branch is new
	base    *thread           // the thread that it repeats; nil: none
	plan    *reconcile.Plan   // against base; nil: there is none
	whole   bool              // the request has only what is new: the provider keeps the rest
	at      int               // whole: entries of base that come before it
	details map[string]string // for the origins
	note    string            // why it begins anew; may be empty
}

// find finds the place of a request.
func (x *index) find(ctx context.Context, a *asked) (*place, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if after := a.body.Get("previous_response_id").Text(); after != "" {
		if p, err := x.afterResponse(ctx, a, after); p != nil || err != nil {
			return p, err
		}
	}
	key := claimKey(a.details())
	if key == "" {
		return x.unclaimed(ctx, a)
	}
	list, err := x.ofClaim(ctx, key, a.branch(x.prefix, false))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return x.firstOfClaim(ctx, a)
	}
	if conversation := a.body.Get("conversation"); conversation != nil {
		t := list[len(list)-1]
		return x.placed(ctx, a, &place{thread: t, base: t, whole: true, at: len(t.entries), from: t.tip})
	}
	best := x.best(a, list)
	p, err := x.on(ctx, a, best.thread, best.plan)
	if err == nil && p.base == nil {
		newest := slices.MaxFunc(list, func(a, b *thread) int { return a.recorded - b.recorded })
		if newest.hasReply() {
			p.details[history.LinkContinues] = newest.tip.String()
		}
	}
	return p, err
}

// details returns what the origins of the commits keep of a request.
func (a *asked) details() map[string]string {
	all := a.claim.details()
	if a.on != "" {
		all["branch"] = a.on
	}
	return all
}

// branch returns the name of the main branch of a claim.
func (a *asked) branch(prefix string, whole bool) string {
	if a.on != "" {
		return a.on
	}
	return a.claim.branch(prefix, whole)
}

// candidate is a thread and how a request goes on from it.
type candidate struct {
	thread *thread
	plan   *reconcile.Plan
	shared int // anchors of the request that the thread has
}

// best returns the thread that a request goes on from, of those of its claim: the one with
// the most of its ids, and of these the one of which it repeats the most.
func (x *index) best(a *asked, list []*thread) (best candidate) {
	rank := func(c candidate) [4]int {
		kind := map[reconcile.Kind]int{reconcile.Continues: 3, reconcile.Repeats: 2, reconcile.Forks: 1}[c.plan.Kind]
		return [4]int{c.shared, c.plan.Replies, kind, c.plan.Base - len(c.plan.Missing) - len(c.plan.Changed)}
	}
	for _, t := range list {
		c := candidate{thread: t, plan: x.compare(a, t)}
		for _, id := range a.anchors {
			if t.anchors[id] {
				c.shared++
			}
		}
		if best.thread == nil {
			best = c
			continue
		}
		if now, was := rank(c), rank(best); slices.Compare(now[:], was[:]) > 0 {
			best = c
		}
	}
	return best
}

// compare plans how a request goes on from a thread.
func (x *index) compare(a *asked, t *thread) *reconcile.Plan {
	if len(t.erased) == 0 {
		return reconcile.Compare(t.entries, a.entries)
	}
	return reconcile.Compare(t.entries, new(reconcile.Builder).Add(a.messages, func(b content.Block) (objects.ID, bool) {
		id, err := commit.ContentID(b)
		return id, err == nil && t.erased[id]
	}))
}

// on returns the place of a request that was compared with a thread of its own claim.
func (x *index) on(ctx context.Context, a *asked, t *thread, plan *reconcile.Plan) (*place, error) {
	p := &place{base: t, plan: plan}
	switch plan.Kind {
	case reconcile.Continues:
		p.thread, p.from = t, t.tip
	case reconcile.Forks, reconcile.Repeats:
		if p.from = t.commitBefore(plan.Base); p.from == t.tip {
			p.thread = t
		}
	default:
		p.base, p.plan = nil, nil
	}
	return x.placed(ctx, a, p)
}

// commitBefore returns the last commit of the first n entries.
func (t *thread) commitBefore(n int) (id objects.ID) {
	for _, e := range t.entries[:n] {
		if !e.Ref.IsZero() {
			id = e.Ref
		}
	}
	return id
}

// placed completes a place: with the name of its branch, and with what is known of it.
func (x *index) placed(ctx context.Context, a *asked, p *place) (*place, error) {
	p.details = a.details()
	if p.thread != nil {
		p.branch = p.thread.branch
		if p.thread.details["session"] == "" && p.thread.details["client"] != "" {
			p.details = p.thread.details // the program is another one: a proxy, a retry
		}
		return p, nil
	}
	separator := "/"
	if a.on != "" {
		separator = reconcile.ForkSuffix
	}
	name := a.branch(x.prefix, false)
	if a.claim.session == "" && a.on == "" {
		name = x.prefix + a.claim.client + "/" + anonymous(a)
		if a.claim.side != "" {
			name += "/side-" + a.claim.side
		}
	} else if other := x.threads[name]; other != nil && other.claim != claimKey(p.details) {
		name = a.branch(x.prefix, true) // the short ids of two sessions are the same
	}
	var err error
	p.branch, err = x.free(ctx, name, separator)
	if p.base != nil && !p.from.IsZero() {
		p.details[history.LinkFork] = p.from.String()
	}
	return p, err
}

// anonymous returns a name for a conversation without one: the time, and what tells it from
// others of the same moment.
func anonymous(a *asked) string {
	var key objects.ID
	if n := len(a.entries); n > 0 {
		key = a.entries[n-1].Key
	}
	return a.at.UTC().Format("20060102-150405") + "-" + fmt.Sprintf("%x", key[:2])
}

// firstOfClaim returns the place of the first request of a session or an agent. One that
// repeats responses of another session, because the client resumed or forked it under a new
// id, begins at the last commit that it repeats.
func (x *index) firstOfClaim(ctx context.Context, a *asked) (*place, error) {
	if (len(a.anchors) > 0 || a.claim.agent != "") && a.early {
		return nil, errEarly
	}
	if len(a.anchors) > 0 {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
		list, err := x.fresh(ctx, x.byAnchors(a.anchors))
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			if best := x.best(a, list); best.plan.Kind != reconcile.Begins {
				return x.placed(ctx, a, &place{base: best.thread, plan: best.plan, from: best.thread.commitBefore(best.plan.Base)})
			}
		}
	}
	p, err := x.placed(ctx, a, &place{})
	if err == nil && a.claim.agent != "" && a.on == "" {
		err = x.linkParent(ctx, a, p)
	}
	return p, err
}

// unclaimed returns the place of a request that names no session. Ids and seals decide;
// without any, the request goes on from the one conversation without a name whose last
// response it repeats with everything before it.
func (x *index) unclaimed(ctx context.Context, a *asked) (*place, error) {
	if !slices.ContainsFunc(a.entries, func(e reconcile.Entry) bool { return e.Counts && e.Role == content.RoleAssistant }) {
		return x.placed(ctx, a, &place{})
	}
	if err := x.loadAll(ctx); err != nil {
		return nil, err
	}
	list, err := x.fresh(ctx, x.byAnchors(a.anchors))
	if err != nil {
		return nil, err
	}
	if own := slices.DeleteFunc(slices.Clone(list), func(t *thread) bool { return t.claim != "" }); len(own) > 0 {
		list = own
	}
	if len(list) > 0 {
		best := x.best(a, list)
		if best.thread.claim == "" {
			return x.on(ctx, a, best.thread, best.plan)
		}
		if best.plan.Kind != reconcile.Begins {
			return x.placed(ctx, a, &place{base: best.thread, plan: best.plan, from: best.thread.commitBefore(best.plan.Base)})
		}
	}
	return x.byWords(ctx, a)
}

// byWords returns the place of a request without a session and without known ids.
func (x *index) byWords(ctx context.Context, a *asked) (*place, error) {
	var found []*thread
	for i := len(a.entries) - 1; i >= 0 && len(found) == 0; i-- {
		if !a.entries[i].Counts {
			continue
		}
		list, err := x.fresh(ctx, x.tips[a.entries[i].Key])
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if t.claim == "" && t.hasReply() && !t.contradicts(a) {
				found = append(found, t)
			}
		}
	}
	if len(found) == 1 {
		if plan := x.compare(a, found[0]); plan.Kind == reconcile.Continues {
			return x.on(ctx, a, found[0], plan)
		}
	}
	p, err := x.placed(ctx, a, &place{})
	if err == nil && len(found) > 1 {
		p.note = fmt.Sprintf("ambiguous: the request names no session, and what it repeats is on %d branches", len(found))
	}
	return p, err
}

// contradicts reports whether a thread has ids of calls that a provider chose, and the
// request has others.
func (t *thread) contradicts(a *asked) bool {
	isCall := func(id string) bool { return strings.HasPrefix(id, "call ") }
	return slices.ContainsFunc(slices.Collect(maps.Keys(t.anchors)), isCall) && slices.ContainsFunc(a.anchors, isCall)
}

// afterResponse returns the place of a request that names the response that it follows; nil
// when that response is not known.
func (x *index) afterResponse(ctx context.Context, a *asked, response string) (*place, error) {
	at := x.told[response]
	if at.IsZero() {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
		if at = x.told[response]; at.IsZero() {
			return nil, nil
		}
	}
	list, err := x.fresh(ctx, []*thread{x.whose[at]})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t := list[0]
	n := 1 + slices.IndexFunc(t.entries, func(e reconcile.Entry) bool { return e.Ref == at })
	p := &place{base: t, whole: true, at: n, from: at}
	if n == len(t.entries) {
		p.thread, p.from = t, t.tip
	}
	return x.placed(ctx, a, p)
}

// repeatsLead returns how many entries at the beginning of a request, which has only what is
// new, are instructions that the thread has already.
func (p *place) repeatsLead(a *asked) (n int) {
	for n < len(a.entries) && a.entries[n].Role == content.RoleSystem {
		unit := a.entries[n].Unit
		if !slices.ContainsFunc(p.base.entries, func(e reconcile.Entry) bool { return e.Unit == unit }) {
			break
		}
		n++
	}
	return n
}

// recording returns what a request adds at its place, and the entries of the list that are
// new: the commits of their blocks follow in the same order.
func (p *place) recording(a *asked) (r tract.Recording, added []int) {
	r = tract.Recording{By: recordedBy, Details: p.details, From: p.from, Note: p.note}
	first := 0
	switch {
	case p.whole:
		first = p.repeatsLead(a)
	case p.plan != nil:
		first = p.plan.Listed
		for _, pair := range p.plan.Changed {
			if ref := p.base.entries[pair[0]].Ref; !ref.IsZero() {
				r.Edits = append(r.Edits, tract.RecordedEdit{Commit: ref, Block: p.sameCall(pair[0], a.block(pair[1]))})
			}
		}
		for _, known := range p.plan.Missing {
			if ref := p.base.entries[known].Ref; !ref.IsZero() {
				r.Edits = append(r.Edits, tract.RecordedEdit{Commit: ref})
			}
		}
		added = append(added, p.plan.Inserted...)
	}
	for i := first; i < len(a.entries); i++ {
		added = append(added, i)
	}
	if p.base != nil {
		r.Previous = p.base.manifest
	}
	ids := p.callIDs(a)
	last := -1
	for _, i := range added {
		block := a.block(i)
		if result, ok := block.(content.ToolResult); ok && ids[result.CallID] != "" {
			result.CallID = ids[result.CallID]
			block = result
		}
		if n := len(r.Messages); n > 0 && last == a.entries[i].Message {
			r.Messages[n-1].Blocks = append(r.Messages[n-1].Blocks, block)
			continue
		}
		last = a.entries[i].Message
		r.Messages = append(r.Messages, content.Message{Role: a.request.Messages[last].Role, Blocks: []content.Block{block}})
	}
	return r, added
}

// block returns the block of an entry, as it was sent.
func (a *asked) block(entry int) content.Block {
	e := &a.entries[entry]
	return a.request.Messages[e.Message].Blocks[e.Block]
}

// sameCall returns a block with the call id of the known one in its place.
func (p *place) sameCall(known int, b content.Block) content.Block {
	if result, ok := b.(content.ToolResult); ok {
		result.CallID = p.base.entries[known].CallID
		return result
	}
	return b
}

// callIDs returns the ids under which calls are stored that the client sends under other
// ids: a call had none on the wire, and the client made one.
func (p *place) callIDs(a *asked) map[string]string {
	ids := map[string]string{}
	if p.plan == nil {
		return ids
	}
	for i, known := range p.plan.Known {
		if known >= 0 && a.entries[i].Kind == content.KindToolCall {
			if sent, stored := a.entries[i].CallID, p.base.entries[known].CallID; sent != stored && stored != "" {
				ids[sent] = stored
			}
		}
	}
	return ids
}

// committed notes what was committed at a place, with the masked blocks of the response. The
// lock of the index is held.
func (x *index) committed(ctx context.Context, a *asked, p *place, added []int, done *tract.Recorded, reply []content.Block) error {
	t := x.threads[p.branch]
	if t == nil {
		t = &thread{branch: p.branch, claim: claimKey(p.details), details: p.details, anchors: map[string]bool{}}
		x.put(t)
	}
	if p.whole && p.at < len(p.base.entries) { // what comes before it is an earlier state of another thread
		x.drop(t)
		return x.read(ctx, p.branch, done.Tip)
	}
	x.count++
	t.recorded = x.count
	x.leave(t)
	defer x.stand(t)
	t.tip, t.erased = done.Tip, nil
	t.purged = t.purged || p.base != nil && p.base.purged
	list := a.entries
	if p.whole {
		tail := p.base.tail.Clone()
		list = tail.Add(a.messages, nil)
		list, a.tail = list[len(list)-len(added):], tail
	}
	commits := p.commits(a, added, done)
	for i := range list {
		e := &list[i]
		known := -1
		switch {
		case p.whole:
			e.Ref = commits[added[i]]
			continue
		case p.plan != nil:
			known = p.plan.Known[i]
		}
		if e.Ref = commits[i]; e.Ref.IsZero() && known >= 0 {
			if e.Ref = p.base.entries[known].Ref; e.Kind == content.KindToolCall {
				e.CallID = p.base.entries[known].CallID
			}
		}
	}
	for _, e := range a.entries {
		x.anchor(t, objects.ID{}, e.Role, a.messages[e.Message].Blocks[e.Block])
	}
	if p.whole {
		list = append(slices.Clone(p.base.entries), list...)
	}
	t.entries, t.tail = list, a.tail
	if done.Response == nil || done.Rescued != "" {
		return nil
	}
	t.manifest = done.Response.Manifest
	x.reply(t, done.Response, reply)
	return nil
}

// commits returns the commits of the new entries of a list, by their place in it.
func (p *place) commits(a *asked, added []int, done *tract.Recorded) map[int]objects.ID {
	commits := map[int]objects.ID{}
	rest := done.Request
	for _, i := range added {
		if len(rest) > 0 && !content.IsEmpty(a.block(i)) {
			commits[i], rest = rest[0], rest[1:]
		}
	}
	return commits
}

// reply adds the blocks of a response to its thread.
func (x *index) reply(t *thread, r *tract.Response, blocks []content.Block) {
	rest := r.Commits
	for _, block := range blocks {
		if content.IsBlank(block) || len(rest) == 0 {
			continue
		}
		entries := t.tail.Add([]content.Message{{Role: content.RoleAssistant, Blocks: []content.Block{block}}}, nil)
		entries[0].Ref = rest[0]
		t.entries = append(t.entries, entries...)
		x.anchor(t, rest[0], content.RoleAssistant, block)
		rest = rest[1:]
	}
	if n := len(r.Commits); r.ID != "" && n > 0 {
		x.told[r.ID], x.whose[r.Commits[n-1]] = r.Commits[n-1], t
	}
}
