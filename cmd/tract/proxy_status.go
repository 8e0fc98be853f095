package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
)

// statusPath is the path at which a running proxy serves tract proxy status. No provider uses it.
const statusPath = "/.tract/status"

// proxyStatusJSON is the state of a running proxy.
type proxyStatusJSON struct {
	Listen    string    `json:"listen"`
	Started   time.Time `json:"started"`
	Recording bool      `json:"recording"`
	Running   int64     `json:"running"`              // requests that are being forwarded
	Recorded  int64     `json:"recorded"`             // responses
	Pending   int64     `json:"pending"`              // exchanges that are not committed yet
	Passed    int64     `json:"passed"`               // requests that are not to a model
	Failed    int64     `json:"failed"`               // exchanges that were not recorded
	LastError string    `json:"last_error,omitempty"` // of an upstream
	ErrorTime time.Time `json:"error_time,omitzero"`

	RecordError string `json:"record_error,omitempty"` // the newest error of the recorder
}

func newProxyStatus(a *app) *cobra.Command {
	listen, token := defaultListen, ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a running tract proxy does",
		Long: `Ask a running tract proxy how many responses it has recorded, how many are waiting to be
recorded, and for its newest error. tract branch lists the recorded sessions, tract usage
shows their cost, and tract log --follow --all prints new commits while they are recorded.`,
		Example: `  tract proxy status
  tract proxy status --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.proxyStatus(cmd.Context(), listen, token) },
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "address of the proxy")
	cmd.Flags().StringVar(&token, "token", "", "token of the proxy")
	return cmd
}

// serveStatus answers tract proxy status.
func (s *proxyServer) serveStatus(w http.ResponseWriter, req *http.Request) {
	if !s.handler.Allows(w, req) {
		return
	}
	status := proxyStatusJSON{Listen: s.baseURL(), Started: s.started.UTC().Truncate(time.Second), Recording: s.recorder != nil, Running: s.handler.Running()}
	if s.recorder != nil {
		stats := s.recorder.Stats()
		status.Recorded, status.Pending, status.Passed, status.Failed = stats.Recorded, stats.Pending, stats.Passed, stats.Failed+stats.Dropped
		status.RecordError, _ = s.recordError.Load().(string)
	}
	status.ErrorTime, status.LastError = s.handler.LastError()
	status.ErrorTime = status.ErrorTime.UTC().Truncate(time.Second)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// proxyStatus asks a running proxy for its state.
func (a *app) proxyStatus(ctx context.Context, listen, token string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+statusPath, nil)
	if err != nil {
		return fmt.Errorf("proxy status: --listen %q: want HOST:PORT", listen)
	}
	if token != "" {
		req.Header.Set("X-Tract-Token", token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return withHint(fmt.Errorf("proxy status: no proxy answers at %s", listen), "tract proxy starts one; --listen names another address")
	}
	defer func() { _ = res.Body.Close() }() // it was read
	var status proxyStatusJSON
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("proxy status: %s answers %s: want a tract proxy, and its --token", listen, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		return fmt.Errorf("proxy status: read the answer of %s: %w", listen, err)
	}
	return a.emit(status, func(p *format.Printer) {
		p.Line(fmt.Sprintf("%s, running since %s", status.Listen, status.Started.Local().Format(time.DateTime)))
		if !status.Recording {
			p.Line("not recording: there is no store")
		}
		p.Line(fmt.Sprintf("recorded %s; %d not committed yet, %d not recorded", count(uint64(status.Recorded), "response"), status.Pending, status.Failed))
		p.Line(fmt.Sprintf("passed %s to no model; %d running now", count(uint64(status.Passed), "request"), status.Running))
		if status.LastError != "" {
			p.Line(fmt.Sprintf("last error at %s: %s", status.ErrorTime.Local().Format(time.TimeOnly), format.Line(status.LastError)))
		}
		if status.RecordError != "" {
			p.Line("last recording error: " + format.Line(status.RecordError))
		}
	})
}
