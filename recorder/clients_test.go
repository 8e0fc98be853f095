package recorder_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/recorder"
)

// capture is one exchange of a session that was captured between a real client and a
// scripted provider.
type capture struct {
	Order           int               `json:"order"`
	Method          string            `json:"method"`
	Path            string            `json:"path"`
	Status          int               `json:"status"`
	Headers         map[string]string `json:"headers"`
	Session         string            `json:"session"`
	Agent           string            `json:"agent"`
	Kind            string            `json:"kind"`
	Left            bool              `json:"left_before_end"`
	ResponseHeaders map[string]string `json:"response_headers"`
	Request         string            `json:"request"`
	Response        string            `json:"response"`

	folder     string
	sent, came []byte
	thread     string // that it is of
	answered   bool   // there is a response that must be found
}

// captures returns the captured sessions by folder; the test is skipped where they are not.
func captures(t *testing.T) map[string][]*capture {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		t.Skip("TRACT_SHARED names no folder")
	}
	files, err := filepath.Glob(filepath.Join(shared, "clients", "*", "manifest.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no captured sessions in %s: %v", shared, err)
	}
	all := map[string][]*capture{}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Exchanges []*capture `json:"exchanges"`
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(err)
		}
		for _, c := range manifest.Exchanges {
			c.folder = folder
			read := func(name string) []byte {
				if name == "" {
					return nil
				}
				text, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			c.sent, c.came = read(c.Request), read(c.Response)
		}
		assignThreads(manifest.Exchanges)
		all[folder] = manifest.Exchanges
	}
	return all
}

var (
	responseID = regexp.MustCompile(`"(?:id|responseId)": ?"(msg_[0-9a-f]+|resp_[0-9a-f]+|chatcmpl-[0-9a-f]+|[0-9a-f]{16,})"`)
	planWords  = regexp.MustCompile(`PLAN:\w+ [\w ,]+`)
)

// assignThreads tells which conversation each exchange is of: the session and the agent of
// the answer key; without a session the words that the conversation begins with.
func assignThreads(list []*capture) {
	threads := map[string]string{}
	for _, c := range list {
		if c.Method != http.MethodPost || c.Kind == "count_tokens" {
			continue
		}
		id := ""
		if m := responseID.FindSubmatch(c.came); m != nil && c.Status == http.StatusOK {
			id, c.answered = string(m[1]), true
		}
		c.thread = c.Session + "/" + c.Agent
		if c.Session == "" {
			var body struct {
				Previous     string `json:"previous_response_id"`
				Conversation string `json:"conversation"`
			}
			json.Unmarshal(c.sent, &body)
			first := string(planWords.Find(c.sent))
			agent, _, _ := strings.Cut(c.Headers["User-Agent"], " ")
			c.thread = agent + c.Path[max(0, len(c.Path)-18):] + first
			if body.Conversation != "" {
				c.thread = body.Conversation
			}
			if known := threads[body.Previous]; known != "" {
				c.thread = known
			}
		}
		if c.Kind == "side" || c.Kind == "compaction" {
			c.thread += fmt.Sprint("/", c.Kind, c.Order)
		}
		if id != "" {
			threads[id] = c.thread
		}
	}
}

// hostOf are where the APIs of the captured sessions are.
func hostOf(path string) string {
	switch {
	case strings.Contains(path, "/messages"):
		return "https://api.anthropic.com"
	case strings.Contains(path, "/v1beta/"):
		return "https://generativelanguage.googleapis.com"
	}
	return "https://api.openai.com"
}

// exceptions are the responses that rightly have other ones before them than the earlier
// ones of their thread, by folder and order: which.
var exceptions = map[string]map[int][]int{
	"claude-code-cc2": {
		27: {2, 3, 5, 8, 10, 16, 19, 22, 25},     // a fork of the session
		32: {2, 3, 5, 8, 10, 16, 19, 22, 25, 29}, // asks for a summary, and leaves out the last answer
		34: {}, 35: {34}, 37: {34, 35},           // after the compaction
	},
	"codex-codex1": {15: {13, 14}, 16: {}, 17: {16}},                 // likewise
	"pi-pi1":       {21: {14, 15, 16, 17}, 22: {14, 15, 16, 17, 21}}, // goes on with another provider, and sends reasoning as text
}

// stage is an empty repo, a transport that records into it, and where its responses are.
type stage struct {
	t         *testing.T
	repo      *tract.Repo
	transport *recorder.Transport
	next      *capture                // that is answered next
	committed map[*capture]objects.ID // the last block of the response
	branch    map[*capture]string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	repo, err := tract.Open(t.Context(), "mem:", tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, repo: repo, committed: map[*capture]objects.ID{}, branch: map[*capture]string{}}
	s.transport = recorder.New(repo, recorder.Options{
		Next: s, OnError: func(err *recorder.Error) { t.Errorf("%v", err) },
		OnResponse: func(branch string, r *tract.Response) {
			s.committed[s.next], s.branch[s.next] = r.Commits[len(r.Commits)-1], branch
		},
	})
	return s
}

// RoundTrip answers with what was captured.
func (s *stage) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	h := http.Header{}
	for name, value := range s.next.ResponseHeaders {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: s.next.Status, Header: h, Body: io.NopCloser(bytes.NewReader(s.next.came)), Request: req}, nil
}

// play sends captured requests through the transport, and waits until each is committed.
func (s *stage) play(list []*capture) {
	s.t.Helper()
	for _, c := range list {
		if c.Method != http.MethodPost {
			continue
		}
		s.next = c
		req, err := http.NewRequestWithContext(s.t.Context(), c.Method, hostOf(c.Path)+c.Path, bytes.NewReader(c.sent))
		if err != nil {
			s.t.Fatal(err)
		}
		for name, value := range c.Headers {
			req.Header.Set(name, value)
		}
		res, err := s.transport.RoundTrip(req)
		if err != nil {
			s.t.Fatal(err)
		}
		came, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Equal(came, c.came) {
			s.t.Fatalf("%s %d: other bytes came than were sent: %v", c.folder, c.Order, err)
		}
		if err := s.transport.Wait(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// before returns the responses that a captured one has before it in the store.
func (s *stage) before(c *capture) (list []*capture) {
	of := map[objects.ID]*capture{}
	for other, at := range s.committed {
		of[at] = other
	}
	line, err := commit.Linearize(s.t.Context(), s.repo.Store(), s.committed[c])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, at := range line {
		if of[at.ID] != nil && of[at.ID] != c {
			list = append(list, of[at.ID])
		}
	}
	return list
}

// judge compares the store with the answer key.
func (s *stage) judge(list []*capture) {
	s.t.Helper()
	replies, lacking, mixed := 0, 0, 0
	earlier := map[string][]*capture{}
	for _, c := range list {
		if !c.answered {
			continue
		}
		replies++
		if s.committed[c].IsZero() { // one that broke off is under a rescue ref
			if !c.Left {
				s.t.Errorf("%s %d: the response is on no branch", c.folder, c.Order)
			}
			continue
		}
		before := s.before(c)
		want, excused := exceptions[c.folder][c.Order]
		var orders []int
		lacks, others := len(earlier[c.thread]), 0
		for _, other := range before {
			orders = append(orders, other.Order)
			if other.thread == c.thread {
				lacks--
			} else {
				others++
			}
			if other.folder != c.folder {
				s.t.Errorf("%s %d has a response of %s before it", c.folder, c.Order, other.folder)
			}
		}
		earlier[c.thread] = append(earlier[c.thread], c)
		switch {
		case excused && !slices.Equal(orders, want):
			s.t.Errorf("%s %d on %s has %v before it, want %v", c.folder, c.Order, s.branch[c], orders, want)
		case excused:
		case lacks > 0 || others > 0:
			if lacks > 0 {
				lacking++
			}
			if others > 0 {
				mixed++
			}
			s.t.Errorf("%s %d on %s lacks %d of its thread %s and has %d of others: %v", c.folder, c.Order, s.branch[c], lacks, c.thread, others, orders)
		}
	}
	s.t.Logf("%d responses; %d lack earlier ones of their thread, %d have those of others", replies, lacking, mixed)
}

// TestCapturedSessions plays each captured session into a store of its own.
func TestCapturedSessions(t *testing.T) {
	for folder, list := range captures(t) {
		t.Run(folder, func(t *testing.T) {
			s := newStage(t)
			s.play(list)
			s.judge(list)
		})
	}
}

// seeds is how many random orders a test tries.
func seeds() uint64 {
	if os.Getenv("TRACT_TORTURE") != "" {
		return 100
	}
	return 3
}

// interleaved is all sessions in one random order, each in its own.
func interleaved(sessions map[string][]*capture, rng *rand.Rand) (all []*capture) {
	rest := maps.Clone(sessions)
	for len(rest) > 0 {
		folders := slices.Sorted(maps.Keys(rest))
		folder := folders[rng.IntN(len(folders))]
		all = append(all, rest[folder][0])
		if rest[folder] = rest[folder][1:]; len(rest[folder]) == 0 {
			delete(rest, folder)
		}
	}
	return all
}

// TestCapturedSessionsInOneStore plays all sessions that have ids into one store at
// the same time. The ids of their calls and responses are the same: the provider made them
// in order.
func TestCapturedSessionsInOneStore(t *testing.T) {
	sessions := captures(t)
	maps.DeleteFunc(sessions, func(folder string, _ []*capture) bool {
		return strings.HasPrefix(folder, "gemini") || strings.HasPrefix(folder, "pi-") || strings.HasPrefix(folder, "npm-")
	})
	for seed := range seeds() {
		s := newStage(t)
		all := interleaved(sessions, rand.New(rand.NewPCG(seed, 1)))
		s.play(all)
		s.judge(all)
	}
}

// TestCapturedSessionsPlayedTwice plays every session twice at the same time, each time with its own
// ids of sessions, calls, items and responses, and with its own seals.
func TestCapturedSessionsPlayedTwice(t *testing.T) {
	sessions := map[string][]*capture{}
	for folder, list := range captures(t) {
		sessions[folder], sessions[folder+" again"] = double(list, folder), double(list, folder+" again")
	}
	for seed := range seeds() {
		s := newStage(t)
		all := interleaved(sessions, rand.New(rand.NewPCG(seed, 2)))
		s.play(all)
		s.judge(all)
	}
}

// identifier finds words of at least 10 letters and digits: ids and seals have digits.
var identifier = regexp.MustCompile(`(^|[^A-Za-z0-9\\\\+/=])[A-Za-z0-9+/=]{10,}`)

// double returns a session with other ids and seals.
func double(list []*capture, salt string) (doubles []*capture) {
	other := func(text string) string {
		return identifier.ReplaceAllStringFunc(text, func(id string) string {
			digits := 0
			for _, r := range id {
				if r >= '0' && r <= '9' {
					digits++
				}
			}
			if digits < 4 || strings.Contains(id, "/") && len(id) < 64 {
				return id
			}
			sum := sha256.Sum256([]byte(salt + id))
			var out strings.Builder
			for i, r := range id { // the form stays: hexadecimal digits become others
				d := sum[i%len(sum)]
				switch {
				case r >= '0' && r <= '9':
					out.WriteByte('1' + d%9)
				case r >= 'a' && r <= 'f':
					out.WriteByte('a' + d%6)
				default:
					out.WriteRune(r)
				}
			}
			return out.String()
		})
	}
	for _, c := range list {
		d := *c
		d.thread, d.Session, d.Agent = salt+" "+other(c.thread), other(c.Session), other(c.Agent)
		d.sent, d.came = []byte(other(string(c.sent))), []byte(other(string(c.came)))
		d.Headers = map[string]string{}
		for name, value := range c.Headers {
			if name == "User-Agent" {
				d.Headers[name] = value
				continue
			}
			d.Headers[name] = other(value)
		}
		doubles = append(doubles, &d)
	}
	return doubles
}

// TestCapturedSessionsAreLinked checks where sub-agents, forks and what follows a compaction
// say that they came from: the response, by its order, that has the call or the commit.
func TestCapturedSessionsAreLinked(t *testing.T) {
	sessions := captures(t)
	for _, c := range []struct {
		folder string
		order  int    // of a response of the linked conversation
		link   string // its name
		to     int    // order of the response that the link leads to
	}{
		{"claude-code-cc2", 6, "parent_commit", 5},
		{"claude-code-cc2", 11, "parent_commit", 10},
		{"claude-code-cc2", 12, "parent_commit", 10},
		{"claude-code-cc2", 27, "forked_from", 25},
		{"claude-code-cc2", 34, "continues", 32},
		{"codex-codex1", 16, "continues", 15},
		{"codex-codex2", 3, "parent_commit", 1},
		{"opencode-opencode1", 6, "parent_commit", 5},
		{"opencode-opencode1", 14, "parent_commit", 13},
		{"pi-pi1", 21, "forked_from", 17},
	} {
		s := newStage(t)
		s.play(sessions[c.folder])
		at := func(order int) objects.ID {
			for of, id := range s.committed {
				if of.Order == order {
					return id
				}
			}
			t.Fatalf("%s %d is on no branch", c.folder, order)
			return objects.ID{}
		}
		linked, err := s.repo.Show(t.Context(), at(c.order).String())
		if err != nil {
			t.Fatal(err)
		}
		id, err := objects.ParseID(linked.Origin.Original[c.link])
		if err != nil {
			t.Errorf("%s %d: no link %s in %v", c.folder, c.order, c.link, linked.Origin.Original)
			continue
		}
		line, err := commit.Linearize(t.Context(), s.repo.Store(), id)
		if err == nil {
			err = commit.LoadAll(t.Context(), s.repo.Store(), line...)
		}
		if err != nil {
			t.Fatal(err)
		}
		for len(line) > 1 && line[len(line)-1].Origin.ResponseID == "" { // a result of the response
			line = line[:len(line)-1]
		}
		to := line[len(line)-1]
		want, err := s.repo.Show(t.Context(), at(c.to).String())
		if err != nil {
			t.Fatal(err)
		}
		why, err := inspect.Why(t.Context(), s.repo, linked.ID.String())
		if err != nil || !slices.ContainsFunc(why.Links, func(l inspect.Link) bool { return l.Name == c.link && l.Commit.ID == id }) {
			t.Errorf("%s %d: why gives the links %v, %v", c.folder, c.order, why.Links, err)
		}
		if to.OriginID != want.OriginID {
			t.Errorf("%s %d: %s leads to %s %q, not to the response %d", c.folder, c.order, c.link, to.Kind, to.Block, c.to)
		}
	}
}

// TestSideCallsWithoutSession plays Gemini CLI, which names no session: a routing call that repeats calls of a
// conversation is beside it.
func TestSideCallsWithoutSession(t *testing.T) {
	sessions := captures(t)
	for _, folder := range []string{"gemini-cli-gemini1", "gemini-cli-gemini2"} {
		s := newStage(t)
		s.play(sessions[folder])
		branches := map[int]string{}
		for c, name := range s.branch {
			branches[c.Order] = name
		}
		for side, conversation := range map[int]int{5: 4, 8: 7} {
			if have, want := branches[side], branches[conversation]+"/side-routing"; have != want && !strings.HasPrefix(have, want+"/") {
				t.Errorf("%s: the routing call %d is on %s, want %s", folder, side, have, want)
			}
		}
	}
}
