package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/spool"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

// Options configure a [Transport]. The zero value is good.
type Options struct {
	Next     http.RoundTripper          // sends the requests; nil: http.DefaultTransport
	Prefix   string                     // of the names of branches that nobody named; empty: "proxy/"
	Author   string                     // of the commits; empty: the author of the Repo
	Provider func(*http.Request) string // names the provider of a request whose host does not tell; nil or empty: the host decides
	Spool    string                     // folder that keeps exchanges until they are committed; empty: they are in memory only
	Memory   int64                      // most bytes of exchanges that wait to be committed; 0: 64 MiB
	Disk     int64                      // most bytes of the spool; 0: 1 GiB
	Unmasked bool                       // the Repo masks no secrets: its setting secrets.mask is "off"

	// Open opens the Repo of a transport that was made without one. It is called when the first
	// exchange is committed, and again while it fails: exchanges wait in the spool until then.
	Open func(context.Context) (*tract.Repo, error)

	// The functions are called by several goroutines at once, after the response has passed.
	OnResponse func(branch string, r *tract.Response) // a response was committed
	OnError    func(*Error)                           // an exchange was not recorded as it should have been
	OnPass     func(*http.Request)                    // a request is not one to a model, and is not recorded
}

// Error says that an exchange was not recorded, or not whole. It holds what went over the
// wire, so that nothing that was paid for is lost with it.
type Error struct {
	Path string // of the request
	Sent []byte // the body of the request
	Came []byte // the body of the response as far as it came
	Err  error
}

// Error returns the path and the cause, without secrets.
func (e *Error) Error() string { return secrets.Mask(fmt.Sprintf("record %s: %v", e.Path, e.Err)) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Stats counts what went through a transport.
type Stats struct {
	Recorded int64 // exchanges that were committed
	Failed   int64 // exchanges that were not committed as they should have been
	Passed   int64 // requests that are not to models
	Pending  int64 // exchanges that are on their way, or wait to be committed
	Dropped  int64 // exchanges that were given up: they were not committed, and did not fit in memory or in the spool
}

// Transport is an http.RoundTripper that commits what goes through it. It may be
// used by any number of clients and goroutines at once. New makes it.
type Transport struct {
	o         Options
	clock     func() time.Time
	committer *committer
	spool     *spool.Spool // nil: there is none
	bodies    recent[[]byte]

	passed, pending atomic.Int64
}

// New makes a transport that commits to a repo, or to the one that Options.Open opens when
// the repo is nil. The repo must stay open until [Transport.Wait] has returned.
func New(repo *tract.Repo, o Options) *Transport {
	if o.Next == nil {
		o.Next = http.DefaultTransport
	}
	if o.Prefix == "" {
		o.Prefix = "proxy/"
	}
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	t := &Transport{o: o, clock: time.Now, committer: newCommitter(repo, o)}
	if o.Spool == "" {
		return t
	}
	var err error
	if t.spool, err = spool.Open(o.Spool, spool.Options{Memory: o.Memory, Disk: o.Disk}); err == nil {
		err = t.spool.Recover(t.recovered)
	}
	if err != nil && o.OnError != nil {
		o.OnError(&Error{Err: err})
	}
	return t
}

// recovered takes over an exchange of a process that ended before it was committed.
func (t *Transport) recovered(f *spool.File, frames []spool.Frame) {
	x := &exchange{ctx: tract.AsOperation(context.Background(), ""), file: f, err: errCut}
	if !x.read(frames) {
		f.Finish("", nothing)
		return
	}
	x.done = true
	t.committer.add(x)
}

type onKey struct{}

// On names the branch that requests with the context continue or make. A request that does
// not go on from where the branch stands is on a fork of it: BRANCH/fork-2 and so on.
func On(ctx context.Context, branch string) context.Context {
	return context.WithValue(ctx, onKey{}, branch)
}

// Stats returns what went through so far.
func (t *Transport) Stats() Stats {
	return Stats{
		Recorded: t.committer.recorded.Load(), Failed: t.committer.failed.Load(),
		Passed: t.passed.Load(), Dropped: t.committer.dropped.Load(), Pending: t.pending.Load() + t.committer.waiting(),
	}
}

// RoundTrip passes the request on and the response back, with every byte when it
// comes. What is not a request to a model, or was sent by a Branch that commits
// the response itself, is passed on and no more.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := t.begin(req)
	if x == nil {
		if !llm.RecordingSkipped(req.Context()) {
			t.passed.Add(1)
			if t.o.OnPass != nil {
				t.o.OnPass(req)
			}
		}
		return t.o.Next.RoundTrip(req)
	}
	t.pending.Add(1)
	x.file = t.spool.Begin(x.clean(t.o.Unmasked, &t.bodies))
	x.spool(frameHead, encode(x.requestHead))
	if x.whole {
		x.spool(frameSent, x.sent)
	} else {
		again := *req
		again.Body = &requestBody{ReadCloser: req.Body, x: x}
		req = &again
	}
	res, err := t.o.Next.RoundTrip(req)
	if err != nil {
		t.ended(x, err)
		return res, err
	}
	x.answered(res, t.clock())
	res.Body = &responseBody{ReadCloser: res.Body, x: x, ended: func(err error) { t.ended(x, err) }}
	return res, nil
}

// begin returns the exchange of a request; nil when it is not to be recorded.
func (t *Transport) begin(req *http.Request) *exchange {
	if req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody || llm.RecordingSkipped(req.Context()) {
		return nil
	}
	api, provider, model, ok := providers.Recognize(req.URL)
	if !ok {
		return nil
	}
	if t.o.Provider != nil {
		provider = cmp.Or(t.o.Provider(req), provider)
	}
	on, _ := req.Context().Value(onKey{}).(string)
	x := &exchange{
		requestHead: requestHead{
			On: on, API: api, Provider: provider, Model: model, Base: req.URL.Scheme + "://" + req.URL.Host, Path: req.URL.Path,
			Header: identityOf(req.Header), Started: t.clock(),
		},
		ctx: tract.AsOperation(context.WithoutCancel(req.Context()), ""), secrets: secretsOf(req),
	}
	if req.ContentLength > 0 && req.ContentLength <= maxBody {
		x.sent = make([]byte, 0, req.ContentLength)
	}
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			sent, err := io.ReadAll(io.LimitReader(body, maxBody+1))
			if body.Close(); err == nil && len(sent) <= maxBody {
				x.sent, x.whole = sent, true
			}
		}
	}
	return x
}

// ended hands an exchange on. Only the first call counts.
func (t *Transport) ended(x *exchange, err error) {
	if x.end(err, t.clock()) {
		x.file.Write(spool.Frame{Kind: frameEnd, Data: x.endHead()}, func() { t.committer.written(x) })
		t.committer.add(x)
		t.pending.Add(-1)
	}
}

// Wait waits until everything is committed that went through so far, or until ctx
// is done. A response that is still coming, or was neither read to its end nor
// closed, is waited for.
func (t *Transport) Wait(ctx context.Context) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for t.pending.Load() > 0 || t.committer.waiting() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("record: %w", ctx.Err())
		}
	}
	return nil
}

// Close waits as [Transport.Wait] does, and closes the spool. What was not committed stays in
// the spool for the next transport with the same folder.
func (t *Transport) Close(ctx context.Context) error {
	err := t.Wait(ctx)
	t.committer.stop()
	err = errors.Join(err, t.spool.Close())
	t.committer.giveUp()
	return err
}

// SentBody returns the body of a recorded request by its hash, which the manifest of its
// response has, from the committed exchanges that a spool still keeps; nil: it keeps none. A
// body that was masked has another hash.
func SentBody(folder string, sent objects.ID) ([]byte, error) {
	frames, err := spool.Find(folder, labelOf(sent))
	for _, f := range frames {
		if f.Kind == frameSent {
			return f.Data, err
		}
	}
	return nil, err
}

// labelOf is the label of an exchange in the spool.
func labelOf(sent objects.ID) string { return sent.String()[:32] }

// maxBody is the most bytes of a request or a response that are recorded.
const maxBody = 64 << 20

// errLeft says that a response was closed before its end.
var errLeft = errors.New("the response was closed before its end")

// errCut says that the process that recorded a response ended before the response did.
var errCut = errors.New("the recording process ended before the response")

// errTooLong says that a body is longer than maxBody.
var errTooLong = fmt.Errorf("body: %w", llm.ErrTooLong)

// exchange is a request and its response as they went by.
type exchange struct {
	requestHead
	ctx     context.Context //nolint:containedctx // of the request, which has it too
	secrets []string
	file    *spool.File // nil: there is none

	mu       sync.Mutex
	sent     []byte
	whole    bool // sent is the whole body
	status   int  // 0: there was no response
	response http.Header
	came     []byte
	first    time.Duration
	duration time.Duration
	done     bool
	err      error // why the response ended; nil: it is whole
	tooLong  bool
	masked   []byte // the body of the request as the spool has it; of its writer
	released bool   // the bodies are in the file only
	number   int64
	waited   bool // for earlier exchanges of other sessions
	purged   bool // it repeats content that was purged
}

func (x *exchange) answered(res *http.Response, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.response, x.first = res.StatusCode, res.Header.Clone(), now.Sub(x.Started)
	if !x.whole {
		x.spool(frameSent, x.sent)
	}
	x.spool(frameAnswer, x.answerHead())
}

// write adds bytes to one of the bodies.
func (x *exchange) write(to *[]byte, p []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.done:
	case len(*to)+len(p) > maxBody:
		x.tooLong = true
	case len(p) > 0:
		*to = append(*to, p...)
		if to == &x.came {
			x.spool(frameCame, x.came[len(x.came)-len(p):])
		}
	}
}

// end says that nothing comes any more. It reports whether it is the first time.
func (x *exchange) end(err error, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return false
	}
	x.done, x.err, x.duration = true, err, now.Sub(x.Started)
	if x.tooLong {
		x.err = errTooLong
	}
	return true
}

// requestBody is a body that is copied while it is sent.
type requestBody struct {
	io.ReadCloser
	x *exchange
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.write(&b.x.sent, p[:n])
	return n, err
}

// responseBody is a body that is copied while it is read. Nothing is read that its reader
// does not ask for, but for the rest of a refusal: libraries leave that unread.
type responseBody struct {
	io.ReadCloser
	x     *exchange
	ended func(error)
	over  bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.write(&b.x.came, p[:n])
	if err != nil {
		b.over = true
		if err == io.EOF {
			b.ended(nil)
		} else {
			b.ended(err)
		}
	}
	return n, err
}

// How much of the rest of a refusal is read after its reader closed it, and for how long.
const (
	maxRefusal     = 64 << 10
	refusalTimeout = time.Second
)

func (b *responseBody) Close() error {
	if b.over || b.x.status < 400 {
		err := b.ReadCloser.Close()
		b.ended(errLeft)
		return err
	}
	b.over = true
	go func() {
		stop := time.AfterFunc(refusalTimeout, func() { b.ReadCloser.Close() })
		defer stop.Stop()
		var rest bytes.Buffer
		_, err := io.Copy(&rest, io.LimitReader(b.ReadCloser, maxRefusal))
		b.x.write(&b.x.came, rest.Bytes())
		b.ended(err)
		b.ReadCloser.Close()
	}()
	return nil
}
