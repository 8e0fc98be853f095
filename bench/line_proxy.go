package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/proxy"
	"github.com/tract-vcs/tract/recorder"
)

// proxied is a proxy in front of a provider that answers at once, with a recorder or without.
type proxied struct {
	base     string // URL
	client   *http.Client
	repo     *tract.Repo         // nil: nothing is recorded
	recorder *recorder.Transport // nil: nothing is recorded
	folder   string
	close    func() error

	mu    sync.Mutex
	ended map[string]time.Time // of responses that are not committed yet, by id
	shown []time.Duration      // from the end of a response until its commit is visible
}

// newProxied starts a proxy. folder is that of its store; empty: it records nothing.
func newProxied(ctx context.Context, folder string) (*proxied, error) {
	provider := httptest.NewServer(http.HandlerFunc(answerAtOnce))
	upstream, err := url.Parse(provider.URL)
	if err != nil {
		return nil, err
	}
	p := &proxied{folder: folder, ended: map[string]time.Time{}}
	var next http.RoundTripper = proxy.NewTransport(nil)
	if folder != "" {
		if p.repo, err = tract.Open(ctx, folder, tract.OpenOptions{Create: true, Settings: map[string]string{"secrets.mask": "all"}}); err != nil {
			return nil, err
		}
		p.recorder = recorder.New(p.repo, recorder.Options{Next: next, Spool: filepath.Join(folder, "spool"), OnResponse: func(_ string, r *tract.Response) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if end, ok := p.ended[r.ID]; ok {
				p.shown = append(p.shown, time.Since(end))
				delete(p.ended, r.ID)
			}
		}})
		next = p.recorder
	}
	front := httptest.NewServer(proxy.New(proxy.Options{Upstreams: map[string]*url.URL{"anthropic": upstream}, Transport: next}))
	p.base, p.client = front.URL, &http.Client{Transport: proxy.NewTransport(nil)}
	p.close = func() (err error) {
		front.Close()
		provider.Close()
		if p.repo != nil {
			err = errors.Join(p.recorder.Close(ctx), p.repo.Close())
		}
		return err
	}
	return p, nil
}

// responses counts, for ids.
var responses atomic.Int64

// answerAtOnce streams a response of Anthropic's messages with reasoning and a text.
func answerAtOnce(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // the client may be gone
	id := responses.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "event: "+name+"\ndata: "+format+"\n\n", args...)
	}
	event("message_start", `{"type":"message_start","message":{"id":"msg_%08d","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`, id)
	event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)
	event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Thought %d."}}`, id)
	event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"%0128d"}}`, id)
	event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
	event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Answer %d."}}`, id)
	event("content_block_stop", `{"type":"content_block_stop","index":1}`)
	event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`)
	event("message_stop", `{"type":"message_stop"}`)
}

// proxyTalk is one conversation of a client, which sends the whole of it with each request.
type proxyTalk struct {
	session  string
	messages []string // JSON
	n        int
}

// say adds user messages of about size bytes, in pieces of 2 KB with answers between them.
func (t *proxyTalk) say(size int) {
	for size > 0 {
		t.n++
		text := message(writerSeed, t.n)
		text += strings.Repeat(" "+text, min(size, 2000)/(len(text)+1))
		quoted, _ := json.Marshal(fmt.Sprint(t.session, " ", t.n, " ", text))
		t.messages = append(t.messages, `{"role":"user","content":`+string(quoted)+`}`)
		if size -= len(text); size > 0 {
			t.messages = append(t.messages, fmt.Sprintf(`{"role":"assistant","content":"Noted %d."}`, t.n))
		}
	}
}

func (t *proxyTalk) body() []byte {
	return []byte(`{"model":"claude-x","max_tokens":1000,"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + strings.Join(t.messages, ",") + `]}`)
}

// ask sends the conversation, adds the answer to it, and returns when the first and the last
// byte came.
func (p *proxied) ask(ctx context.Context, t *proxyTalk) (first, last time.Duration, err error) {
	body := t.body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("X-Tract-Session", t.session)
	begun := time.Now()
	res, err := p.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	begin := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, begin); err != nil {
		return 0, 0, err
	}
	first = time.Since(begun)
	rest, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, 0, err
	}
	last = time.Since(begun)
	_, text, _ := strings.Cut(string(rest), `"id":"`)
	id, _, _ := strings.Cut(text, `"`)
	n := strings.TrimLeft(strings.TrimPrefix(id, "msg_"), "0")
	var number int
	if _, err := fmt.Sscan(n, &number); err != nil {
		return 0, 0, fmt.Errorf("response id %q: %w", id, err)
	}
	if p.recorder != nil {
		p.mu.Lock()
		p.ended[id] = time.Now()
		p.mu.Unlock()
	}
	t.messages = append(t.messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"Thought %[1]d.","signature":"%0128[1]d"},{"type":"text","text":"Answer %[1]d."}]}`, number))
	return first, last, nil
}

// proxyRecording measures a proxy that records against the same proxy that does not.
func (b *bench) proxyRecording(ctx context.Context) error {
	for _, size := range []int{100 << 10, 1 << 20} {
		if err := b.proxyFirstByte(ctx, size); err != nil {
			return err
		}
	}
	if err := b.proxyAtOnce(ctx); err != nil {
		return err
	}
	return b.proxyGrowing(ctx)
}

// bothProxies runs work behind a proxy that records and then behind one that does not.
func (b *bench) bothProxies(ctx context.Context, name string, work func(p *proxied) error) error {
	for _, folder := range []string{filepath.Join(b.dir, name), ""} {
		p, err := newProxied(ctx, folder)
		if err != nil {
			return err
		}
		if err := errors.Join(work(p), p.close()); err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
	}
	return nil
}

// later records by how many milliseconds a quantile of times is later with a recorder.
func (b *bench) later(name string, part, limit float64, with, without figure) {
	b.record(fmt.Sprintf("%s, p%.0f later than without a recorder (%.1f ms)", name, 100*part, without.at(part)), atMost(limit), one("", "ms", with.at(part)-without.at(part)))
}

// proxyFirstByte measures the first byte of answers, with 8 agents at once.
func (b *bench) proxyFirstByte(ctx context.Context, size int) error {
	const agents = 8
	var firsts []figure
	err := b.bothProxies(ctx, fmt.Sprint("proxy-first-", size), func(p *proxied) error {
		var mu sync.Mutex
		var took []time.Duration
		err := atOnce(agents, func(agent int) error {
			t := &proxyTalk{session: fmt.Sprint("agent-", agent)}
			t.say(size)
			for turn := range min(b.turns, 12) {
				first, _, err := p.ask(ctx, t)
				if err != nil {
					return err
				}
				t.say(1000)
				mu.Lock()
				if turn > 0 { // the first request of a session brings its whole past
					took = append(took, first)
				}
				mu.Unlock()
			}
			return nil
		})
		firsts = append(firsts, times("", took))
		return err
	})
	if err != nil {
		return err
	}
	limits := map[bool][2]float64{false: {1, 5}, true: {5, 20}}[size >= 1<<20]
	name := fmt.Sprintf("proxy: first byte at %d KB, %d agents", size>>10, agents)
	b.later(name, 0.5, limits[0], firsts[0], firsts[1])
	b.later(name, 0.95, limits[1], firsts[0], firsts[1])
	return nil
}

// atOnce runs work in goroutines and waits for all of them.
func atOnce(n int, work func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// proxyAtOnce measures many short conversations at once: the last byte of answers, and the calls
// that are recorded in a second.
func (b *bench) proxyAtOnce(ctx context.Context) error {
	const talks = 64
	turns := min(b.turns, 12)
	var lasts, rates []figure
	err := b.bothProxies(ctx, "proxy-at-once", func(p *proxied) error {
		var mu sync.Mutex
		var took []time.Duration
		begun := time.Now()
		err := atOnce(talks, func(talk int) error {
			t := &proxyTalk{session: fmt.Sprint("talk-", talk)}
			for range turns {
				t.say(200)
				_, last, err := p.ask(ctx, t)
				if err != nil {
					return err
				}
				mu.Lock()
				took = append(took, last)
				mu.Unlock()
			}
			return nil
		})
		if p.recorder != nil {
			err = errors.Join(err, p.recorder.Wait(ctx))
		}
		lasts = append(lasts, times("", took))
		rates = append(rates, per("without a recorder", talks*turns, []time.Duration{time.Since(begun)}))
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("proxy: last byte, %d conversations", talks)
	b.later(name, 0.5, 5, lasts[0], lasts[1])
	b.later(name, 0.99, 50, lasts[0], lasts[1])
	b.record(fmt.Sprintf("proxy: recorded calls, %d conversations", talks), atLeast(1000), rates[0])
	b.compare("proxy: calls with a recorder", noLimit, rates[0], rates[1])
	return nil
}

// proxyGrowing measures a conversation that grows to 1 MB: the processor time of the
// recorder against that of parsing each body once, the size of the store, and when a commit is
// visible.
func (b *bench) proxyGrowing(ctx context.Context) error {
	var used []time.Duration
	var bodies [][]byte
	var shown figure
	var stored int64
	err := b.bothProxies(ctx, "proxy-growing", func(p *proxied) error {
		t := &proxyTalk{session: "growing"}
		before := processorTime()
		for range b.turns {
			t.say(1 << 20 / b.turns)
			if p.recorder == nil {
				bodies = append(bodies, t.body())
			}
			if _, _, err := p.ask(ctx, t); err != nil {
				return err
			}
			if p.recorder != nil { // a model takes longer to answer
				if err := p.recorder.Wait(ctx); err != nil {
					return err
				}
			}
		}
		if p.recorder != nil {
			size, err := storeSize(p.folder)
			if err != nil {
				return err
			}
			shown, stored = times("", p.shown), size
		}
		used = append(used, processorTime()-before)
		return nil
	})
	if err != nil {
		return err
	}
	before := processorTime()
	for _, body := range bodies {
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
	}
	parsed := processorTime() - before
	name := fmt.Sprintf("proxy: %d turns growing to 1 MB, ", b.turns)
	b.compare(name+"processor time of the recorder", atMost(2), times("", []time.Duration{used[0] - used[1]}), times("json.Unmarshal of each body", []time.Duration{parsed}))
	b.compare(name+"size of the store", atMost(2), megabytes("", stored), megabytes("the last body", int64(len(bodies[b.turns-1]))))
	b.record(name+"commit visible after the answer, p95", atMost(200), one("", "ms", shown.at(0.95)))
	return nil
}

// storeSize returns the bytes of the files of a store, without its spool.
func storeSize(folder string) (size int64, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if info, bad := e.Info(); bad == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size, err
}
