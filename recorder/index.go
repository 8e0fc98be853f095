package recorder

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

// thread is a recorded branch in the form in which its client sends it.
type thread struct {
	branch        string
	identity      string            // key of the identity; empty: the client names no session
	details       map[string]string // of the identity
	tip           objects.ID
	entries       []reconcile.Entry   // Ref is the commit
	purgedContent map[objects.ID]bool // content ids of purged blocks
	purged        bool                // content was purged: the spool keeps none of it when the client sends it again
	manifest      objects.ID          // of the newest response
	builder       *reconcile.Builder  // after the entries
	lastRecorded  int                 // value of recordedCount at its last exchange
	externalIDs   map[string]bool     // ids of its calls, items and seals, see externalIDsOf
}

// index finds threads by the ids in requests. It is a cache, built on demand from the histories
// in the store: the threads of a session when a request names the session, and all threads when
// a request names no session, or a new session but repeats a known history. A branch that
// somebody else moved is read again before use (refresh).
type index struct {
	repo   *tract.Repo
	prefix string
	masks  bool // secrets are masked in the repo

	mu      sync.Mutex
	cleared string // spool.Cleared when the index was built
	indexMaps
}

// indexMaps are the contents of an index.
type indexMaps struct {
	recordedCount int                     // exchanges committed so far
	threads       map[string]*thread      // by branch
	byIdentity    map[string][]*thread    // by key of the identity
	byExternalID  map[string][]*thread    // by external id
	items         map[string][]objects.ID // commits of an item, by the provider's item id
	responses     map[string]response     // by the provider's response id
	loaded        map[string]bool         // arguments of loadBranches so far
}

// response is a response on a thread.
type response struct {
	thread *thread
	end    objects.ID // its last commit
}

func newIndex(repo *tract.Repo, prefix string, masks bool) *index {
	x := &index{repo: repo, prefix: prefix, masks: masks}
	x.reset()
	return x
}

// reset empties the index.
func (x *index) reset() {
	x.indexMaps = indexMaps{
		threads: map[string]*thread{}, byIdentity: map[string][]*thread{}, byExternalID: map[string][]*thread{},
		items: map[string][]objects.ID{}, responses: map[string]response{}, loaded: map[string]bool{},
	}
}

// threadsOfIdentity returns the threads of the identity with a key. mainBranch is the name of its main
// branch. The caller holds the lock.
func (x *index) threadsOfIdentity(ctx context.Context, key, mainBranch string) ([]*thread, error) {
	if err := x.loadBranches(ctx, mainBranch, forkSuffix); err != nil {
		return nil, err
	}
	return x.refresh(ctx, x.byIdentity[key])
}

// loadAll reads every branch below the prefix. The caller holds the lock.
func (x *index) loadAll(ctx context.Context) error {
	return x.loadBranches(ctx, x.prefix, anySuffix)
}

// forkSuffix matches what follows the name of a main branch in the names of its forks. It also
// matches the empty string, for the main branch.
var (
	forkSuffix = regexp.MustCompile(`^(/(fork-)?[0-9]+)?$`)
	anySuffix  = regexp.MustCompile("")
)

// loadBranches reads the branches whose names are a prefix and a suffix, unless it has done so before.
func (x *index) loadBranches(ctx context.Context, prefix string, suffix *regexp.Regexp) error {
	key := prefix + " " + suffix.String()
	if x.loaded[key] {
		return nil
	}
	list, err := x.repo.Store().Refs(ctx, objects.RefQuery{Prefix: refs.Heads + prefix})
	if err != nil {
		return fmt.Errorf("list branches: %w", err)
	}
	for _, ref := range list {
		name := strings.TrimPrefix(ref.Name, refs.Heads)
		if x.threads[name] == nil && suffix.MatchString(strings.TrimPrefix(name, prefix)) {
			if err := x.readThread(ctx, name, ref.Target); err != nil {
				return err
			}
		}
	}
	x.loaded[key] = true
	return nil
}

// refresh returns the threads of a list in their present state: it reads those again whose
// branches moved, and omits those whose branches no longer exist.
func (x *index) refresh(ctx context.Context, threads []*thread) (existing []*thread, err error) {
	for _, t := range slices.Clone(threads) {
		ref, err := objects.ReadRef(ctx, x.repo.Store(), refs.Heads+t.branch)
		if err != nil {
			return nil, err
		}
		if ref.Target != t.tip {
			x.removeThread(t)
			if err := x.readThread(ctx, t.branch, ref.Target); err != nil {
				return nil, err
			}
		}
		if now := x.threads[t.branch]; now != nil && now.identity == t.identity {
			existing = append(existing, now)
		}
	}
	return existing, nil
}

// readThread adds the thread of a branch, read from its history. It skips a branch that does not exist, and
// one whose history is damaged: the conversation will start a new branch.
func (x *index) readThread(ctx context.Context, branch string, tip objects.ID) error {
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
	t := &thread{branch: branch, tip: tip, builder: &reconcile.Builder{}, purgedContent: map[objects.ID]bool{}, externalIDs: map[string]bool{}}
	x.addHistory(t, line)
	t.identity = identityKey(t.details)
	if t.identity == "" && !strings.HasPrefix(branch, x.prefix) { // somebody else created the branch, and On named it
		t.identity = identityKey((&identity{branch: branch}).details())
	}
	x.addThread(t)
	return nil
}

// addHistory adds the blocks of a history that its client sends to a thread, and sets the thread's details
// and manifest. It applies only the edits that the client made: the client does not know others.
func (x *index) addHistory(t *thread, commits []*commit.Commit) {
	own := slices.DeleteFunc(slices.Clone(commits), func(c *commit.Commit) bool { return c.Origin == nil || c.Origin.Importer != recordedBy })
	changes, _ := history.LatestChanges(own)
	for _, c := range own {
		if t.details = c.Origin.Original; !c.Origin.Manifest.IsZero() {
			t.manifest = c.Origin.Manifest
		}
	}
	for _, c := range commits {
		leftOut := changes[history.ChangeKey{Target: c.ID, Op: commit.Annotate}] != nil
		if c.Op != commit.Append || c.Role == content.NoRole || leftOut || c.Block == nil {
			continue
		}
		now := c // with the present content
		if edit := changes[history.ChangeKey{Target: c.ID, Op: commit.Edit}]; edit != nil && edit.Block != nil {
			now = edit
		}
		block, purged := x.maskedBlock(now.Block), now.Tombstone != nil
		// A purged block is compared by the id of its content.
		t.appendEntry(c.ID, c.Role, block, func(content.Block) (objects.ID, bool) { return now.ContentID, purged })
		if purged {
			t.purgedContent[now.ContentID], t.purged = true, true
		}
		if c.Role == content.RoleAssistant {
			x.addResponseIDs(t, c.ID, block)
		}
		if c.Origin != nil && c.Origin.ResponseID != "" {
			x.responses[c.Origin.ResponseID] = response{t, c.ID}
		}
	}
}

// appendEntry appends the block of a commit to a thread. override is that of [reconcile.Builder.Add].
func (t *thread) appendEntry(commitID objects.ID, role content.Role, b content.Block, override reconcile.Override) {
	entries := t.builder.Add([]content.Message{{Role: role, Blocks: []content.Block{b}}}, override)
	entries[0].Ref = commitID
	t.entries = append(t.entries, entries...)
}

// resetIfCleared empties the index if a spool was cleared since it was built, because a purge has changed
// the histories.
func (x *index) resetIfCleared(marker string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cleared != marker {
		x.reset()
		x.cleared = marker
	}
}

// maskedBlock returns a block in the form in which blocks are compared. Stored blocks may be
// masked, but the client sends the secrets again, so secrets are masked on both sides.
func (x *index) maskedBlock(b content.Block) content.Block {
	if x.masks {
		b, _ = history.MaskBlock(b)
	}
	return b
}

// addThread adds a thread. The caller holds the lock.
func (x *index) addThread(t *thread) {
	x.threads[t.branch] = t
	x.byIdentity[t.identity] = append(x.byIdentity[t.identity], t)
}

// removeThread removes a thread. The caller holds the lock.
func (x *index) removeThread(t *thread) {
	delete(x.threads, t.branch)
	x.byIdentity[t.identity] = withoutThread(x.byIdentity[t.identity], t)
	for id := range t.externalIDs {
		if x.byExternalID[id] = withoutThread(x.byExternalID[id], t); len(x.byExternalID[id]) == 0 {
			delete(x.byExternalID, id)
		}
	}
}

func withoutThread(threads []*thread, t *thread) []*thread {
	return slices.DeleteFunc(slices.Clone(threads), func(o *thread) bool { return o == t })
}

// lastCountedKey returns the key of the last entry that counts; zero if there is none.
func (t *thread) lastCountedKey() (key objects.ID) {
	for _, e := range slices.Backward(t.entries) {
		if e.Counts {
			return e.Key
		}
	}
	return key
}

// hasResponse reports whether entries have a response.
func hasResponse(entries []reconcile.Entry) bool {
	return slices.ContainsFunc(entries, func(e reconcile.Entry) bool { return e.Counts && e.Role == content.RoleAssistant })
}

// addExternalIDs adds external ids to a thread and to the index. A side call may repeat ids of its
// conversation, and no request continues it by them.
func (x *index) addExternalIDs(t *thread, ids []string) {
	if t.details["side"] != "" {
		return
	}
	for _, id := range ids {
		if !t.externalIDs[id] {
			t.externalIDs[id] = true
			x.byExternalID[id] = append(x.byExternalID[id], t)
		}
	}
}

// addResponseIDs adds the ids of a block of a response to a thread and to the index. commitID is its commit.
func (x *index) addResponseIDs(t *thread, commitID objects.ID, b content.Block) {
	x.addExternalIDs(t, externalIDsOf(content.RoleAssistant, b))
	if id := b.Form().ID; id != "" && t.details["side"] == "" && !slices.Contains(x.items[id], commitID) {
		x.items[id] = append(x.items[id], commitID)
	}
}

// generatedCallID matches ids that were generated for calls without one. They do not identify a
// call.
var generatedCallID = regexp.MustCompile(`^call_[0-9a-f]{16}$|/[0-9]+$`)

// minSealLength is the shortest seal that identifies a response. Gemini CLI replaces seals with
// a short constant after it has resumed a session.
const minSealLength = 64

// externalIDsOf returns the ids by which a block that a model made is recognized when a client
// sends it again: the call id, the item id, and the hash of the seal. In its side calls, Gemini CLI
// puts the name of the tool and two underscores before a call id.
func externalIDsOf(role content.Role, b content.Block) (ids []string) {
	if role != content.RoleAssistant {
		return nil
	}
	if call, ok := b.(content.ToolCall); ok {
		if id := strings.TrimPrefix(call.CallID, call.Name+"__"); id != "" && !generatedCallID.MatchString(id) {
			ids = append(ids, "call "+id)
		}
	}
	form := b.Form()
	if form.ID != "" {
		ids = append(ids, "item "+form.ID)
	}
	if len(form.Seal.Data) >= minSealLength {
		hash := objects.Hash([]byte(form.Seal.Data))
		ids = append(ids, "seal "+string(hash[:]))
	}
	return ids
}

// identityKey returns the key of the identity with these details; empty if it names neither a session
// nor a branch.
func identityKey(details map[string]string) string {
	if branch := details["branch"]; branch != "" {
		return "branch\x00" + branch
	}
	if details["session"] == "" {
		return ""
	}
	return strings.Join([]string{details["client"], details["session"], details["agent"], details["side"]}, "\x00")
}

// freeBranchName returns a name that no branch has; see [refs.FreeName].
func (x *index) freeBranchName(ctx context.Context, wanted, separator string) (string, error) {
	return refs.FreeName(wanted, separator, func(name string) (bool, error) {
		if x.threads[name] != nil {
			return true, nil
		}
		ref, err := objects.ReadRef(ctx, x.repo.Store(), refs.Heads+name)
		return !ref.Target.IsZero(), err
	})
}

// threadsWithMostExternalIDs returns the threads that have the most of the ids, the longest last; none if no
// thread has one of them. The caller holds the lock.
func (x *index) threadsWithMostExternalIDs(ctx context.Context, ids []string) ([]*thread, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := x.loadAll(ctx); err != nil {
		return nil, err
	}
	found := map[*thread]bool{}
	for _, id := range ids {
		for _, t := range x.byExternalID[id] {
			found[t] = true
		}
	}
	list := slices.SortedFunc(maps.Keys(found), func(a, b *thread) int { return cmp.Or(len(a.entries)-len(b.entries), cmp.Compare(a.branch, b.branch)) })
	return x.refresh(ctx, withMostExternalIDs(list, ids))
}

// withMostExternalIDs returns the threads of a list that have the most of the external ids.
func withMostExternalIDs(threads []*thread, ids []string) (best []*thread) {
	most := 0
	for _, t := range threads {
		n := 0
		for _, id := range ids {
			if t.externalIDs[id] {
				n++
			}
		}
		if n > most {
			best, most = nil, n
		}
		if n == most {
			best = append(best, t)
		}
	}
	return best
}
