package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/contentcoding"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/internal/spool"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

// commitAndFinishFile commits an exchange and finishes its spool file. A panic is returned as an error.
func (c *committer) commitAndFinishFile(x *exchange) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	done, branch, err := c.tryCommit(x)
	if err != nil {
		return err
	}
	c.recorded.Add(1)
	x.finishFile("committed")
	if c.o.OnResponse != nil && done.Response != nil && done.Rescued == "" {
		c.o.OnResponse(branch, done.Response)
	}
	return nil
}

// maxRaces is the number of attempts when another writer moves the branch meanwhile.
const maxRaces = 16

// tryCommit decodes an exchange and records it, again while the branch moves.
func (c *committer) tryCommit(x *exchange) (done *tract.Recorded, branch string, err error) {
	if err := c.openRepo(x.ctx); err != nil {
		return nil, "", err
	}
	if err := x.loadBodies(); err != nil {
		return nil, "", err
	}
	release := c.acquireProcessor(x)
	defer release()
	earlier := cmp.Or(c.prepared.Get(x.cacheKey(x.sent)), &preparedMessages{})
	req, target, err := x.decodeRequest(earlier)
	if err != nil {
		return nil, "", err
	}
	answer, kept := x.decodeResponse(target)
	x.keptResponse = kept
	for range maxRaces {
		done, branch, err = c.record(x, req, earlier, answer, target, release)
		if moved := (*tract.ConflictError)(nil); !errors.As(err, &moved) {
			break
		}
	}
	if err == nil && errors.Is(answer.err, errTooLong) {
		err = answer.err
	}
	return done, branch, err
}

// decodeRequest decodes the request of an exchange, and returns the client of its provider, which decodes the
// response. Messages that the earlier request had too are not decoded again.
func (x *exchange) decodeRequest(earlier *preparedMessages) (*clientRequest, *providers.Client, error) {
	sent, err := contentcoding.Decode(x.sent, x.encoding, maxBody)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	req := &clientRequest{at: x.Started, sent: sent}
	if req.request, req.prefix, err = providers.DecodeNextRequest(x.API, x.Provider, sent, earlier.prefix); err != nil {
		return nil, nil, err
	}
	if req.request.Settings.Model == "" {
		req.request.Settings.Model = x.Model
	}
	req.identity = readIdentity(x.Header, req.request)
	req.identity.branch = x.On
	target, err := x.openProvider(req.request.Settings.Model)
	return req, target, err
}

func (x *exchange) openProvider(model string) (*providers.Client, error) {
	return providers.Open(x.Provider, providers.Config{Dialect: x.API, BaseURL: x.Base, Model: model})
}

// preparedMessages has messages of a request in the form in which they are compared. The next request
// of the queue reuses that of the first ones, because a client repeats most of its messages.
type preparedMessages struct {
	prefix      *providers.RequestPrefix // that the next request may have; nil: none
	messages    []content.Message
	masked      []content.Message // for the comparison
	entries     []reconcile.Entry
	builder     *reconcile.Builder // state after the entries; nil: there are none
	externalIDs []string
}

// maxChangingMessages is the number of messages at the end of a request that the client may
// change in its next request: it moves the cache marks.
const maxChangingMessages = 4

// isPrefixOf reports whether messages begins with the prepared messages. Messages that were decoded
// with the earlier request share its blocks, and are not compared.
func (p *preparedMessages) isPrefixOf(messages []content.Message) bool {
	return len(p.messages) <= len(messages) && slices.EqualFunc(p.messages, messages[:len(p.messages)], func(a, b content.Message) bool {
		shared := len(a.Blocks) > 0 && len(a.Blocks) == len(b.Blocks) && &a.Blocks[0] == &b.Blocks[0]
		return a.Role == b.Role && (shared || reflect.DeepEqual(a.Blocks, b.Blocks))
	})
}

// prepare fills in the masked messages, entries and external ids of a request. It does not hold
// the lock of the index during the work that grows with the request. earlier is the result for
// an earlier request of the queue, and next is the one for its next request.
func (req *clientRequest) prepare(ctx context.Context, x *index, earlier *preparedMessages) (next *preparedMessages, err error) {
	messages, err := x.resolveReferences(ctx, req.request.Messages)
	if err != nil {
		return nil, err
	}
	messages = withoutBilling(messages)
	if !earlier.isPrefixOf(messages) {
		earlier = &preparedMessages{}
	}
	req.request.Messages = messages
	stable := earlier.extend(x, messages[:max(len(earlier.messages), len(messages)-maxChangingMessages)])
	stable.prefix = req.prefix
	all := stable.clone().extend(x, messages)
	req.preparedMessages = *all
	return stable, nil
}

// clone returns a copy that can be extended without an effect on p.
func (p *preparedMessages) clone() *preparedMessages {
	c := *p
	c.masked, c.entries, c.externalIDs = slices.Clone(p.masked), slices.Clone(p.entries), slices.Clone(p.externalIDs)
	return &c
}

// extend returns the prepared form of a longer list, which begins with the prepared messages. It appends
// to the slices of p.
func (p *preparedMessages) extend(x *index, messages []content.Message) *preparedMessages {
	next, n := *p, len(p.messages)
	next.messages, next.builder = messages, cmp.Or(p.builder, &reconcile.Builder{}).Clone()
	for _, m := range messages[n:] {
		masked := content.Message{Role: m.Role, Blocks: make([]content.Block, len(m.Blocks))}
		for i, b := range m.Blocks {
			masked.Blocks[i] = x.maskedBlock(b)
			next.externalIDs = append(next.externalIDs, externalIDsOf(m.Role, b)...)
		}
		next.masked = append(next.masked, masked)
	}
	next.entries = append(p.entries, next.builder.Add(next.masked[n:], nil)...)
	return &next
}

// billingPrefix is the beginning of a text block that Claude Code sends before its instructions.
// The block differs in each request, and is not meant for the model.
const billingPrefix = "x-anthropic-billing-header:"

func withoutBilling(messages []content.Message) []content.Message {
	all := slices.Clone(messages)
	for i, m := range all {
		if m.Role == content.RoleSystem {
			all[i].Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b content.Block) bool { return strings.HasPrefix(b.String(), billingPrefix) })
		}
	}
	return all
}

// resolveReferences returns messages in which the stored blocks replace item references: a
// client of the Responses API may send the id of an item instead of the item.
func (x *index) resolveReferences(ctx context.Context, messages []content.Message) ([]content.Message, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := slices.Clone(messages)
	for i, m := range all {
		if !slices.ContainsFunc(m.Blocks, func(b content.Block) bool { return referenceOf(b) != "" }) {
			continue
		}
		var blocks []content.Block
		for _, b := range m.Blocks {
			item, err := x.readItem(ctx, referenceOf(b))
			if err != nil {
				return nil, err
			}
			if len(item) == 0 {
				blocks = append(blocks, b)
			}
			for _, c := range item {
				blocks = append(blocks, c.Block)
				all[i].Role = c.Role
			}
		}
		all[i].Blocks = blocks
	}
	return all, nil
}

// readItem returns the commits of a provider's item, with their blocks; none if the item is not
// known.
func (x *index) readItem(ctx context.Context, id string) (list []*commit.Commit, err error) {
	if id == "" {
		return nil, nil
	}
	if len(x.items[id]) == 0 {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
	}
	for _, at := range x.items[id] {
		c, err := x.readCommit(ctx, at)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// referenceOf returns the id of the item that a block refers to; empty if the block is not a
// reference.
func referenceOf(b content.Block) string {
	native, ok := b.(content.Native)
	if !ok || native.Form().Type != "item_reference" {
		return ""
	}
	return rawjson.Value(native.JSON).Get("id").Text()
}

// outcome is the result of a request: a response, or a note in its place.
type outcome struct {
	reply *llm.Response // nil: there is no readable response
	note  string        // text to commit instead of a response
	meta  map[string]string
	err   error // why the response ended before its end
}

// decodeResponse decodes the response of an exchange, and returns what the spool keeps of its body. It also
// removes the compression of x.received.
func (x *exchange) decodeResponse(target *providers.Client) (result outcome, kept []byte) {
	body, broken := contentcoding.Decode(x.received, x.Response.Get("Content-Encoding"), maxBody)
	if broken == nil {
		x.received = body
		x.Response.Del("Content-Encoding")
	}
	kept = x.received
	headers, text := x.responseHeadersToCommit(), string(x.redactBytes(x.received))
	switch {
	case x.Status == 0:
		return outcome{note: "the request was not answered: " + x.redact(fmt.Sprint(x.err)), err: x.err}, kept
	case x.Status/100 != 2:
		headers["status"] = fmt.Sprint(x.Status)
		if x.err != nil && !errors.Is(x.err, errClosedEarly) {
			text = strings.TrimSpace(text + "\n" + x.redact(x.err.Error()))
		}
		return outcome{note: fmt.Sprintf("the request was answered %d %s\n%s", x.Status, http.StatusText(x.Status), text), meta: headers, err: x.err}, kept
	}
	reply, err := llm.Collect(target.Decode(bytes.NewReader(body)), nil)
	if err = errors.Join(err, broken); len(body) == 0 && broken != nil {
		err = broken
	}
	if reply != nil {
		bad := content.CheckBlocks(reply.Blocks)
		if err = errors.Join(err, bad); bad != nil {
			reply.Blocks = slices.DeleteFunc(slices.Clone(reply.Blocks), func(b content.Block) bool { return content.CheckBlock(b) != nil })
		}
	}
	if reply == nil || err != nil && len(reply.Blocks) == 0 {
		cause := errors.Join(err, x.err)
		return outcome{note: fmt.Sprintf("the response could not be read: %s\n%s", x.redact(fmt.Sprint(cause)), text), meta: headers, err: cause}, kept
	}
	reply.Incomplete = reply.Incomplete || err != nil
	return outcome{reply: reply, meta: headers, err: x.err}, x.keptResponseBody(reply.Blocks)
}

// setKeptResponse sets what the spool keeps of the response to an exchange that cannot be committed: none
// if the decoder panics.
func (x *exchange) setKeptResponse() {
	defer func() { _ = recover() }() // the exchange may have failed for the same reason
	x.keptResponse = nil
	target, err := x.openProvider(x.Model)
	if err != nil {
		x.keptResponse = x.received
		return
	}
	_, x.keptResponse = x.decodeResponse(target)
}

// keptResponseBody returns the received body, or the masked text of its blocks if they contain a
// secret: the events of a stream may divide the secret, so that it cannot be found in the body.
func (x *exchange) keptResponseBody(blocks []content.Block) []byte {
	var texts []string
	secret := false
	for _, b := range blocks {
		masked, rules := history.MaskBlock(b)
		texts, secret = append(texts, masked.String()), secret || len(rules) > 0
	}
	if !secret {
		return x.received
	}
	return []byte(strings.Join(texts, "\n\n"))
}

// recordedOn returns the branch that has the response to a request, which was sent at some time and whose
// body has a hash; empty: none has it. A process may have been killed between the commit of an exchange
// and the end of its file in the spool. Only the branch that the request repeats, or that began with it,
// may have it.
func (x *index) recordedOn(ctx context.Context, dest *destination, sent time.Time, bodyHash objects.ID) (branch string, err error) {
	branch = dest.taken
	if dest.base != nil {
		branch = dest.base.branch
	}
	if branch == "" {
		return "", nil
	}
	ref, err := objects.ReadRef(ctx, x.repo.Store(), refs.Heads+branch)
	if err != nil || ref.Target.IsZero() {
		return "", err
	}
	var ids []objects.ID
	for c, err := range commit.WalkReuse(ctx, x.repo.Store(), ref.Target, maxRecoveredCommits) {
		if err != nil {
			return "", err
		}
		ids = append(ids, c.OriginID)
	}
	origins, err := objects.ReadAll(ctx, x.repo.Store(), ids, commit.ParseOrigin)
	if err != nil {
		return "", err
	}
	at := sent.UTC().Truncate(time.Millisecond) // as origins have it
	for _, o := range origins {
		if o.Importer != recordedBy || o.Manifest.IsZero() || !o.Started.Equal(at) {
			continue
		}
		m, err := compile.ReadManifest(ctx, x.repo.Store(), o.Manifest)
		if err != nil && !history.IsDamaged(err) {
			return "", err
		}
		if m != nil && m.Sent == bodyHash {
			return branch, nil
		}
	}
	return "", nil
}

// maxRecoveredCommits is how many commits of a branch are searched for the response of an exchange
// that was recovered from the spool.
const maxRecoveredCommits = 4096

// record commits an exchange at its destination, and returns the name of its branch. It calls
// release before it writes to the store.
func (c *committer) record(x *exchange, req *clientRequest, earlier *preparedMessages, result outcome, target *providers.Client, release func()) (done *tract.Recorded, branch string, err error) {
	req.earlierPending = !x.waited && c.hasEarlierOfAnyQueue(x)
	cleared := spool.Cleared(c.o.Spool)
	c.index.resetIfCleared(cleared)
	next, err := req.prepare(x.ctx, c.index, earlier)
	var dest *destination
	if err == nil {
		key := x.cacheKey(x.sent)
		c.prepared.Put(key, next, len(key)+len(req.sent))
		dest, err = c.index.findDestination(x.ctx, req)
	}
	if errors.Is(err, errEarly) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", &storeError{err}
	}
	if x.recovered {
		branch, err := c.index.recordedOn(x.ctx, dest, x.Started, objects.Hash(req.sent))
		if err != nil && !history.IsDamaged(err) { // another try cannot read a damaged or missing history either
			return nil, "", &storeError{err}
		}
		if branch != "" {
			x.keptResponse = nil // the branch has the response; a secret may be split over the pieces of this one
			return &tract.Recorded{}, branch, nil
		}
	}
	r, added := dest.newRecording(req)
	x.purged = dest.base != nil && dest.base.purged
	r.Request, r.Body, r.Address, r.Response = req.request, req.sent, target.Address(), result.reply
	r.Sent, r.First, r.Duration = x.Started, x.First, x.duration
	if result.reply != nil {
		r.IDs = result.meta
		if !x.purged {
			r.Kept, r.Masked = x.keptRequestBody(req.sent)
		}
	} else {
		r.Note, r.Meta = strings.TrimSpace(r.Note+"\n"+result.note), result.meta
	}
	release()
	done, err = c.index.repo.Branch(dest.branch).Record(x.ctx, r, tract.AppendOptions{Author: c.o.Author})
	if err != nil {
		return nil, dest.branch, &storeError{err}
	}
	if r.Kept != nil && spool.Cleared(c.o.Spool) != cleared { // the purge may not have seen this body
		if err := requestbody.Purge(x.ctx, c.index.repo.Store(), done.Response.Manifest, "stored during a purge"); err != nil {
			c.reportFailure(x, err)
		}
	}
	c.index.mu.Lock()
	defer c.index.mu.Unlock()
	if c.index.addCommitted(x.ctx, req, dest, added, done) != nil {
		c.index.reset() // the exchange is committed; only the index is behind
	}
	return done, dest.branch, nil
}
