package recorder

import (
	"cmp"
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
	sent           []byte // the body, without compression
	request        *llm.Request
	at             time.Time
	earlierPending bool // exchanges that ended earlier are not committed yet
}

// destination is the place in a history where the new blocks of a request are committed.
type destination struct {
	branch  string
	beside  string            // branch of the conversation that a side call without a session belongs to; may be empty
	taken   string            // branch that has the name which the new branch would have; empty: none
	from    objects.ID        // commit that the new blocks follow; zero: none
	base    *thread           // thread that the request was compared with; nil: none
	goesOn  bool              // the new blocks follow the tip of base, on its branch; otherwise the branch is new
	plan    *reconcile.Plan   // result of the comparison with base
	onlyNew bool              // the request has only new blocks: the provider stores the earlier ones
	details map[string]string // for the origins of the commits
	note    string            // why the request starts a new branch; may be empty
}

// findDestination returns the destination of a request.
func (x *index) findDestination(ctx context.Context, req *clientRequest) (*destination, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if after := rawjson.Value(req.request.Settings.Extra).Get("previous_response_id").Text(); after != "" {
		if dest, err := x.destinationAfterResponse(ctx, req, after); dest != nil || err != nil {
			return dest, err
		}
	}
	key := identityKey(req.identity.details())
	if key == "" {
		return x.destinationWithoutSession(ctx, req)
	}
	list, err := x.threadsOfIdentity(ctx, key, req.identity.branchName(x.prefix, false))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return x.destinationOfNewSession(ctx, req)
	}
	if conversation := rawjson.Value(req.request.Settings.Extra).Get("conversation"); conversation != nil {
		t := list[len(list)-1]
		return x.completeDestination(ctx, req, &destination{base: t, goesOn: true, onlyNew: true})
	}
	t, plan := x.bestMatch(req, list)
	dest, err := x.destinationOn(ctx, req, t, plan)
	if err == nil && dest.base == nil {
		newest := slices.MaxFunc(list, func(a, b *thread) int { return a.lastRecorded - b.lastRecorded })
		if hasResponse(newest.entries) {
			dest.details[history.LinkContinues] = newest.tip.String()
		}
	}
	return dest, err
}

// bestMatch returns the thread of a list that a request continues, and the plan: of the threads that share
// the most external ids with the request, it is the one of which the request repeats the most. It
// returns nil for an empty list.
func (x *index) bestMatch(req *clientRequest, threads []*thread) (best *thread, plan *reconcile.Plan) {
	unchanged := func(p *reconcile.Plan) int { return p.Base - len(p.Missing) - len(p.Changed) }
	for _, t := range withMostExternalIDs(threads, req.externalIDs) {
		p := x.planContinuation(req, t)
		if best == nil || cmp.Or(p.Replies-plan.Replies, int(p.Kind)-int(plan.Kind), unchanged(p)-unchanged(plan)) > 0 {
			best, plan = t, p
		}
	}
	return best, plan
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

// destinationOn returns the destination of a request whose plan was made against a thread. A thread of
// another identity is forked.
func (x *index) destinationOn(ctx context.Context, req *clientRequest, t *thread, plan *reconcile.Plan) (*destination, error) {
	dest := &destination{base: t, plan: plan}
	for _, e := range t.entries[:plan.Base] {
		if !e.Ref.IsZero() {
			dest.from = e.Ref
		}
	}
	switch own := t.identity == identityKey(req.identity.details()); {
	case plan.Kind == reconcile.Begins:
		dest = &destination{}
	case own && (plan.Kind == reconcile.Continues || dest.from == t.tip):
		dest.goesOn = true
	}
	return x.completeDestination(ctx, req, dest)
}

// completeDestination fills in the branch, the details and the plan of a destination. It copies the base:
// exchanges of other queues may change the thread as soon as the lock is released.
func (x *index) completeDestination(ctx context.Context, req *clientRequest, dest *destination) (*destination, error) {
	if dest.base != nil {
		base := *dest.base
		dest.base = &base
	}
	dest.details = req.identity.details()
	if dest.plan == nil {
		if dest.plan = reconcile.Compare(nil, req.entries); dest.onlyNew {
			dest.plan.Listed = dest.repeatedInstructions(req)
		}
	}
	if dest.goesOn {
		dest.branch, dest.from = dest.base.branch, dest.base.tip
		if dest.base.details["session"] == "" && dest.base.details["client"] != "" {
			dest.details = dest.base.details // another program sends the same conversation: a proxy, a retry
		}
		return dest, nil
	}
	separator := "/"
	if req.identity.branch != "" {
		separator = refs.ForkSuffix
	}
	name := req.identity.branchName(x.prefix, false)
	if req.identity.session == "" && req.identity.branch == "" {
		// The hash distinguishes requests of the same second.
		timeAndHash := req.at.UTC().Format("20060102-150405-") + objects.Hash(req.sent).String()[:4]
		name = cmp.Or(dest.beside, x.prefix+req.identity.client+"/"+timeAndHash)
		if req.identity.side != "" {
			name += "/side-" + req.identity.side
		}
	} else if other := x.threads[name]; other != nil && other.identity != identityKey(dest.details) {
		name = req.identity.branchName(x.prefix, true) // two sessions have the same short id
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

// destinationOfNewSession returns the destination of the first request of a session or an
// agent. If the request repeats responses of another session, because the client resumed or
// forked that session under a new id, the branch is forked at the last repeated commit.
func (x *index) destinationOfNewSession(ctx context.Context, req *clientRequest) (*destination, error) {
	if (len(req.externalIDs) > 0 || req.identity.agent != "") && req.earlierPending {
		return nil, errEarly
	}
	list, err := x.threadsWithMostExternalIDs(ctx, req.externalIDs)
	if err != nil {
		return nil, err
	}
	if t, plan := x.bestMatch(req, list); t != nil && plan.Kind != reconcile.Begins {
		return x.destinationOn(ctx, req, t, plan)
	}
	dest, err := x.completeDestination(ctx, req, &destination{})
	if err == nil && req.identity.agent != "" && req.identity.branch == "" {
		err = x.linkParent(ctx, req, dest)
	}
	return dest, err
}

// destinationWithoutSession returns the destination of a request that names no session. Its
// external ids decide. Without any, the request continues the one conversation without a
// session whose last response and everything before it the request repeats.
func (x *index) destinationWithoutSession(ctx context.Context, req *clientRequest) (*destination, error) {
	if !hasResponse(req.entries) {
		return x.completeDestination(ctx, req, &destination{})
	}
	list, err := x.threadsWithMostExternalIDs(ctx, req.externalIDs)
	if err != nil {
		return nil, err
	}
	if req.identity.side != "" {
		dest := &destination{}
		if len(list) > 0 {
			dest.beside = list[len(list)-1].branch
		}
		return x.completeDestination(ctx, req, dest)
	}
	if own := slices.DeleteFunc(slices.Clone(list), func(t *thread) bool { return t.identity != "" }); len(own) > 0 {
		list = own
	}
	if t, plan := x.bestMatch(req, list); t != nil && (t.identity == "" || plan.Kind != reconcile.Begins) {
		return x.destinationOn(ctx, req, t, plan)
	}
	return x.destinationByTextOrNew(ctx, req)
}

// destinationByTextOrNew returns the destination of a request that has no session and no known ids.
func (x *index) destinationByTextOrNew(ctx context.Context, req *clientRequest) (*destination, error) {
	if err := x.loadAll(ctx); err != nil {
		return nil, err
	}
	at := map[objects.ID]int{}
	for i, e := range req.entries {
		if e.Counts {
			at[e.Key] = i
		}
	}
	var longest []*thread // of the threads that the request repeats whole
	last := -1
	for _, t := range x.byIdentity[""] {
		i, repeated := at[t.lastCountedKey()]
		if !repeated || i < last || !hasResponse(t.entries) || t.bothHaveCallIDs(req) {
			continue
		}
		if i > last {
			longest, last = nil, i
		}
		longest = append(longest, t)
	}
	found, err := x.refresh(ctx, longest)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		if plan := x.planContinuation(req, found[0]); plan.Kind == reconcile.Continues && plan.Replies > 0 {
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
	return x.completeDestination(ctx, req, &destination{base: t, goesOn: n == len(t.entries), onlyNew: true, from: response.end})
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
	ids := dest.storedCallIDs(req)
	for _, pair := range dest.plan.Changed {
		if ref := dest.base.entries[pair[0]].Ref; !ref.IsZero() {
			r.Edits = append(r.Edits, tract.RecordedEdit{Commit: ref, Block: req.blockWith(ids, pair[1])})
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
	last := -1
	for _, i := range newEntries {
		block := req.blockWith(ids, i)
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

// blockWith is block; a tool result gets the call id that ids has for its own.
func (req *clientRequest) blockWith(ids map[string]string, entry int) content.Block {
	b := req.block(entry)
	if result, ok := b.(content.ToolResult); ok {
		result.CallID = cmp.Or(ids[result.CallID], result.CallID)
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
// destination. The caller holds the lock.
func (x *index) addCommitted(ctx context.Context, req *clientRequest, dest *destination, newEntries []int, done *tract.Recorded) error {
	t := x.threads[dest.branch]
	if t == nil {
		t = &thread{branch: dest.branch, identity: identityKey(dest.details), details: dest.details, externalIDs: map[string]bool{}}
		x.addThread(t)
	}
	if dest.onlyNew && !dest.goesOn { // the earlier blocks are an earlier state of another thread
		x.removeThread(t)
		return x.readThread(ctx, dest.branch, done.Tip)
	}
	x.recordedCount++
	t.lastRecorded = x.recordedCount
	t.tip, t.purgedContent = done.Tip, nil
	t.purged = t.purged || dest.base != nil && dest.base.purged
	list, first := req.entries, 0
	if dest.onlyNew {
		tail := dest.base.builder.Clone()
		list, first = tail.Add(req.masked, nil)[dest.plan.Listed:], dest.plan.Listed
		req.builder = tail
	}
	commits := done.Request
	for _, i := range newEntries {
		if len(commits) > 0 && !content.IsEmpty(req.block(i)) { // an empty block has no commit
			list[i-first].Ref, commits = commits[0], commits[1:]
		}
	}
	for i := range list {
		e, known := &list[i], dest.plan.Known[first+i]
		if e.Ref.IsZero() && known >= 0 {
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
	x.addResponse(t, done.Response)
	return nil
}

// addResponse appends the blocks of a response to its thread.
func (x *index) addResponse(t *thread, r *tract.Response) {
	rest := r.Commits
	for _, block := range r.Blocks {
		if content.IsBlank(block) || len(rest) == 0 {
			continue
		}
		block = x.maskedBlock(block)
		t.appendEntry(rest[0], content.RoleAssistant, block, nil)
		x.addResponseIDs(t, rest[0], block)
		rest = rest[1:]
	}
	if n := len(r.Commits); r.ID != "" && n > 0 {
		x.responses[r.ID] = response{t, r.Commits[n-1]}
	}
}
