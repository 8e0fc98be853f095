package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Recording is an exchange of another program with a model, and the commit that it follows
// on a branch. Package recorder makes recordings.
type Recording struct {
	By      string            // the program that records, for the origins of the commits
	Details map[string]string // named values about the conversation, for the origins of the commits
	From    objects.ID        // the commit that the exchange follows; zero: it begins a history

	Edits    []RecordedEdit    // blocks that the client has changed since its last request
	Messages []content.Message // the new messages of the request
	Note     string            // the outcome of a request that has no response; never sent
	Meta     map[string]string // named values of the note

	Request  *llm.Request      // the request
	Body     []byte            // of the request, as it was sent
	Kept     []byte            // of the body, what is stored; nil: nothing
	Masked   bool              // Kept has secrets masked; otherwise it is Body
	Previous objects.ID        // manifest of the request before it; zero: none
	Address  llm.Address       // the provider and the endpoint of the request
	IDs      map[string]string // the provider's ids of the exchange, by name
	Response *llm.Response     // nil: there is none, or it cannot be read
	Sent     time.Time         // zero: not known
	First    time.Duration     // until the response began
	Duration time.Duration     // until the response ended
}

// RecordedEdit is a block that the client changes or leaves out from now on.
type RecordedEdit struct {
	Commit objects.ID
	Block  content.Block // nil: the client leaves the block out
}

// Recorded is what Record committed.
type Recorded struct {
	Edits    int          // number of edits
	Request  []objects.ID // commits of the messages, one for each block that is not empty
	Response *Response    // nil: there was none
	Rescued  string       // the rescue ref of an incomplete response
	Tip      objects.ID   // of the branch
}

// Record commits an exchange in one transaction: the edits, the new messages of the request,
// and the response with its usage and the manifest of its request. The tip of the branch
// must be Recording.From, or the branch must not exist; otherwise the error is a
// *[ConflictError]. The prompt is not compiled. Secrets are masked as in an import. An
// incomplete response is kept under a rescue ref, and the branch ends with the messages of
// the request.
func (b *Branch) Record(ctx context.Context, r Recording, o AppendOptions) (*Recorded, error) {
	if err := checkTime(r.Sent); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	c, err := b.repo.resolveAppend(o)
	if err != nil {
		return nil, err
	}
	c.external = true
	tip, parent, err := b.requireTipOrNoBranch(ctx, "record", r.From)
	if err != nil {
		return nil, err
	}
	w := recordWriter{branch: b, options: c, recording: &r, last: parent, result: &Recorded{Tip: r.From}}
	w.origins.base = commit.Origin{Session: b.name, Importer: r.By, Original: r.Details}
	if err := w.addRequest(); err != nil {
		return nil, fmt.Errorf("record on branch %s: %w", b.name, err)
	}
	batch := objects.Batch{Copies: r.startsBranchWithResponses(), Note: c.note(ctx, "record")}
	move := objects.RefUpdate{Name: b.ref(), Old: tip, New: w.lastID()}
	if err := w.addResponse(ctx); err != nil {
		return nil, fmt.Errorf("record on branch %s: %w", b.name, err)
	}
	switch {
	case r.Response != nil && r.Response.Incomplete:
		w.result.Rescued = refs.Rescued + b.name + "/" + cmp.Or(r.Sent, c.now).UTC().Format(history.RescueTime) + "-" + w.last.ID.String()[:8]
		batch.Refs = append(batch.Refs, objects.RefUpdate{Name: w.result.Rescued, New: w.last.ID})
	default:
		move.New = w.lastID()
	}
	if move.New != move.Old {
		batch.Refs = append(batch.Refs, move)
	}
	w.result.Tip = move.New
	if len(batch.Refs) == 0 {
		return w.result, nil
	}
	batch.Put = append(w.writer.Objects(), w.put...)
	err = history.Apply(ctx, b.repo.store, batch)
	if err == nil && w.body != nil {
		requestbody.Keep(b.repo.store, w.result.Response.Manifest, w.body, w.base)
	}
	return w.result, b.wrapStoreError("record", err)
}

// startsBranchWithResponses reports whether a recording begins a history with responses that
// were recorded elsewhere: objects of these that were purged stay purged.
func (r *Recording) startsBranchWithResponses() bool {
	return r.From.IsZero() && slices.ContainsFunc(r.Messages, func(m content.Message) bool { return m.Role == content.RoleAssistant })
}

// recordWriter makes the commits of a recording.
type recordWriter struct {
	branch    *Branch
	options   *callOptions
	recording *Recording
	last      *commit.Commit // the last commit so far; nil: there is none
	writer    commit.Writer
	put       []objects.Object // other objects to write with the commits
	result    *Recorded
	origins   originsBySource // of the blocks that the client sent

	body, base *requestbody.Body // of the request and of the one before it; nil: not stored
}

// lastID returns the id of the last commit so far; zero when there is none.
func (w *recordWriter) lastID() (id objects.ID) {
	if w.last != nil {
		id = w.last.ID
	}
	return id
}

// addCommits adds the commits of drafts after the last one to the writer, and returns their ids.
func (w *recordWriter) addCommits(drafts ...commit.Draft) ([]objects.ID, error) {
	made, err := w.options.maskAndWrite(&w.writer, w.last, drafts...)
	if len(made) > 0 {
		w.last = made[len(made)-1]
	}
	return commitIDs(made), err
}

// addRequest adds the commits of the edits, the messages and the note.
func (w *recordWriter) addRequest() error {
	if err := w.addEdits(); err != nil {
		return err
	}
	for _, m := range w.recording.Messages {
		if err := w.addMessage(m); err != nil {
			return err
		}
	}
	if w.recording.Note == "" && w.last == nil {
		w.recording.Note = "the request has no message"
	}
	if w.recording.Note == "" {
		return nil
	}
	d := w.options.newDraftWithoutRoleOrPriority(content.Note(w.recording.Note), w.origins.get(commit.SourceImport))
	d.Label.Meta = w.recording.Meta
	_, err := w.addCommits(d)
	return err
}

// addEdits adds the commits of the edits; a block that the client leaves out is annotated instead.
func (w *recordWriter) addEdits() error {
	for _, e := range w.recording.Edits {
		d := w.options.newDraftWithoutRoleOrPriority(e.Block, w.origins.get(commit.SourceImport))
		d.Op, d.Target = commit.Edit, e.Commit
		if e.Block == nil {
			d.Op, d.Priority, d.Block = commit.Annotate, priority.Skip, content.Note("the client leaves the block out")
		}
		if _, err := w.addCommits(d); err != nil {
			return err
		}
		w.result.Edits++
	}
	return nil
}

// addMessage adds the commits of a message of the client.
func (w *recordWriter) addMessage(m content.Message) error {
	if err := content.CheckBlocks(m.Blocks); err != nil {
		return err
	}
	drafts := w.options.newDrafts(w.last, dropEmpty(m.Blocks), &w.origins, func(block content.Block) content.Role {
		return cmp.Or(content.RoleOf(block), m.Role)
	})
	ids, err := w.addCommits(drafts...)
	w.result.Request = append(w.result.Request, ids...)
	return err
}

// addResponse adds the commits of the response, and its manifest and the request body to the objects
// to put; nothing for a recording without a response.
func (w *recordWriter) addResponse(ctx context.Context) error {
	reply := w.recording.Response
	if reply == nil {
		return nil
	}
	if err := w.addBodyToPut(ctx); err != nil {
		return err
	}
	manifest, tools, err := w.newManifest()
	if err != nil {
		return err
	}
	details := map[string]string{}
	maps.Copy(details, w.recording.Details)
	maps.Copy(details, w.recording.IDs)
	origin := w.branch.newResponseOrigin(reply, w.recording.Address)
	origin.Model, origin.Manifest, origin.Settings = cmp.Or(reply.Model, manifest.Model), manifest.Object().ID, w.recording.settings()
	origin.Started, origin.FirstToken, origin.Duration = w.recording.Sent, w.recording.First, w.recording.Duration
	origin.Importer, origin.Original = w.recording.By, details
	blocks := slices.DeleteFunc(slices.Clone(reply.Blocks), content.IsBlank)
	if len(blocks) == 0 {
		blocks = []content.Block{noContentNote(reply)}
	}
	drafts := make([]commit.Draft, len(blocks))
	for i, block := range blocks {
		drafts[i] = commit.Draft{Block: block, Time: w.options.time, Origin: origin, Index: i}
	}
	ids, err := w.addCommits(drafts...)
	if err != nil {
		return err
	}
	w.put = append(append(w.put, tools...), manifest.Object())
	w.result.Response = newResponse(reply)
	w.result.Response.Commits, w.result.Response.Config, w.result.Response.Manifest = ids, origin.Settings, origin.Manifest
	return nil
}

// newManifest returns the manifest of the request, and the object of its tool definitions if it has
// any. The manifest has no list of the commits that were sent, because the body contains their content.
func (w *recordWriter) newManifest() (manifest *compile.Manifest, tools []objects.Object, err error) {
	req := *w.recording.Request
	req.Tools = w.options.maskAndReportTools(req.Tools)
	m, tools, err := w.options.newManifest(w.lastID(), &req)
	if err != nil {
		return nil, nil, err
	}
	m.Prev, m.Model = w.recording.Previous, cmp.Or(m.Model, w.recording.Address.Model)
	if w.body != nil {
		m.Body, m.Sent = w.body.ID, w.body.Hash
	}
	if w.body == nil || w.recording.Masked {
		m.Sent = objects.Hash(w.recording.Body)
	}
	m.Provider, m.Dialect = w.recording.Address.Provider, w.recording.Address.Dialect
	m.Options.Policy.IncludeReasoning = hasReasoningOfClosedTurn(req.Messages)
	return m, tools, nil
}

// addBodyToPut adds the body of the request to the objects to put, as a difference to the body of
// the request before it if that can be read.
func (w *recordWriter) addBodyToPut(ctx context.Context) error {
	if len(w.recording.Kept) == 0 || len(w.recording.Kept) > requestbody.MaxSize {
		return nil
	}
	var err error
	if !w.recording.Previous.IsZero() {
		w.base, err = requestbody.OfManifest(ctx, w.branch.repo.store, w.recording.Previous)
	}
	if err != nil && !errors.Is(err, objects.ErrPurged) && !history.IsDamaged(err) {
		return err
	}
	var put []objects.Object
	w.body, put = requestbody.Encode(w.recording.Kept, w.recording.Masked, w.base)
	w.put = append(w.put, put...)
	return nil
}

// hasReasoningOfClosedTurn reports whether a request contains reasoning of a closed turn.
func hasReasoningOfClosedTurn(messages []content.Message) bool {
	hasReasoning := false
	for _, m := range messages {
		if m.Role == content.RoleUser && hasReasoning {
			return true
		}
		for _, b := range m.Blocks {
			hasReasoning = hasReasoning || b.Kind() == content.KindReasoning
		}
	}
	return false
}

// settings returns the settings of the request that are stored in an origin.
func (r *Recording) settings() map[string]string {
	all := history.RequestSettings(&llm.Request{Settings: r.Request.Settings})
	maps.DeleteFunc(all, func(name, value string) bool {
		return name == history.SettingStream || name == history.SettingExtra || name == history.SettingHidden || name == history.SettingEnabled && value == "true"
	})
	if model := r.Request.Settings.Model; model != "" {
		all["model"] = model
	}
	if choice := r.Request.Settings.ToolChoice; choice != "" {
		all["tool_choice"] = choice
	}
	return all
}

// requireTipOrNoBranch returns a *[ConflictError] unless the tip of the branch is wantTip, or
// the branch does not exist. parent is the header of wantTip; tip is zero for a new branch.
func (b *Branch) requireTipOrNoBranch(ctx context.Context, command string, wantTip objects.ID) (tip objects.ID, parent *commit.Commit, err error) {
	if err := refs.Check(b.name); err != nil {
		return tip, nil, fmt.Errorf("%s: branch %w", command, err)
	}
	if tip, err = b.Tip(ctx); err != nil {
		return tip, nil, err
	}
	if !tip.IsZero() && tip != wantTip {
		return tip, nil, &ConflictError{Operation: command, Branch: b.name, Expected: wantTip, Actual: tip}
	}
	if parent, err = b.repo.header(ctx, wantTip); err != nil {
		err = fmt.Errorf("%s on branch %s: %w", command, b.name, err)
	}
	return tip, parent, err
}

// appendIfTipOrNoBranch commits drafts after the commit wantTip, in one transaction. The tip of the
// branch must be that commit, or the branch must not exist: then it begins there. Otherwise
// the error is a *[ConflictError]. With copiesStayPurged, objects of
// the drafts that were purged stay purged.
func (b *Branch) appendIfTipOrNoBranch(ctx context.Context, c *callOptions, command string, wantTip objects.ID, copiesStayPurged bool, draft func(parent *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	tip, parent, err := b.requireTipOrNoBranch(ctx, command, wantTip)
	if err != nil {
		return nil, err
	}
	drafts, err := draft(parent)
	if err != nil {
		return nil, fmt.Errorf("%s branch %s: %w", command, b.name, err)
	}
	m := c.newMasker()
	m.External = true
	commits, put, err := commit.Write(parent, m.Drafts(drafts)...)
	if err != nil {
		return nil, fmt.Errorf("%s branch %s: %w", command, b.name, err)
	}
	batch := b.newBatch(c.note(ctx, command), tip, commits, put)
	batch.Copies = copiesStayPurged
	if len(commits) == 0 {
		batch.Refs = []objects.RefUpdate{{Name: b.ref(), Old: tip, New: wantTip}}
	}
	if tip == wantTip && len(commits) == 0 {
		return nil, nil
	}
	if err = history.Apply(ctx, b.repo.store, batch); err == nil {
		c.callOnSecrets(m.found)
	}
	return commitIDs(commits), b.wrapStoreError(command, err)
}

// dropEmpty returns blocks without the empty ones.
func dropEmpty(blocks []content.Block) []content.Block {
	kept := make([]content.Block, 0, len(blocks))
	for _, block := range blocks {
		if !content.IsEmpty(block) {
			kept = append(kept, block)
		}
	}
	return kept
}
