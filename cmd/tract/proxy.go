package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/proxy"
	"github.com/tract-vcs/tract/recorder"
)

// defaultListen is where tract proxy listens.
const defaultListen = "127.0.0.1:4141"

// proxyOptions are the flags that tract proxy and tract proxy run share.
type proxyOptions struct {
	listen    string
	token     string
	upstreams []string // NAME=URL
	name      string
	strict    bool
}

func newProxy(a *app) *cobra.Command {
	o := &proxyOptions{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Record the requests of agents and SDKs that run through a local proxy",
		Long: `Listen on one port of this machine and forward the requests of agents to the providers
of their models, unchanged, and record them: one branch per session, named
proxy/CLIENT/ID, with sub-agents, side calls and forks on branches below it.

tract proxy run starts an agent with everything set. For any other program, set its base
URL to http://127.0.0.1:4141, or to http://127.0.0.1:4141/p/NAME for the vendor NAME or
for an upstream that --upstream names. tract proxy env prints what an agent needs.

The path of a request decides where it goes: /v1/messages to Anthropic, /v1beta to
Google, other paths below /v1 to OpenAI. A vendor's own variable, such as
ANTHROPIC_BASE_URL, names another upstream for its API.

A request is recorded after its response, and the store never delays either. Keys pass
through and are never stored. Secrets in requests and responses are masked before they are
stored, unless the setting secrets.mask says otherwise. Requests that are not sent to a
model pass through without being recorded, and are counted.`,
		Example: `  tract proxy run -- claude
  tract proxy
  ANTHROPIC_BASE_URL=http://127.0.0.1:4141 python agent.py
  tract proxy --upstream team=https://llm.example.com/v1
  tract log --follow --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveProxy(cmd, o) },
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.listen, "listen", defaultListen, "address to listen on; an address that other machines can reach needs --token")
	cmd.Flags().StringVar(&o.token, "token", "", "token that each request must have, in the X-Tract-Token header or in the path as /t/TOKEN")
	cmd.AddCommand(newProxyRun(a), newProxyEnv(a), newProxyStatus(a))
	return cmd
}

// addFlags adds the flags that tract proxy and tract proxy run share.
func (o *proxyOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.upstreams, "upstream", nil, "base URL of a provider, as NAME=URL; /p/NAME leads to it (repeatable)")
	cmd.Flags().StringVar(&o.name, "name", "", "put the branches below this name instead of proxy")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "do not start if the store cannot be opened, and exit with code 1 if an exchange was not recorded")
}

// proxyServer is a running proxy.
type proxyServer struct {
	listener net.Listener
	handler  *proxy.Proxy
	server   *http.Server
	recorder *recorder.Transport // nil: nothing is recorded
	started  time.Time
	served   chan error

	recordError atomic.Value // the text of the newest error of the recorder
}

// startProxy opens the store, listens, and serves in the background. If the store cannot be
// opened, startProxy returns the error if strict is set; otherwise it reports the error, and
// exchanges wait in the spool until the store can be opened. Without a folder for a spool, nothing
// is recorded then. defaultProvider is the provider of requests whose path does not name one.
func (a *app) startProxy(ctx context.Context, o *proxyOptions, listen, defaultProvider string) (*proxyServer, error) {
	upstreams, err := o.allUpstreams()
	if err != nil {
		return nil, err
	}
	s := &proxyServer{started: time.Now(), served: make(chan error, 1)}
	var transport http.RoundTripper = proxy.NewTransport(http.ProxyFromEnvironment)
	repo, unmasked, err := a.openForProxy(ctx)
	spool := a.spoolFolder()
	if err != nil && o.strict {
		return nil, err
	}
	if err != nil {
		a.report(ctx, err)
		if spool == "" {
			a.info("requests pass, and nothing is recorded")
		} else {
			a.info("requests pass, and wait in %s until the store can be opened", spool)
		}
	}
	if err == nil || spool != "" {
		s.recorder = recorder.New(repo, recorder.Options{
			Next: transport, Prefix: cmp.Or(o.name, "proxy") + "/", Unmasked: unmasked, Spool: spool,
			Provider: func(req *http.Request) string { return proxy.TargetOf(req.Context()).Provider },
			OnError: func(e *recorder.Error) {
				s.recordError.Store(e.Error())
				a.debug("%s", e)
			},
			Open: func(ctx context.Context) (*tract.Repo, error) {
				repo, _, err := a.openForProxy(ctx)
				return repo, err
			},
		})
		transport = s.recorder
	}
	s.handler = proxy.New(proxy.Options{Upstreams: upstreams, Default: defaultProvider, Transport: transport, Token: o.token})
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", listen); err != nil {
		return nil, withHint(err, "choose another address with --listen, or end the program that uses this one")
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.handler)
	mux.HandleFunc("GET "+statusPath, s.serveStatus)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { s.served <- s.server.Serve(s.listener) }()
	return s, nil
}

// openForProxy opens the store for recording. Agents send mostly the content of files.
// Therefore secrets are masked everywhere, unless a setting says otherwise.
func (a *app) openForProxy(ctx context.Context) (repo *tract.Repo, unmasked bool, err error) {
	v, err := a.settings()
	if err != nil {
		return nil, false, err
	}
	if _, set := v.Changed()["secrets.mask"]; !set {
		if v, err = putSetting(v, "secrets.mask=all"); err != nil {
			return nil, false, err
		}
		a.loaded = &v
	}
	repo, err = a.open(ctx, true)
	return repo, v.Text("secrets.mask") == "off", err
}

// spoolFolder returns the folder that keeps recorded exchanges until they are committed; empty
// for a store without a folder, and for one that does not exist.
func (a *app) spoolFolder() string {
	if a.location == nil || !isFolder(a.location.root) {
		return ""
	}
	return filepath.Join(a.location.root, "spool")
}

// allUpstreams returns the base URLs of the environment and those of --upstream, by the name of the provider.
// Errors of --upstream are usage errors.
func (o *proxyOptions) allUpstreams() (map[string]*url.URL, error) {
	upstreams, err := inheritedUpstreams(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	for _, text := range o.upstreams {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" || strings.Contains(name, "/") {
			return nil, usageError("--upstream %q: want NAME=URL", text)
		}
		if upstreams[name], err = parseUpstream(value); err != nil {
			return nil, usageError("--upstream %q: %v", text, err)
		}
	}
	return upstreams, nil
}

// baseURL returns the base URL that a client on this machine uses.
func (s *proxyServer) baseURL() string { return "http://" + s.listener.Addr().String() }

// serveProxy runs tract proxy until it is interrupted.
func (a *app) serveProxy(cmd *cobra.Command, o *proxyOptions) error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usageError("--listen %q: want HOST:PORT, such as %s", o.listen, defaultListen)
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() && o.token == "" {
		return withHint(usageError("--listen %s is an address that other machines reach: want --token too", o.listen), "for example --token %s", rand.Text())
	}
	ctx := cmd.Context()
	s, err := a.startProxy(ctx, o, o.listen, "")
	if err != nil {
		return err
	}
	a.info("listening on %s; Ctrl-C ends the proxy", s.baseURL())
	select {
	case <-ctx.Done():
	case err := <-s.served:
		return err
	}
	return a.stopProxy(ctx, s, o.strict)
}

// maxStopTime is how long stopProxy waits for the running requests and for the recorder.
const maxStopTime = 5 * time.Second

// stopProxy stops the server, waits until all exchanges are recorded, and prints what was recorded, in one
// line on stderr. If strict is set, it returns an error when an exchange was not recorded.
func (a *app) stopProxy(ctx context.Context, s *proxyServer, strict bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxStopTime)
	defer cancel()
	_ = s.server.Shutdown(ctx) // requests that still run are aborted when the time is over
	_ = s.server.Close()
	if s.recorder == nil {
		return nil
	}
	_ = s.recorder.Close(ctx) // the rest stays in the spool
	stats := s.recorder.Stats()
	line := fmt.Sprintf("recorded %s", count(uint64(stats.Recorded), "response"))
	if stats.Passed > 0 {
		line += fmt.Sprintf(", passed %s to no model", count(uint64(stats.Passed), "request"))
	}
	if stats.Pending > 0 {
		line += fmt.Sprintf(", %d wait in the spool for the next tract proxy", stats.Pending)
	}
	lost := stats.Failed + stats.Dropped
	if lost > 0 {
		line += fmt.Sprintf(", %d not recorded", lost)
	}
	a.info("%s", line)
	if strict && lost+stats.Pending > 0 {
		return negativeAnswer()
	}
	return nil
}
