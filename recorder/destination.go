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
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// This file decides where the new blocks of a request are committed: its destination.
//
// A request that names the response it follows (previous_response_id) continues after that
// response. A request with an identity (the session, agent and kind of call read by identity.go,
// or the branch that On names) is compared with every thread of that identity; the thread that
// shares the most ids, and then the most responses, is the base. The first request of a new
// identity, and a request without one, is looked up by its external ids (ids of calls, items and
// seals), and without such ids by its whole text. The comparison plans where the request
// leaves the base (internal/reconcile): after its last commit the branch goes on, after an
// earlier commit a new branch is forked, and without a base a new branch begins.

// clientRequest is a recorded request with what its destination is found by.
type clientRequest struct {
	preparedMessages
	identity       identity
	namedBranch    string // the branch that On names; may be empty
	sent           []byte // the body, without compression
	request        *llm.Request
	at             time.Time
	earlierPending bool // exchanges that ended earlier are not committed yet
}

// destination is the place in a history where the new blocks of a request are committed.
type destination struct {
	branch      string
	taken       string            // branch that has the name which the new branch would have; empty: none
	from        objects.ID        // commit that the new blocks follow; zero: none
	thread      *thread           // thread of the branch; nil: the branch is new
	base        *thread           // thread that the request was compared with; nil: none
	plan        *reconcile.Plan   // result of the comparison with base
	onlyNew     bool              // the request has only new blocks: the provider stores the earlier ones
	baseEntries int               // if onlyNew: the number of entries of base that precede the new blocks
	details     map[string]string // for the origins of the commits
	note        string            // why the request starts a new branch; may be empty
}

// findDestination returns the destination of a request. Its base is a copy: exchanges of other queues
// may change the thread as soon as the lock is released.
func (x *index) findDestination(ctx context.Context, req *clientRequest) (*destination, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	dest, err := x.chooseDestination(ctx, req)
	if err == nil && dest.base != nil {
		base := *dest.base
		dest.base = &base
	}
	return dest, err
}

// chooseDestination is findDestination with a base that is shared. The caller holds the lock.
func (x *index) chooseDestination(ctx context.Context, req *clientRequest) (*destination, error) {
	if after := rawjson.Value(req.request.Settings.Extra).Get("previous_response_id").Text(); after != "" {
		if dest, err := x.destinationAfterResponse(ctx, req, after); dest != nil || err != nil {
			return dest, err
		}
	}
	key := identityKey(req.details())
	if key == "" {
		return x.destinationWithoutSession(ctx, req)
	}
	list, err := x.threadsOfIdentity(ctx, key, req.branchName(x.prefix, false))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return x.destinationOfNewSession(ctx, req)
	}
	if conversation := rawjson.Value(req.request.Settings.Extra).Get("conversation"); conversation != nil {
		t := list[len(list)-1]
		return x.completeDestination(ctx, req, &destination{thread: t, base: t, onlyNew: true, baseEntries: len(t.entries), from: t.tip})
	}
	best := x.bestMatch(req, list)
	dest, err := x.destinationOn(ctx, req, best.thread, best.plan)
	if err == nil && dest.base == nil {
		newest := slices.MaxFunc(list, func(a, b *thread) int { return a.lastRecorded - b.lastRecorded })
		if newest.hasResponse() {
			dest.details[history.LinkContinues] = newest.tip.String()
		}
	}
	return dest, err
}

// details returns the identity of a request as the origins of its commits store it.
func (req *clientRequest) details() map[string]string {
	all := req.identity.details()
	if req.namedBranch != "" {
		all["branch"] = req.namedBranch
	}
	return all
}

// branchName returns the name of the main branch of the request's identity; see [identity.branch].
func (req *clientRequest) branchName(prefix string, wholeIDs bool) string {
	if req.namedBranch != "" {
		return req.namedBranch
	}
	return req.identity.branchName(prefix, wholeIDs)
}

// candidate is a thread with the comparison of a request.
type candidate struct {
	thread *thread
	plan   *reconcile.Plan
	shared int // external ids that the request and the thread share
}

// bestMatch returns the thread of a list that a request continues: the one that shares the most
// external ids with it, and among those the one of which it repeats the most.
func (x *index) bestMatch(req *clientRequest, list []*thread) (best candidate) {
	rank := func(c candidate) [4]int {
		kind := map[reconcile.Kind]int{reconcile.Continues: 3, reconcile.Repeats: 2, reconcile.Forks: 1}[c.plan.Kind]
		return [4]int{c.shared, c.plan.Replies, kind, c.plan.Base - len(c.plan.Missing) - len(c.plan.Changed)}
	}
	for _, t := range list {
		c := candidate{thread: t, plan: x.planContinuation(req, t)}
		for _, id := range req.externalIDs {
			if t.externalIDs[id] {
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

// planContinuation plans how a request continues a thread. Purged blocks are compared by the id of their
// content.
func (x *index) planContinuation(req *clientRequest, t *thread) *reconcile.Plan {
	if len(t.purgedContent) == 0 {
		return reconcile.Compare(t.entries, req.entries)
	}
	return reconcile.Compare(t.entries, new(reconcile.Builder).Add(req.masked, func(b content.Block) (objects.ID, bool) {
		id, err := commit.ContentID(b)
		return id, err == nil && t.purgedContent[id]
	}))
}

// destinationOn returns the destination of a request whose plan was made against a thread of
// its own identity.
func (x *index) destinationOn(ctx context.Context, req *clientRequest, t *thread, plan *reconcile.Plan) (*destination, error) {
	dest := &destination{base: t, plan: plan}
	switch plan.Kind {
	case reconcile.Continues:
		dest.thread, dest.from = t, t.tip
	case reconcile.Forks, reconcile.Repeats:
		if dest.from = t.lastCommitAmongFirst(plan.Base); dest.from == t.tip {
			dest.thread = t
		}
	default:
		dest.base, dest.plan = nil, nil
	}
	return x.completeDestination(ctx, req, dest)
}

// lastCommitAmongFirst returns the last commit among the first n entries.
func (t *thread) lastCommitAmongFirst(n int) (id objects.ID) {
	for _, e := range t.entries[:n] {
		if !e.Ref.IsZero() {
			id = e.Ref
		}
	}
	return id
}

// completeDestination fills in the branch, the details and the plan of a destination.
func (x *index) completeDestination(ctx context.Context, req *clientRequest, dest *destination) (*destination, error) {
	dest.details = req.details()
	if dest.plan == nil {
		if dest.plan = reconcile.Compare(nil, req.entries); dest.onlyNew {
			dest.plan.Listed = dest.repeatedInstructions(req)
		}
	}
	if dest.thread != nil {
		dest.branch = dest.thread.branch
		if dest.thread.details["session"] == "" && dest.thread.details["client"] != "" {
			dest.details = dest.thread.details // another program sends the same conversation: a proxy, a retry
		}
		return dest, nil
	}
	separator := "/"
	if req.namedBranch != "" {
		separator = refs.ForkSuffix
	}
	name := req.branchName(x.prefix, false)
	if req.identity.session == "" && req.namedBranch == "" {
		name = x.prefix + req.identity.client + "/" + timeAndHashName(req)
		if req.identity.side != "" {
			if list := x.threadsByExternalIDs(req.externalIDs); len(list) > 0 {
				name = list[len(list)-1].branch // the conversation that it belongs to
			}
			name += "/side-" + req.identity.side
		}
	} else if other := x.threads[name]; other != nil && other.identity != identityKey(dest.details) {
		name = req.branchName(x.prefix, true) // two sessions have the same short id
	}
	var err error
	if dest.branch, err = x.freeBranchName(ctx, name, separator); dest.branch != name {
		dest.taken = name
	}
	if dest.base != nil && !dest.from.IsZero() {
		dest.details[history.LinkFork] = dest.from.String()
	}
	return dest, err
}

// timeAndHashName returns a branch name for a conversation that names no session: the time and a
// hash of the request, which distinguishes requests of the same second.
func timeAndHashName(req *clientRequest) string {
	var key objects.ID
	if n := len(req.entries); n > 0 {
		key = req.entries[n-1].Key
	}
	return req.at.UTC().Format("20060102-150405") + "-" + fmt.Sprintf("%x", key[:2])
}

// destinationOfNewSession returns the destination of the first request of a session or an
// agent. If the request repeats responses of another session, because the client resumed or
// forked that session under a new id, the branch is forked at the last repeated commit.
func (x *index) destinationOfNewSession(ctx context.Context, req *clientRequest) (*destination, error) {
	if (len(req.externalIDs) > 0 || req.identity.agent != "") && req.earlierPending {
		return nil, errEarly
	}
	if len(req.externalIDs) > 0 {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
		list, err := x.refresh(ctx, x.threadsByExternalIDs(req.externalIDs))
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			if best := x.bestMatch(req, list); best.plan.Kind != reconcile.Begins {
				return x.completeDestination(ctx, req, &destination{base: best.thread, plan: best.plan, from: best.thread.lastCommitAmongFirst(best.plan.Base)})
			}
		}
	}
	dest, err := x.completeDestination(ctx, req, &destination{})
	if err == nil && req.identity.agent != "" && req.namedBranch == "" {
		err = x.linkParent(ctx, req, dest)
	}
	return dest, err
}

// destinationWithoutSession returns the destination of a request that names no session. Its
// external ids decide. Without any, the request continues the one conversation without a
// session whose last response and everything before it the request repeats.
func (x *index) destinationWithoutSession(ctx context.Context, req *clientRequest) (*destination, error) {
	if !slices.ContainsFunc(req.entries, func(e reconcile.Entry) bool { return e.Counts && e.Role == content.RoleAssistant }) {
		return x.completeDestination(ctx, req, &destination{})
	}
	if err := x.loadAll(ctx); err != nil {
		return nil, err
	}
	list, err := x.refresh(ctx, x.threadsByExternalIDs(req.externalIDs))
	if err != nil {
		return nil, err
	}
	if req.identity.side != "" {
		return x.completeDestination(ctx, req, &destination{})
	}
	if own := slices.DeleteFunc(slices.Clone(list), func(t *thread) bool { return t.identity != "" }); len(own) > 0 {
		list = own
	}
	if len(list) > 0 {
		best := x.bestMatch(req, list)
		if best.thread.identity == "" {
			return x.destinationOn(ctx, req, best.thread, best.plan)
		}
		if best.plan.Kind != reconcile.Begins {
			return x.completeDestination(ctx, req, &destination{base: best.thread, plan: best.plan, from: best.thread.lastCommitAmongFirst(best.plan.Base)})
		}
	}
	return x.destinationByTextOrNew(ctx, req)
}

// destinationByTextOrNew returns the destination of a request that has no session and no known ids.
func (x *index) destinationByTextOrNew(ctx context.Context, req *clientRequest) (*destination, error) {
	var found []*thread
	for i := len(req.entries) - 1; i >= 0 && len(found) == 0; i-- {
		if !req.entries[i].Counts {
			continue
		}
		list, err := x.refresh(ctx, x.byLastKey[req.entries[i].Key])
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if t.identity == "" && t.hasResponse() && !t.bothHaveCallIDs(req) {
				found = append(found, t)
			}
		}
	}
	if len(found) == 1 {
		if plan := x.planContinuation(req, found[0]); plan.Kind == reconcile.Continues {
			return x.destinationOn(ctx, req, found[0], plan)
		}
	}
	dest, err := x.completeDestination(ctx, req, &destination{})
	if err == nil && len(found) > 1 {
		dest.note = fmt.Sprintf("ambiguous: the request names no session, and what it repeats is on %d branches", len(found))
	}
	return dest, err
}

// bothHaveCallIDs reports whether both the thread and the request have call ids that a provider
// chose. The caller knows that they share none.
func (t *thread) bothHaveCallIDs(req *clientRequest) bool {
	isCall := func(id string) bool { return strings.HasPrefix(id, "call ") }
	return slices.ContainsFunc(slices.Collect(maps.Keys(t.externalIDs)), isCall) && slices.ContainsFunc(req.externalIDs, isCall)
}

// destinationAfterResponse returns the destination of a request that names the response it
// follows; nil if that response is not known.
func (x *index) destinationAfterResponse(ctx context.Context, req *clientRequest, id string) (*destination, error) {
	if _, known := x.responses[id]; !known {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
	}
	response, known := x.responses[id]
	if !known {
		return nil, nil
	}
	list, err := x.refresh(ctx, []*thread{response.thread})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t := list[0]
	n := 1 + slices.IndexFunc(t.entries, func(e reconcile.Entry) bool { return e.Ref == response.end })
	dest := &destination{base: t, onlyNew: true, baseEntries: n, from: response.end}
	if n == len(t.entries) {
		dest.thread, dest.from = t, t.tip
	}
	return x.completeDestination(ctx, req, dest)
}

// repeatedInstructions returns the number of entries at the beginning of a request that are
// instructions which the base already has. Such a request has otherwise only new blocks.
func (dest *destination) repeatedInstructions(req *clientRequest) (n int) {
	for n < len(req.entries) && req.entries[n].Role == content.RoleSystem {
		unit := req.entries[n].Unit
		if !slices.ContainsFunc(dest.base.entries, func(e reconcile.Entry) bool { return e.Unit == unit }) {
			break
		}
		n++
	}
	return n
}

// newRecording returns the edits and messages to commit for a request, and the indexes of the
// request's new entries. The commits of their blocks have the same order.
func (dest *destination) newRecording(req *clientRequest) (r tract.Recording, newEntries []int) {
	r = tract.Recording{By: recordedBy, Details: dest.details, From: dest.from, Note: dest.note}
	for _, pair := range dest.plan.Changed {
		if ref := dest.base.entries[pair[0]].Ref; !ref.IsZero() {
			r.Edits = append(r.Edits, tract.RecordedEdit{Commit: ref, Block: dest.withCallIDOf(pair[0], req.block(pair[1]))})
		}
	}
	for _, known := range dest.plan.Missing {
		if ref := dest.base.entries[known].Ref; !ref.IsZero() {
			r.Edits = append(r.Edits, tract.RecordedEdit{Commit: ref})
		}
	}
	newEntries = slices.Clone(dest.plan.Inserted)
	for i := dest.plan.Listed; i < len(req.entries); i++ {
		newEntries = append(newEntries, i)
	}
	if dest.base != nil {
		r.Previous = dest.base.manifest
	}
	ids := dest.storedCallIDs(req)
	last := -1
	for _, i := range newEntries {
		block := req.block(i)
		if result, ok := block.(content.ToolResult); ok && ids[result.CallID] != "" {
			result.CallID = ids[result.CallID]
			block = result
		}
		if n := len(r.Messages); n > 0 && last == req.entries[i].Message {
			r.Messages[n-1].Blocks = append(r.Messages[n-1].Blocks, block)
			continue
		}
		last = req.entries[i].Message
		r.Messages = append(r.Messages, content.Message{Role: req.request.Messages[last].Role, Blocks: []content.Block{block}})
	}
	return r, newEntries
}

// block returns the block of an entry as the client sent it.
func (req *clientRequest) block(entry int) content.Block {
	e := &req.entries[entry]
	return req.request.Messages[e.Message].Blocks[e.Block]
}

// withCallIDOf returns b; a tool result gets the call id that an entry of the base has.
func (dest *destination) withCallIDOf(entry int, b content.Block) content.Block {
	if result, ok := b.(content.ToolResult); ok {
		result.CallID = dest.base.entries[entry].CallID
		return result
	}
	return b
}

// storedCallIDs returns the stored call id for each call id of the client that differs from it.
// They differ if the provider sent no id and the client generated one.
func (dest *destination) storedCallIDs(req *clientRequest) map[string]string {
	ids := map[string]string{}
	for i, known := range dest.plan.Known {
		if known >= 0 && req.entries[i].Kind == content.KindToolCall {
			if sent, stored := req.entries[i].CallID, dest.base.entries[known].CallID; sent != stored && stored != "" {
				ids[sent] = stored
			}
		}
	}
	return ids
}

// addCommitted adds the commits of a request and of its response to the thread of the
// destination. responseBlocks are masked. The caller holds the lock.
func (x *index) addCommitted(ctx context.Context, req *clientRequest, dest *destination, newEntries []int, done *tract.Recorded, responseBlocks []content.Block) error {
	t := x.threads[dest.branch]
	if t == nil {
		t = &thread{branch: dest.branch, identity: identityKey(dest.details), details: dest.details, externalIDs: map[string]bool{}}
		x.addThread(t)
	}
	if dest.onlyNew && dest.baseEntries < len(dest.base.entries) { // the earlier blocks are an earlier state of another thread
		x.removeThread(t)
		return x.readThread(ctx, dest.branch, done.Tip)
	}
	x.recordedCount++
	t.lastRecorded = x.recordedCount
	x.removeByLastKey(t)
	defer x.addByLastKey(t)
	t.tip, t.purgedContent = done.Tip, nil
	t.purged = t.purged || dest.base != nil && dest.base.purged
	list, first := req.entries, 0
	if dest.onlyNew {
		tail := dest.base.builder.Clone()
		list, first = tail.Add(req.masked, nil)[dest.plan.Listed:], dest.plan.Listed
		req.builder = tail
	}
	commits := dest.commitsByEntry(req, newEntries, done)
	for i := range list {
		e, known := &list[i], dest.plan.Known[first+i]
		if e.Ref = commits[first+i]; e.Ref.IsZero() && known >= 0 {
			if e.Ref = dest.base.entries[known].Ref; e.Kind == content.KindToolCall {
				e.CallID = dest.base.entries[known].CallID
			}
		}
	}
	x.addExternalIDs(t, req.externalIDs)
	if dest.onlyNew {
		list = append(slices.Clone(dest.base.entries), list...)
	}
	t.entries, t.builder = list, req.builder
	if done.Response == nil || done.Rescued != "" {
		return nil
	}
	t.manifest = done.Response.Manifest
	x.addResponse(t, done.Response, responseBlocks)
	return nil
}

// commitsByEntry returns the commits of the new entries by the index of the entry.
func (dest *destination) commitsByEntry(req *clientRequest, newEntries []int, done *tract.Recorded) map[int]objects.ID {
	commits := map[int]objects.ID{}
	rest := done.Request
	for _, i := range newEntries {
		if len(rest) > 0 && !content.IsEmpty(req.block(i)) {
			commits[i], rest = rest[0], rest[1:]
		}
	}
	return commits
}

// addResponse appends the blocks of a response to its thread.
func (x *index) addResponse(t *thread, r *tract.Response, blocks []content.Block) {
	rest := r.Commits
	for _, block := range blocks {
		if content.IsBlank(block) || len(rest) == 0 {
			continue
		}
		entries := t.builder.Add([]content.Message{{Role: content.RoleAssistant, Blocks: []content.Block{block}}}, nil)
		entries[0].Ref = rest[0]
		t.entries = append(t.entries, entries...)
		x.addResponseBlock(t, rest[0], block)
		rest = rest[1:]
	}
	if n := len(r.Commits); r.ID != "" && n > 0 {
		x.responses[r.ID] = response{t, r.Commits[n-1]}
	}
}
