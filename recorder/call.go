package recorder

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

// importer is who brings what is recorded, in the words of an origin.
const importer = "record"

// errLeft says that an answer was closed before its end.
var errLeft = errors.New("the answer was left before its end")

// call is one request and its answer, on their way into the history.
type call struct {
	*Transport
	ctx                  context.Context //nolint:containedctx // of the request, which has it too
	wanted               string          // the branch that it was said to go on; may be empty
	api, provider, model string
	base, path           string
	secrets              []string
	at                   time.Time
	sent                 []byte // nil: not known before it is on its way

	body     *copied             // of the request
	came     *copied             // of the answer
	answered chan *http.Response // nil: there was none
	landed   chan struct{}       // closed when nothing more is done
	end      sync.Once           // of the answer

	request  *llm.Request
	exchange *tract.RecordedExchange // nil before it is prepared
	branch   *tract.Branch
	head     objects.ID // the last block that was asked with
	target   *providers.Client
}

// ended is called when no more of the answer is read. It waits a moment for the
// answer to be committed: once, for a body that is read to its end is closed too.
func (c *call) ended() { c.end.Do(c.wait) }

func (c *call) wait() {
	c.mu.Lock()
	if _, open := c.calls[c]; open {
		c.calls[c] = true
	}
	c.mu.Unlock()
	if c.o.Patience < 0 {
		return
	}
	timer := time.NewTimer(c.o.Patience)
	defer timer.Stop()
	select {
	case <-c.landed:
	case <-timer.C:
	}
}

// record writes the call down. Whatever goes wrong in it, even a panic, is told and
// goes no further.
func (c *call) record() {
	err := errors.New("it ended without a word")
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
		if err != nil {
			c.failed(err)
		}
	}()
	err = c.run()
}

func (c *call) run() error {
	if err := c.decode(); err != nil {
		return err
	}
	placed := c.place()
	var x *tract.Exchange
	var unprepared error
	if placed == nil {
		x, unprepared = c.prepare()
	}
	res := <-c.answered
	if placed != nil { // the store may be well again
		c.came.all() //nolint:errcheck // it is read again below
		if err := c.place(); err != nil {
			return err
		}
		x, unprepared = c.prepare()
	}
	switch {
	case res == nil:
		_, err := c.came.all()
		return c.note("the request was not answered: "+c.hide(err.Error()), nil)
	case res.StatusCode/100 != 2:
		return c.refused(res)
	}
	reply, err := c.land(x, unprepared, res)
	if err != nil || reply == nil {
		return err
	}
	if c.o.OnResponse != nil {
		c.o.OnResponse(c.branch.Name(), reply)
	}
	return nil
}

// decode reads the request.
func (c *call) decode() (err error) {
	if c.sent, err = c.body.all(); err != nil && !errors.Is(err, errLeft) {
		return fmt.Errorf("read the request: %w", err)
	}
	if c.request, err = providers.DecodeRequest(c.api, c.provider, c.sent); err != nil {
		return err
	}
	if c.request.Settings.Model == "" {
		c.request.Settings.Model = c.model
	}
	c.target, err = providers.Open(c.provider, providers.Config{Dialect: c.api, BaseURL: c.base, Model: c.request.Settings.Model})
	return err
}

func (c *call) place() (err error) {
	c.branch, c.head, err = c.put(c.ctx, c.request, c.sent, c.wanted)
	return err
}

// prepare makes the exchange that the answer will land with. Where the branch has
// moved on meanwhile, a fork takes it.
func (c *call) prepare() (*tract.Exchange, error) {
	c.exchange = &tract.RecordedExchange{By: importer, Request: c.request, Body: c.sent, Sent: c.at}
	o := tract.PrepareOptions{Recorded: c.exchange, AskOptions: tract.AskOptions{
		Author: c.o.Author, OnEvent: c.o.OnEvent, Force: true, IncludeReasoning: repeatsThoughts(c.request.Messages),
	}}
	for range maxRaces {
		x, err := c.branch.Prepare(c.ctx, c.target, o)
		if err != nil || x.Manifest.Head == c.head {
			return x, err
		}
		if same, err := c.index.same(c.ctx, c.head, x.Manifest.Head); err != nil {
			return nil, err
		} else if same {
			c.head = x.Manifest.Head
			return x, nil
		}
		if err := c.fork(c.head, ""); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("branch %s moves all the time", c.branch.Name())
}

// repeatsThoughts tells whether a request has thoughts of a turn that is over.
func repeatsThoughts(messages []content.Message) bool {
	thinks := false
	for _, m := range messages {
		if m.Role == content.RoleUser && thinks {
			return true
		}
		for _, b := range m.Blocks {
			thinks = thinks || b.Kind() == content.KindReasoning
		}
	}
	return false
}

// fork makes a branch at a commit and goes on there. rescued is a ref that the
// commit was kept under; empty: none.
func (c *call) fork(at objects.ID, rescued string) error {
	c.placing.Lock()
	defer c.placing.Unlock()
	if err := c.index.refresh(c.ctx); err != nil {
		return err
	}
	name, err := c.free(c.ctx, c.branch.Name())
	if err != nil {
		return err
	}
	b := c.repo.Branch(name)
	if _, err := b.AppendMessages(c.ctx, at, nil, tract.AppendOptions{Author: c.o.Author}); err != nil {
		return err
	}
	if rescued != "" {
		if err := c.repo.DeleteRefs(c.ctx, []string{rescued}); err != nil {
			return err
		}
	}
	c.branch = b
	return nil
}

// land commits the answer as it comes. The reply is nil when what came is kept in
// another way: under a rescue ref, or as a note.
func (c *call) land(x *tract.Exchange, unprepared error, res *http.Response) (*tract.Response, error) {
	body, err := plain(c.came, res)
	if err != nil {
		return nil, c.unread(res, err)
	}
	if unprepared != nil {
		return c.append(body, res, unprepared)
	}
	c.exchange.IDs = c.ids(res.Header)
	reply, err := c.branch.Accept(c.ctx, x, body)
	var moved *tract.ConflictError
	var broken *tract.IncompleteError
	var unsaved *tract.UnsavedError
	switch {
	case err == nil:
	case errors.As(err, &moved) && moved.Rescued != "":
		return moved.Response, c.take(moved)
	case errors.As(err, &broken): // kept under a ref that `rescue list` shows
		return nil, nil
	case errors.As(err, &unsaved):
		return nil, err
	default:
		return nil, c.unread(res, err)
	}
	if c.api == "responses" && len(reply.Commits) > 0 {
		c.placing.Lock()
		defer c.placing.Unlock()
		return reply, c.index.remember(c.ctx, reply.Commits[len(reply.Commits)-1])
	}
	return reply, nil
}

// append commits an answer to a request that no prompt could be made of: what it
// says is kept, and not what it was made of.
func (c *call) append(body io.Reader, res *http.Response, why error) (*tract.Response, error) {
	reply, err := llm.Collect(c.target.Decode(body), nil)
	if reply == nil || len(reply.Blocks) == 0 {
		return nil, c.unread(res, errors.Join(err, why))
	}
	reply.From, reply.Incomplete = c.target.Address(), err != nil
	ids, err := c.branch.AppendResponse(c.ctx, reply, tract.AppendOptions{Author: c.o.Author, External: true})
	if err != nil {
		return nil, err
	}
	return &tract.Response{
		Text: reply.Text(), Reasoning: reply.Reasoning(), ToolCalls: reply.ToolCalls(), Blocks: reply.Blocks, Commits: ids,
		Usage: reply.Usage, Finish: reply.Finish, Model: reply.Model,
	}, nil
}

// take lands an answer whose branch has moved: there, when it says no more than it
// did, because what came after the question is a note; else on a fork.
func (c *call) take(moved *tract.ConflictError) error {
	same, err := c.index.same(c.ctx, moved.Expected, moved.Actual)
	if err != nil {
		return err
	}
	if same {
		moved.Response.Commits, err = c.branch.TakeRescue(c.ctx, moved.Rescued, tract.RescueOptions{Anywhere: true})
		return err
	}
	rescued, err := objects.ReadRef(c.ctx, c.repo.Store(), moved.Rescued)
	if err != nil {
		return err
	}
	return c.fork(rescued.Target, moved.Rescued)
}

// plain is a body without its compression.
func plain(r io.Reader, res *http.Response) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		return &opened{open: func() (io.Reader, error) { return gzip.NewReader(r) }}, nil
	case "deflate":
		return &opened{open: func() (io.Reader, error) { return zlib.NewReader(r) }}, nil
	}
	return nil, fmt.Errorf("content encoding %q cannot be read", coding)
}

// opened is a reader that is made when it is read first, because that waits for the
// first bytes.
type opened struct {
	open func() (io.Reader, error)
	r    io.Reader
}

func (o *opened) Read(p []byte) (int, error) {
	if o.r == nil {
		r, err := o.open()
		if err != nil {
			return 0, err
		}
		o.r = r
	}
	return o.r.Read(p)
}

// failed tells that the call was not recorded. It waits for what is still to come,
// so that it is told whole.
func (c *call) failed(err error) {
	came, _ := c.came.all()
	if c.o.OnError != nil {
		c.o.OnError(&Error{Path: c.path, Sent: bytes.Clone(c.sent), Came: came, Err: err})
	}
}
