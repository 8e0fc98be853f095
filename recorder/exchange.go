package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/contentcoding"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/spool"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

// commit commits an exchange. A panic is an error.
func (c *committer) commit(x *exchange) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	done, branch, err := c.try(x)
	if err != nil {
		return err
	}
	c.recorded.Add(1)
	secret := done.Response != nil && slices.ContainsFunc(done.Response.Blocks, func(b content.Block) bool {
		_, rules := history.MaskBlock(b)
		return len(rules) > 0
	})
	frames := nothing
	if !x.purged {
		frames = x.keptFrames(c.o.Unmasked, secret)
	}
	x.file.Finish(labelOf(objects.Hash(x.sent)), frames)
	if c.o.OnResponse != nil && done.Response != nil && done.Rescued == "" {
		c.o.OnResponse(branch, done.Response)
	}
	return nil
}

// maxRaces is how often a place is looked for again because the branch moved.
const maxRaces = 16

func (c *committer) try(x *exchange) (done *tract.Recorded, branch string, err error) {
	if err := c.ready(x.ctx); err != nil {
		return nil, "", err
	}
	a, target, err := c.decode(x)
	if err != nil {
		return nil, "", err
	}
	answer := x.answer(target)
	for range maxRaces {
		done, branch, err = c.record(x, a, answer, target)
		if moved := (*tract.ConflictError)(nil); !errors.As(err, &moved) {
			break
		}
	}
	if err == nil && errors.Is(answer.err, errTooLong) {
		err = answer.err
	}
	return done, branch, err
}

// decode reads the request.
func (c *committer) decode(x *exchange) (*asked, *providers.Client, error) {
	sent, err := contentcoding.Decode(x.sent, x.Header.Get("Content-Encoding"), maxBody)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	x.mu.Lock()
	x.sent = sent // it is kept so: nothing could be masked in it otherwise
	x.Header.Del("Content-Encoding")
	x.mu.Unlock()
	a := &asked{on: x.On, at: x.Started, sent: sent}
	if a.request, err = providers.DecodeRequest(x.API, x.Provider, sent); err != nil {
		return nil, nil, err
	}
	if a.request.Settings.Model == "" {
		a.request.Settings.Model = x.Model
	}
	if a.body, err = rawjson.Parse(sent); err != nil {
		return nil, nil, err
	}
	a.claim = claimOf(x.Header, a.body)
	target, err := providers.Open(x.Provider, providers.Config{Dialect: x.API, BaseURL: x.Base, Model: a.request.Settings.Model})
	return a, target, err
}

// prepared is what the first messages of a request were compared by.
type prepared struct {
	messages, masked []content.Message
	entries          []reconcile.Entry
	anchors          []string
	tail             *reconcile.Builder
}

// mostChanging is how many messages at the end of a list a client changes when it goes on: it
// moves the marks of the cache.
const mostChanging = 4

// begins reports whether a list of messages begins with those that were prepared.
func (p *prepared) begins(messages []content.Message) bool {
	return len(p.messages) <= len(messages) && reflect.DeepEqual(p.messages, messages[:len(p.messages)])
}

// prepare makes what a request is compared by. The lock of the index is not held for the
// work that grows with the request. known is what the last request of the lane was compared by,
// or nil; next is that of this one.
func (a *asked) prepare(ctx context.Context, x *index, known *prepared) (next *prepared, err error) {
	messages, err := x.resolved(ctx, a.request.Messages)
	if err != nil {
		return nil, err
	}
	messages = withoutBilling(messages)
	if known == nil || !known.begins(messages) {
		known = &prepared{tail: &reconcile.Builder{}}
	}
	a.request.Messages = messages
	stable := known.add(x, messages[:max(len(known.messages), len(messages)-mostChanging)])
	all := stable.add(x, messages)
	a.messages, a.entries, a.anchors, a.tail = all.masked, all.entries, all.anchors, all.tail
	return stable, nil
}

// add returns what a longer list is compared by.
func (p *prepared) add(x *index, messages []content.Message) *prepared {
	n := len(p.messages)
	next := &prepared{messages: messages, masked: slices.Clone(p.masked), anchors: slices.Clone(p.anchors), tail: p.tail.Clone()}
	for _, m := range messages[n:] {
		masked := content.Message{Role: m.Role, Blocks: make([]content.Block, len(m.Blocks))}
		for i, b := range m.Blocks {
			masked.Blocks[i] = x.masked(b)
			next.anchors = append(next.anchors, anchorsOf(m.Role, b)...)
		}
		next.masked = append(next.masked, masked)
	}
	next.entries = append(slices.Clone(p.entries), next.tail.Add(next.masked[n:], nil)...)
	return next
}

// billing begins a text that Claude Code puts before its instructions. It differs in each
// request, and says nothing to the model.
const billing = "x-anthropic-billing-header:"

func withoutBilling(messages []content.Message) []content.Message {
	all := slices.Clone(messages)
	for i, m := range all {
		if m.Role == content.RoleSystem {
			all[i].Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b content.Block) bool { return strings.HasPrefix(b.String(), billing) })
		}
	}
	return all
}

// resolved returns messages with the blocks that items of the provider stand for: a client
// of the Responses API may send the id of an item in its place.
func (x *index) resolved(ctx context.Context, messages []content.Message) ([]content.Message, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := slices.Clone(messages)
	for i, m := range all {
		var blocks []content.Block
		for _, b := range m.Blocks {
			item, err := x.item(ctx, referenceOf(b))
			if err != nil {
				return nil, err
			}
			if len(item) == 0 {
				blocks = append(blocks, b)
				continue
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

// item returns the blocks of an item of a provider; none when the item is not known.
func (x *index) item(ctx context.Context, id string) (list []*commit.Commit, err error) {
	if id == "" {
		return nil, nil
	}
	if len(x.items[id]) == 0 {
		if err := x.loadAll(ctx); err != nil {
			return nil, err
		}
	}
	for _, at := range x.items[id] {
		c, err := commit.Read(ctx, x.repo.Store(), at)
		if err == nil {
			err = commit.Load(ctx, x.repo.Store(), c)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// referenceOf returns the id of the item that a block refers to; empty: it is no reference.
func referenceOf(b content.Block) string {
	native, ok := b.(content.Native)
	if !ok {
		return ""
	}
	v, err := rawjson.Parse([]byte(native.JSON))
	if err != nil || v.Get("type").Text() != "item_reference" {
		return ""
	}
	return v.Get("id").Text()
}

// answer is what came of a request.
type answer struct {
	reply *llm.Response // nil: there is none that can be read
	note  string        // what came in its place
	meta  map[string]string
	err   error // why the response ended before its end
}

// answer reads the response of an exchange.
func (x *exchange) answer(target *providers.Client) answer {
	ids := x.ids(x.response)
	switch {
	case x.status == 0:
		return answer{note: "the request was not answered: " + x.hide(fmt.Sprint(x.err)), err: x.err}
	case x.status/100 != 2:
		ids["status"] = fmt.Sprint(x.status)
		text := x.words()
		if x.err != nil && !errors.Is(x.err, errLeft) {
			text = strings.TrimSpace(text + "\n" + x.hide(x.err.Error()))
		}
		return answer{note: fmt.Sprintf("the request was answered %d %s\n%s", x.status, http.StatusText(x.status), text), meta: ids, err: x.err}
	}
	body, broken := contentcoding.Decode(x.came, x.response.Get("Content-Encoding"), maxBody)
	reply, err := llm.Collect(target.Decode(bytes.NewReader(body)), nil)
	if broken == nil {
		x.came = body
		x.response.Del("Content-Encoding")
	}
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
		return answer{note: fmt.Sprintf("the response could not be read: %s\n%s", x.hide(fmt.Sprint(cause)), x.words()), meta: ids, err: cause}
	}
	reply.Incomplete = reply.Incomplete || err != nil
	return answer{reply: reply, meta: ids, err: x.err}
}

// record commits an exchange at its place.
func (c *committer) record(x *exchange, a *asked, an answer, target *providers.Client) (*tract.Recorded, string, error) {
	a.early = !x.waited && c.hasEarlier(x)
	c.index.reset(spool.Cleared(c.o.Spool))
	next, err := a.prepare(x.ctx, c.index, c.prepared.get(x.lane()))
	var p *place
	if err == nil {
		c.prepared.put(x.lane(), next, len(a.sent))
		p, err = c.index.find(x.ctx, a)
	}
	if errors.Is(err, errEarly) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", &storeError{err}
	}
	r, added := p.recording(a)
	x.purged = p.base != nil && p.base.purged
	r.Request, r.Body, r.Address, r.Response = a.request, a.sent, target.Address(), an.reply
	r.Sent, r.First, r.Duration = x.Started, x.first, x.duration
	if an.reply != nil {
		r.IDs = an.meta
	} else {
		r.Note, r.Meta = strings.TrimSpace(strings.TrimSpace(r.Note+"\n"+an.note)), an.meta
	}
	done, err := c.repo.Branch(p.branch).Record(x.ctx, r, tract.AppendOptions{Author: c.o.Author})
	if err != nil {
		return nil, p.branch, &storeError{err}
	}
	var reply []content.Block
	if an.reply != nil {
		for _, b := range an.reply.Blocks {
			reply = append(reply, c.index.masked(b))
		}
	}
	c.index.mu.Lock()
	defer c.index.mu.Unlock()
	if c.index.committed(x.ctx, a, p, added, done, reply) != nil {
		c.index.forget(p.branch) // it is committed
	}
	return done, p.branch, nil
}
