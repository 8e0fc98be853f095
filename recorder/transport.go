package recorder

import (
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
)

// Options configure a [Transport]. The zero value has usable defaults.
type Options struct {
	Next     http.RoundTripper          // sends the requests; nil: http.DefaultTransport
	Prefix   string                     // prefix of the branch names that the transport chooses; empty: "proxy/"
	Author   string                     // author of the commits; empty: the author of the Repo
	Provider func(*http.Request) string // returns the provider of a request whose host does not name it; nil or an empty result: the host decides
	Spool    string                     // folder that keeps exchanges until they are committed; empty: they are kept in memory only
	Memory   int64                      // largest size in bytes of exchanges that wait to be committed; 0: 64 MiB
	Disk     int64                      // largest size in bytes of the spool; 0: 1 GiB
	Unmasked bool                       // the Repo masks no secrets: its setting secrets.mask is "off"

	// Open opens the Repo if New was called without one. It is called before the first commit,
	// and again while it fails: exchanges wait in the spool until then.
	Open func(context.Context) (*tract.Repo, error)

	// These functions are called concurrently, after the response has passed; nil: not called.
	OnResponse func(branch string, r *tract.Response) // a response was committed
	OnError    func(*Error)                           // an exchange was not recorded as it should have been
	OnPass     func(*http.Request)                    // a request passed that is not sent to a model, and is not recorded
}

// Error reports that an exchange was not recorded, or not completely. It holds the bytes that
// were sent and received, so that a paid response is not lost.
type Error struct {
	Path string // of the request
	Sent []byte // the body of the request
	Came []byte // the received part of the response body
	Err  error
}

// Error returns the path and the cause, without secrets.
func (e *Error) Error() string { return secrets.Mask(fmt.Sprintf("record %s: %v", e.Path, e.Err)) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Stats counts the requests that went through a transport.
type Stats struct {
	Recorded int64 // exchanges that were committed
	Failed   int64 // exchanges that could not be committed
	Passed   int64 // requests that are not sent to models
	Pending  int64 // exchanges in progress or waiting to be committed
	Dropped  int64 // exchanges that were neither committed nor kept, because memory or the spool was full
}

// Transport is an http.RoundTripper that commits the exchanges with models that go through it.
// Any number of clients and goroutines may use it concurrently. [New] returns one.
type Transport struct {
	o         Options
	clock     func() time.Time
	committer *committer
	spool     *spool.Spool // nil: there is none

	passed, pending atomic.Int64
}

// New returns a transport that commits to repo, or to the repo that Options.Open opens if repo
// is nil. The repo must stay open until [Transport.Wait] has returned. Exchanges that an earlier
// process left in the spool are committed, too.
func New(repo *tract.Repo, o Options) *Transport {
	o.Next = cmp.Or(o.Next, http.DefaultTransport)
	o.Prefix = cmp.Or(o.Prefix, "proxy/")
	o.Memory = cmp.Or(o.Memory, 64<<20)
	t := &Transport{o: o, clock: time.Now, committer: newCommitter(repo, o)}
	if o.Spool == "" {
		return t
	}
	yield := func() { t.committer.traffic.awaitQuiet(time.Now().Add(maxSpoolHold)) }
	var err error
	if t.spool, err = spool.Open(o.Spool, spool.Options{Memory: o.Memory, Disk: o.Disk, Yield: yield}); err == nil {
		err = t.spool.Recover(t.addRecovered)
	}
	if err != nil && o.OnError != nil {
		o.OnError(&Error{Err: err})
	}
	return t
}

// maxSpoolHold is the longest time for which traffic delays a write to the spool.
const maxSpoolHold = 50 * time.Millisecond

// addRecovered queues an exchange whose process ended before it committed the exchange.
func (t *Transport) addRecovered(f *spool.File, frames []spool.Frame) {
	x := &exchange{c: t.committer, ctx: tract.AsOperation(context.Background(), ""), file: f, err: errProcessEnded, done: true, recovered: true}
	if !x.readFrames(frames) {
		f.Finish("", 0, func() []spool.Frame { return nil })
		return
	}
	t.committer.enqueue(x)
}

type branchContextKey struct{}

// On returns a context that names the branch of its requests. The branch is created if it does
// not exist. A request that does not continue from the tip of the branch is committed to a fork
// of it: BRANCH/fork-2 and so on.
func On(ctx context.Context, branch string) context.Context {
	return context.WithValue(ctx, branchContextKey{}, branch)
}

// Stats returns the counts so far.
func (t *Transport) Stats() Stats {
	return Stats{
		Recorded: t.committer.recorded.Load(), Failed: t.committer.failed.Load(),
		Passed: t.passed.Load(), Dropped: t.committer.dropped.Load(), Pending: t.pending.Load() + t.committer.pendingCount(),
	}
}

// RoundTrip sends the request and returns its response, whose bytes can be read as soon as they
// arrive. It does not record a request that is not sent to a model, or one of a Branch that
// commits the response itself.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, recorded := t.newExchange(req)
	if !recorded {
		if !llm.RecordingSkipped(req.Context()) {
			t.passed.Add(1)
			if t.o.OnPass != nil {
				t.o.OnPass(req)
			}
		}
		return t.o.Next.RoundTrip(req)
	}
	t.pending.Add(1)
	x.c.traffic.uploads.Add(1)
	x.file = t.spool.Begin(x.maskFrame)
	if x.whole {
		x.onRequestRead()
	} else {
		again := *req
		again.Body = &requestBody{ReadCloser: req.Body, x: x, left: cmp.Or(req.ContentLength, -1)}
		req = &again
	}
	res, err := t.o.Next.RoundTrip(req)
	if err != nil {
		t.finish(x, err)
		return res, err
	}
	x.setResponse(res, t.clock())
	res.Body = &responseBody{ReadCloser: res.Body, x: x, ended: func(err error) { t.finish(x, err) }}
	return res, nil
}

// newExchange returns the exchange of a request, if the request is recorded.
func (t *Transport) newExchange(req *http.Request) (x *exchange, recorded bool) {
	if req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody || llm.RecordingSkipped(req.Context()) {
		return nil, false
	}
	api, provider, model, ok := providers.Recognize(req.URL)
	if !ok {
		return nil, false
	}
	if t.o.Provider != nil {
		provider = cmp.Or(t.o.Provider(req), provider)
	}
	on, _ := req.Context().Value(branchContextKey{}).(string)
	x = &exchange{
		requestHead: requestHead{
			On: on, API: api, Provider: provider, Model: model, Base: req.URL.Scheme + "://" + req.URL.Host, Path: req.URL.Path,
			Header: identityHeadersOf(req.Header), Started: t.clock(),
		},
		c: t.committer, ctx: tract.AsOperation(context.WithoutCancel(req.Context()), ""), secrets: secretsOf(req), encoding: req.Header.Get("Content-Encoding"),
	}
	x.sent = make([]byte, 0, max(0, min(req.ContentLength, maxReserved)))
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			sent, err := io.ReadAll(io.LimitReader(body, maxBody+1))
			if body.Close(); err == nil && len(sent) <= maxBody {
				x.sent, x.whole = sent, true
			}
		}
	}
	return x, true
}

// finish ends an exchange and queues it for its commit. Only the first call has an effect.
func (t *Transport) finish(x *exchange, err error) {
	if x.markEnded(err, t.clock()) {
		x.writeFrame(frameResponseEnd, x.encodeResponseEnd())
		t.committer.enqueue(x)
		t.pending.Add(-1)
	}
}

// Wait waits until every exchange that began so far is committed, or until ctx is done. An
// exchange ends when its response is read to the end or closed.
func (t *Transport) Wait(ctx context.Context) error {
	t.committer.traffic.waiters.Add(1)
	defer t.committer.traffic.waiters.Add(-1)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for t.pending.Load() > 0 || t.committer.pendingCount() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("record: %w", ctx.Err())
		}
	}
	return nil
}

// Close waits like [Transport.Wait], ends what is not committed by then, and closes the spool. Exchanges
// that were not committed stay in the spool for the next transport with the same folder. No exchange
// that ends later is committed.
func (t *Transport) Close(ctx context.Context) error {
	err := t.Wait(ctx)
	t.committer.stop()
	err = errors.Join(err, t.spool.Close())
	t.committer.dropLost()
	return err
}

// maxReserved is the most memory in bytes that is allocated for a request body before it is read.
const maxReserved = 4 << 20

// maxBody is the largest body of a request or a response that is recorded, in bytes.
const maxBody = 64 << 20

// errClosedEarly reports that a response was closed before its end.
var errClosedEarly = errors.New("the response was closed before its end")

// errProcessEnded reports that the recording process ended before the response did.
var errProcessEnded = errors.New("the recording process ended before the response")

// errTooLong reports that a body is longer than maxBody.
var errTooLong = fmt.Errorf("body: %w", llm.ErrTooLong)

// exchange is a recorded request and its response.
type exchange struct {
	requestHead
	c        *committer
	ctx      context.Context //nolint:containedctx // the context of the request, not cancelled with it
	secrets  []string        // values to redact
	encoding string          // of the request body: its Content-Encoding
	file     *spool.File     // nil: there is no spool
	clean    atomic.Bool     // the request body has no secret

	mu sync.Mutex
	responseHead
	sent         []byte
	whole        bool // sent has the whole request body
	written      bool // the spool has the request, as far as it was read
	received     []byte
	keptResponse []byte // what the spool keeps of the received body
	duration     time.Duration
	done         bool
	err          error // why the response ended, or a body is not whole; nil: they are whole
	number       int64
	held         int64 // bytes of its bodies when it was queued
	released     bool  // the bodies come from the spool file
	waited       bool  // it has waited for earlier exchanges of other queues
	purged       bool  // it repeats content that was purged
	recovered    bool  // the spool had it from a process that has ended
}

func (x *exchange) setResponse(res *http.Response, now time.Time) {
	x.c.traffic.noteForwardedBytes()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.responseHead = responseHead{res.StatusCode, x.responseHeadersToKeep(res.Header), now.Sub(x.Started)}
	x.writeFrame(frameResponseHead, encodeJSON(x.responseHead))
}

// writeRequest writes the request to the spool, once. mu is held.
func (x *exchange) writeRequest() {
	if !x.written {
		x.written = true
		x.c.traffic.noteForwardedBytes()
		x.c.traffic.uploads.Add(-1)
		x.writeFrame(frameRequestHead, encodeJSON(x.requestHead))
		x.writeFrame(frameRequestBody, x.sent)
	}
}

// onRequestRead is called when the request body was read to its end. The spool has it from then on,
// although the provider may take minutes for its response.
func (x *exchange) onRequestRead() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done {
		x.writeRequest()
	}
}

// appendBody appends bytes to &x.sent or &x.received, up to maxBody. Nothing is appended after the
// first bytes that did not fit, so that a body has no gap.
func (x *exchange) appendBody(body *[]byte, p []byte) {
	x.c.traffic.noteForwardedBytes()
	x.mu.Lock()
	defer x.mu.Unlock()
	if left := maxBody - len(*body); len(p) > left {
		p = p[:left]
		if !x.done {
			x.err = errTooLong
		}
	}
	if x.done || len(p) == 0 {
		return
	}
	*body = append(*body, p...)
	if body == &x.received {
		x.writeFrame(frameResponseBody, x.received[len(x.received)-len(p):])
	}
}

// markEnded marks the exchange as ended. It reports whether this is the first call.
func (x *exchange) markEnded(err error, now time.Time) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return false
	}
	x.done, x.err, x.duration = true, cmp.Or(x.err, err), now.Sub(x.Started)
	x.writeRequest() // the request may have failed before its body was read
	return true
}

// requestBody is a request body that is copied while it is sent.
type requestBody struct {
	io.ReadCloser
	x    *exchange
	left int64 // of the declared length; negative: unknown
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.appendBody(&b.x.sent, p[:n])
	if b.left -= int64(n); err == io.EOF || b.left == 0 {
		b.x.onRequestRead()
	}
	return n, err
}

// responseBody is a response body that is copied while it is read. It reads only what its reader
// asks for, with one exception: Close reads the rest of an error response, because libraries
// often leave it unread.
type responseBody struct {
	io.ReadCloser
	x     *exchange
	ended func(error)
	over  bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.appendBody(&b.x.received, p[:n])
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

// Limits in bytes and time for reading the rest of an error response after its reader closed it.
const (
	maxRefusal     = 64 << 10
	refusalTimeout = time.Second
)

func (b *responseBody) Close() error {
	if b.over || b.x.Status < 400 {
		err := b.ReadCloser.Close()
		b.ended(errClosedEarly)
		return err
	}
	b.over = true
	go func() {
		stop := time.AfterFunc(refusalTimeout, func() { b.ReadCloser.Close() })
		defer stop.Stop()
		rest, err := io.ReadAll(io.LimitReader(b.ReadCloser, maxRefusal))
		b.x.appendBody(&b.x.received, rest)
		b.ended(err)
		b.ReadCloser.Close()
	}()
	return nil
}
