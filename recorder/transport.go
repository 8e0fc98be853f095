package recorder

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// Options is what may be said about a [Transport]. The zero value is good.
type Options struct {
	// Next does the requests; nil: http.DefaultTransport.
	Next http.RoundTripper
	// Prefix begins the names of branches that are made for conversations which
	// nobody named; empty: "record/".
	Prefix string
	// Patience is the longest that the end of an answer waits for the answer to be
	// committed. 0 stands for 2 seconds; less does not wait.
	Patience time.Duration
	// Author makes the commits; empty: the author of the Repo.
	Author string
	// Unmasked says that the Repo masks no secrets: its setting secrets.mask is "off".
	Unmasked bool
	// OnEvent sees the answers as they come. It is called by several goroutines.
	OnEvent func(llm.Event)
	// OnResponse is told of each answer that was committed, and on which branch.
	OnResponse func(branch string, reply *tract.Response)
	// OnError is told of each call that was not recorded as it should have been. It
	// is the only one who is: the program that asked sees nothing of it.
	OnError func(*Error)
}

// Error says that a call was not recorded, or not whole. It holds what went over
// the wire, so that nothing that was paid for is lost with it.
type Error struct {
	Path string // of the request
	Sent []byte // the body of the request
	Came []byte // the body of the answer as far as it came
	Err  error
}

// Error has the path and the cause, without secrets.
func (e *Error) Error() string { return secrets.Mask(fmt.Sprintf("record %s: %v", e.Path, e.Err)) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Transport is an http.RoundTripper that commits what goes through it. It may be
// used by any number of clients and goroutines at once. New makes it.
type Transport struct {
	o     Options
	repo  *tract.Repo
	clock func() time.Time

	placing sync.Mutex // held while a place is looked for
	index   *index

	mu    sync.Mutex
	calls map[*call]bool // that are not committed yet; true: the answer has ended
}

// New makes a transport that commits to a repo. The repo must stay open until
// [Transport.Wait] has returned.
func New(repo *tract.Repo, o Options) *Transport {
	if o.Next == nil {
		o.Next = http.DefaultTransport
	}
	if o.Prefix == "" {
		o.Prefix = "record/"
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	return &Transport{o: o, repo: repo, clock: time.Now, index: newIndex(repo, !o.Unmasked), calls: map[*call]bool{}}
}

type onKey struct{}

// On names the branch that requests with the context go on with, or make. A request
// that does not go on where the branch stands, because its history was changed, is
// on a fork of it: BRANCH-2 and so on.
func On(ctx context.Context, branch string) context.Context {
	return context.WithValue(ctx, onKey{}, branch)
}

// RoundTrip passes the request on and the answer back, with every byte when it
// comes. What is not a request to a model, or was sent by a Branch that commits
// the answer itself, is passed on and no more.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.begin(req)
	if c == nil {
		return t.o.Next.RoundTrip(req)
	}
	if c.sent == nil { // it cannot be read twice
		again := *req
		body := newCopied()
		again.Body = &tee{ReadCloser: req.Body, to: body, ended: func() {}}
		req, c.body = &again, body
	}
	t.start(c)
	res, err := t.o.Next.RoundTrip(req)
	if err != nil {
		c.body.end(err)
		c.came.end(err)
		c.answered <- nil
		return res, err
	}
	copied := *res
	c.answered <- &copied
	res.Body = &tee{ReadCloser: res.Body, to: c.came, ended: c.ended, refusal: res.StatusCode >= 400}
	return res, nil
}

// begin is the call of a request; nil when it is not to be recorded.
func (t *Transport) begin(req *http.Request) *call {
	if req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody || llm.RecordingSkipped(req.Context()) {
		return nil
	}
	api, provider, model, ok := providers.Recognize(req.URL)
	if !ok {
		return nil
	}
	wanted, _ := req.Context().Value(onKey{}).(string)
	c := &call{
		Transport: t, ctx: tract.AsOperation(context.WithoutCancel(req.Context()), ""), wanted: wanted, api: api, provider: provider, model: model,
		base: req.URL.Scheme + "://" + req.URL.Host, path: req.URL.Path, secrets: secretsOf(req), at: t.clock(),
		body: newCopied(), came: newCopied(), answered: make(chan *http.Response, 1), landed: make(chan struct{}),
	}
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			c.sent, err = io.ReadAll(io.LimitReader(body, maxBody+1))
			if body.Close(); err != nil {
				c.sent = nil
			}
		}
	}
	if c.sent != nil {
		c.body.write(c.sent)
		c.body.end(nil)
	}
	return c
}

// start begins to record a call, after those whose answers have ended: the request
// may repeat what they said.
func (t *Transport) start(c *call) {
	t.mu.Lock()
	var before []*call
	for other, ended := range t.calls {
		if ended {
			before = append(before, other)
		}
	}
	t.calls[c] = false
	t.mu.Unlock()
	go func() {
		defer func() {
			t.mu.Lock()
			delete(t.calls, c)
			t.mu.Unlock()
			close(c.landed)
		}()
		for _, other := range before {
			<-other.landed
		}
		c.record()
	}()
}

// Wait waits until everything is committed that went through so far, or until ctx
// is done. An answer that is still coming, or was neither read to its end nor
// closed, is waited for.
func (t *Transport) Wait(ctx context.Context) error {
	t.mu.Lock()
	var open []*call
	for c := range t.calls {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		select {
		case <-c.landed:
		case <-ctx.Done():
			return fmt.Errorf("record: %w", ctx.Err())
		}
	}
	return nil
}
