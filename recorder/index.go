package recorder

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// thread is a recorded branch as its client sends it.
type thread struct {
	branch   string
	claim    string            // key of the claim; empty: the client names no session
	details  map[string]string // of the claim
	tip      objects.ID
	entries  []reconcile.Entry   // Ref is the commit
	erased   map[objects.ID]bool // ids of the content of purged blocks
	purged   bool                // there was such content: what the client sends again is not kept in the spool
	manifest objects.ID          // of the newest response
	tail     *reconcile.Builder  // after the entries
	recorded int                 // counts up with each exchange; the thread with the highest number is the newest
	anchors  map[string]bool     // ids in it that the client or the provider chose
}

// index finds threads by what requests say. It is built from the histories when it is
// needed: the threads of a session when the session asks, all of them when a request names
// no session or one that is new and goes on from a history.
type index struct {
	repo   *tract.Repo
	prefix string
	masks  bool // secrets are masked in the repo

	mu      sync.Mutex
	cleared string                   // spool.Cleared when the index was built
	count   int                      // of the exchanges that were committed
	threads map[string]*thread       // by branch
	claims  map[string][]*thread     // by key of the claim
	ids     map[string][]*thread     // by anchor
	tips    map[objects.ID][]*thread // that name no session, by the key of their last entry
	items   map[string][]objects.ID  // commits by the provider's id of the item
	told    map[string]objects.ID    // last commits of responses, by the provider's id
	whose   map[objects.ID]*thread   // of those
	all     bool                     // every branch below the prefix was read
	looked  map[string]bool          // branches that were asked for by name
}

func newIndex(repo *tract.Repo, prefix string, masks bool) *index {
	return &index{
		repo: repo, prefix: prefix, masks: masks, threads: map[string]*thread{}, claims: map[string][]*thread{}, ids: map[string][]*thread{},
		tips: map[objects.ID][]*thread{}, items: map[string][]objects.ID{}, told: map[string]objects.ID{}, whose: map[objects.ID]*thread{}, looked: map[string]bool{},
	}
}

// ofClaim returns the threads of a claim, whose main branch has a name. The lock is held.
func (x *index) ofClaim(ctx context.Context, key, branch string) ([]*thread, error) {
	if !x.looked[branch] {
		if err := x.load(ctx, branch, isFork); err != nil {
			return nil, err
		}
		x.looked[branch] = true
	}
	return x.fresh(ctx, x.claims[key])
}

// loadAll reads every branch below the prefix. The lock is held.
func (x *index) loadAll(ctx context.Context) error {
	if x.all {
		return nil
	}
	err := x.load(ctx, x.prefix, func(string) bool { return true })
	x.all = err == nil
	return err
}

// forkEnd is what the name of a branch is followed by in the names of its forks.
var forkEnd = regexp.MustCompile(`^(/(fork-)?[0-9]+)?$`)

func isFork(rest string) bool { return forkEnd.MatchString(rest) }

// load reads the branches whose names begin with a prefix and go on as wanted.
func (x *index) load(ctx context.Context, prefix string, wanted func(rest string) bool) error {
	list, err := x.repo.Store().Refs(ctx, objects.RefQuery{Prefix: refs.Heads + prefix})
	if err != nil {
		return fmt.Errorf("list branches: %w", err)
	}
	for _, ref := range list {
		name := strings.TrimPrefix(ref.Name, refs.Heads)
		if x.threads[name] == nil && wanted(strings.TrimPrefix(name, prefix)) {
			if err := x.read(ctx, name, ref.Target); err != nil {
				return err
			}
		}
	}
	return nil
}

// fresh reads threads again whose branches moved, and leaves out those that are gone.
func (x *index) fresh(ctx context.Context, list []*thread) (kept []*thread, err error) {
	for _, t := range slices.Clone(list) {
		ref, err := objects.ReadRef(ctx, x.repo.Store(), refs.Heads+t.branch)
		switch {
		case err != nil:
			return nil, err
		case ref.Target == t.tip:
			kept = append(kept, t)
			continue
		}
		x.drop(t)
		if ref.Target.IsZero() {
			continue
		}
		if err := x.read(ctx, t.branch, ref.Target); err != nil {
			return nil, err
		}
		if again := x.threads[t.branch]; again != nil && again.claim == t.claim {
			kept = append(kept, again)
		}
	}
	return kept, nil
}

// read reads the thread of a branch from its history. One that is damaged is left out: its
// conversation begins anew.
func (x *index) read(ctx context.Context, branch string, tip objects.ID) error {
	line, err := commit.Linearize(ctx, x.repo.Store(), tip)
	if err == nil {
		err = history.LoadAll(ctx, x.repo.Store(), line)
	}
	if err != nil {
		if ctx.Err() != nil || !history.IsDamaged(err) {
			return err
		}
		return nil
	}
	t := &thread{branch: branch, tip: tip, erased: map[objects.ID]bool{}, anchors: map[string]bool{}}
	said := t.sent(line)
	messages := make([]content.Message, len(said))
	for i, b := range said {
		block := x.masked(b.now.Block)
		messages[i] = content.Message{Role: b.first.Role, Blocks: []content.Block{block}}
		x.anchor(t, b.first.ID, b.first.Role, block)
		if b.first.Origin != nil && b.first.Origin.ResponseID != "" {
			x.told[b.first.Origin.ResponseID], x.whose[b.first.ID] = b.first.ID, t
		}
	}
	n := -1
	t.tail = &reconcile.Builder{}
	t.entries = t.tail.Add(messages, func(content.Block) (objects.ID, bool) {
		n++
		return said[n].now.ContentID, said[n].now.Tombstone != nil // a purged block is compared by the id of its content
	})
	for i := range t.entries {
		t.entries[i].Ref = said[i].first.ID
		if said[i].now.Tombstone != nil {
			t.erased[said[i].now.ContentID], t.purged = true, true
		}
	}
	t.claim = claimKey(t.details)
	if t.claim == "" && !strings.HasPrefix(branch, x.prefix) { // it was named by On, and others made it
		t.claim = claimKey(map[string]string{"branch": branch})
	}
	x.put(t)
	return nil
}

// sentBlock is a block that a client sends, as it was first said and as it reads now.
type sentBlock struct{ first, now *commit.Commit }

// sent returns the blocks of a history that its client sends, and notes what the recorder
// knew of it. Only edits of the client count: it does not know of others.
func (t *thread) sent(line []*commit.Commit) (list []sentBlock) {
	edits, leftOut := map[objects.ID]*commit.Commit{}, map[objects.ID]bool{}
	for _, c := range line {
		if c.Origin == nil || c.Origin.Importer != recordedBy {
			continue
		}
		switch c.Op {
		case commit.Edit:
			edits[c.Target] = c
		case commit.Annotate:
			leftOut[c.Target] = true
		}
		if t.details = c.Origin.Original; !c.Origin.Manifest.IsZero() {
			t.manifest = c.Origin.Manifest
		}
	}
	for _, c := range line {
		if c.Op != commit.Append || c.Role == content.NoRole || leftOut[c.ID] || c.Block == nil {
			continue
		}
		now := c
		if edit := edits[c.ID]; edit != nil && edit.Block != nil {
			now = edit
		}
		list = append(list, sentBlock{c, now})
	}
	return list
}

// reset drops everything when a spool was cleared since: a purge has changed the histories.
func (x *index) reset(cleared string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cleared == cleared {
		return
	}
	for _, t := range x.threads {
		x.drop(t)
	}
	clear(x.items)
	clear(x.told)
	clear(x.whose)
	clear(x.looked)
	x.cleared, x.all = cleared, false
}

// forget drops the thread of a branch: it is read again when it is needed.
func (x *index) forget(branch string) {
	if t := x.threads[branch]; t != nil {
		x.drop(t)
	}
	x.all = false
	clear(x.looked)
}

// masked returns a block as it is compared. What is stored may be masked, what a client
// sends again is not: secrets count as their masks on both sides.
func (x *index) masked(b content.Block) content.Block {
	if x.masks {
		b, _ = history.MaskBlock(b)
	}
	return b
}

// put adds a thread. The lock is held.
func (x *index) put(t *thread) {
	x.threads[t.branch] = t
	x.claims[t.claim] = append(x.claims[t.claim], t)
	x.stand(t)
}

// drop takes a thread out. The lock is held.
func (x *index) drop(t *thread) {
	delete(x.threads, t.branch)
	x.claims[t.claim] = without(x.claims[t.claim], t)
	for id := range t.anchors {
		if x.ids[id] = without(x.ids[id], t); len(x.ids[id]) == 0 {
			delete(x.ids, id)
		}
	}
	x.leave(t)
}

func without(list []*thread, t *thread) []*thread {
	return slices.DeleteFunc(slices.Clone(list), func(o *thread) bool { return o == t })
}

// stand notes where the conversation of a thread ends, when it names no session.
func (x *index) stand(t *thread) {
	if end := t.end(); t.claim == "" {
		x.tips[end] = append(x.tips[end], t)
	}
}

func (x *index) leave(t *thread) {
	if end := t.end(); t.claim == "" {
		if x.tips[end] = without(x.tips[end], t); len(x.tips[end]) == 0 {
			delete(x.tips, end)
		}
	}
}

// end returns the key of the last entry that counts.
func (t *thread) end() (key objects.ID) {
	for _, e := range slices.Backward(t.entries) {
		if e.Counts {
			return e.Key
		}
	}
	return key
}

// hasReply reports whether a thread has a response.
func (t *thread) hasReply() bool {
	return slices.ContainsFunc(t.entries, func(e reconcile.Entry) bool { return e.Counts && e.Role == content.RoleAssistant })
}

// anchor notes the ids and seals of a block of a model. The commit is zero for a block that
// a client sent.
func (x *index) anchor(t *thread, at objects.ID, role content.Role, b content.Block) {
	for _, id := range anchorsOf(role, b) {
		if !t.anchors[id] {
			t.anchors[id] = true
			x.ids[id] = append(x.ids[id], t)
		}
	}
	if id := b.Form().ID; id != "" && !at.IsZero() && !slices.Contains(x.items[id], at) {
		x.items[id] = append(x.items[id], at)
	}
}

// made is the form of the id of a call that had none: it says nothing about the call.
var made = regexp.MustCompile(`^call_[0-9a-f]{16}$|/[0-9]+$`)

// leastSeal is the length of the shortest seal that tells responses apart. Gemini CLI
// replaces seals by a constant after it resumed a session.
const leastSeal = 64

// anchorsOf returns the ids and seals by which a block of a model is known again.
func anchorsOf(role content.Role, b content.Block) (ids []string) {
	if role != content.RoleAssistant {
		return nil
	}
	if call, ok := b.(content.ToolCall); ok && call.CallID != "" && !made.MatchString(call.CallID) {
		ids = append(ids, "call "+call.CallID)
	}
	form := b.Form()
	if form.ID != "" {
		ids = append(ids, "item "+form.ID)
	}
	if len(form.Seal.Data) >= leastSeal {
		hash := objects.Hash([]byte(form.Seal.Data))
		ids = append(ids, "seal "+string(hash[:]))
	}
	return ids
}

// claimKey is a claim with a session as a key; empty: it has no session.
func claimKey(details map[string]string) string {
	if branch := details["branch"]; branch != "" {
		return "branch\x00" + branch
	}
	if details["session"] == "" {
		return ""
	}
	return strings.Join([]string{details["client"], details["session"], details["agent"], details["side"]}, "\x00")
}

// free returns a name that no branch has: the wanted one, or else that with a number.
func (x *index) free(ctx context.Context, wanted, separator string) (string, error) {
	if err := refs.Check(wanted); err != nil {
		return "", fmt.Errorf("branch %w", err)
	}
	for n := 1; ; n++ {
		name := wanted
		if n > 1 {
			name = fmt.Sprint(wanted, separator, n)
		}
		if x.threads[name] != nil {
			continue
		}
		ref, err := objects.ReadRef(ctx, x.repo.Store(), refs.Heads+name)
		if err != nil || ref.Target.IsZero() {
			return name, err
		}
	}
}

// byAnchors returns the threads that have the most of the ids of a list, the newest last.
func (x *index) byAnchors(ids []string) (best []*thread) {
	count := map[*thread]int{}
	most := 0
	for _, id := range ids {
		for _, t := range x.ids[id] {
			count[t]++
			most = max(most, count[t])
		}
	}
	for t, n := range count {
		if n == most {
			best = append(best, t)
		}
	}
	slices.SortFunc(best, func(a, b *thread) int { return cmp.Or(len(a.entries)-len(b.entries), cmp.Compare(a.branch, b.branch)) })
	return best
}
