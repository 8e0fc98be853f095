// Package demo plays the recorded responses of tract demo. [Serve] starts a server on the
// loopback interface that answers four requests in order: three in the format of Anthropic, the
// last in that of OpenAI. The recordings are written for the demo.
package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The texts of the conversation.
const (
	Model    = "demo-1"
	First    = "Why is the sky blue?"
	Second   = "What is the sky like in Paris right now?"
	CallID   = "toolu_demo_weather" // of the tool call that answers Second
	Forecast = "14 °C, clear, wind from the west"
	Third    = "So would a photo taken there now show a blue sky?"
	Tools    = `[{"name":"get_weather","description":"The weather in a city, now.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`
)

// signature is on the reasoning before the tool call. The result of the call must come with it.
const signature = "VHJhY3QgZGVtbzogYSBzaWduYXR1cmUgdGhhdCBtdXN0IGNvbWUgYmFjayBhcyBpdCBpcw=="

//go:embed *.sse
var recordings embed.FS

// paths are those of the requests, in order.
var paths = [...]string{"/v1/messages", "/v1/messages", "/v1/messages", "/v1/chat/completions"}

// Server plays the recordings.
type Server struct {
	url  string
	pace time.Duration
	http http.Server

	mu       sync.Mutex
	requests int
	err      error
}

// Serve starts a server that waits for pace between two events of a response. The caller must
// close it.
func Serve(pace time.Duration) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	s := &Server{url: "http://" + l.Addr().String(), pace: pace}
	s.http = http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go s.http.Serve(l) //nolint:errcheck // it ends with Close
	return s, nil
}

// URL returns the base URL, without a path.
func (s *Server) URL() string { return s.url }

// Close ends the server.
func (s *Server) Close() error { return s.http.Close() }

// Err returns the error of the first request that is not part of the demo, or nil.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// next checks a request and returns the number of its recording.
func (s *Server) next(path string, body []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.requests
	s.requests++
	var err error
	switch {
	case n >= len(paths) || path != paths[n]:
		err = fmt.Errorf("demo: request %d of %s is not part of the demo", n+1, path)
	case n == 2 && !bytes.Contains(body, []byte(signature)):
		err = fmt.Errorf("demo: request %d lacks the signed reasoning before the tool call", n+1)
	}
	if s.err == nil {
		s.err = err
	}
	return n + 1, err
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var events []byte
	if err == nil {
		n := 0
		if n, err = s.next(r.URL.Path, body); err == nil {
			events, err = recordings.ReadFile(fmt.Sprintf("%d.sse", n))
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for event := range strings.SplitAfterSeq(string(events), "\n\n") {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // an error ends the next write
		select {
		case <-r.Context().Done():
			return
		case <-time.After(s.pace):
		}
	}
}
