package recorder_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/recorder"
)

func TestBranchesAreNamedForkedAndFoundAgain(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "B1", "A2", "C1", "A3"))
	a, b := recorder.On(t.Context(), "a"), recorder.On(t.Context(), "b")
	w.ask(a, "Q1")
	w.ask(b, "Q1") // the same words on another branch
	w.ask(a, "Q1", "A1", "Q2")
	w.ask(a, "Q1", "A1", "Q2 in other words") // the client went back
	w.records(w.repo)                         // another process: nothing is known
	w.ask(a, "Q1", "A1", "Q2", "A2", "Q3")
	w.want(map[string]string{
		"a": "Q1 | A1 | Q2 | A2 | Q3 | A3", "b": "Q1 | B1", "a/fork-2": "Q1 | A1 | Q2 in other words | C1",
	})
}

// TestBranchNamedLikeASecretIsContinued: the origins of commits have the name masked, and the next process
// finds the conversation by them.
func TestBranchNamedLikeASecretIsContinued(t *testing.T) {
	const name = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	w := newWire(t, "mem:", says("A1", "A2", "A3"))
	w.ask(recorder.On(t.Context(), name), "Q1")
	w.ask(recorder.On(t.Context(), name), "Q1", "A1", "Q2")
	w.records(w.repo) // another process: nothing is known
	w.ask(recorder.On(t.Context(), name), "Q1", "A1", "Q2", "A2", "Q3")
	w.want(map[string]string{name: "Q1 | A1 | Q2 | A2 | Q3 | A3"})
}

// TestARecordedExchangeIsOneOperation: undo takes the question back with its answer, and
// no other exchange, although one context is of all of them.
func TestARecordedExchangeIsOneOperation(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2"))
	main := tract.AsOperation(recorder.On(t.Context(), "main"), "")
	w.ask(main, "Q1")
	w.ask(main, "Q1", "A1", "Q2")
	w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2"})
	if op, err := w.repo.Undo(t.Context(), tract.UndoOptions{Branch: "main"}); err != nil || len(op.Parts) > 0 {
		t.Errorf("undo took back %+v, %v", op, err)
	}
	w.want(map[string]string{"main": "Q1 | A1"})
}

func TestDeletedBranchIsCreatedAgain(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2"))
	main := recorder.On(t.Context(), "main")
	w.ask(main, "Q1")
	w.settle()
	if err := w.repo.DeleteRefs(t.Context(), []string{"refs/heads/main"}); err != nil {
		t.Fatal(err)
	}
	w.ask(main, "Q1", "A1", "Q2")
	w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2"})
}

// TestConcurrentEqualRequests sends the same request several times at once, as programs do that
// choose among responses: the user message is recorded once, and each response is on a branch.
func TestConcurrentEqualRequests(t *testing.T) {
	var ready sync.WaitGroup
	ready.Add(4)
	answers := make(chan string, 4)
	for n := range 4 {
		answers <- fmt.Sprint("A", n)
	}
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		ready.Done()
		ready.Wait()
		io.WriteString(out, chatAnswer(<-answers))
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { w.ask(recorder.On(t.Context(), "main"), "Q") })
	}
	all.Wait()
	have := w.branches()
	var said []string
	for _, words := range have {
		said = append(said, words)
	}
	slices.Sort(said)
	if fmt.Sprint(said) != "[Q | A0 Q | A1 Q | A2 Q | A3]" {
		t.Errorf("have %q", have)
	}
	first := map[objects.ID]bool{}
	for name := range have {
		ids := []objects.ID{}
		for c, err := range w.repo.Log(t.Context(), name, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, c.ID)
		}
		first[ids[len(ids)-1]] = true
	}
	if len(first) != 1 {
		t.Errorf("the question is there %d times", len(first))
	}
}

func TestInstructionsThatChangeStayInPlace(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2", "A3"))
	main := recorder.On(t.Context(), "main")
	w.ask(main, "system: It is Monday.", "Q1")
	w.ask(main, "system: It is Tuesday.", "Q1", "A1", "Q2")
	w.ask(main, "system: It is Tuesday.", "Q1", "A1", "Q2", "A2", "Q3")
	w.want(map[string]string{"main": "It is Monday. | Q1 | A1 | It is Tuesday. | Q2 | A2 | Q3 | A3"})
	p, err := w.repo.Compile(t.Context(), "main", tract.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if have := p.Messages[0].Blocks[0].String(); have != "It is Tuesday." || len(p.Messages) != 7 {
		t.Errorf("the prompt of %d messages begins with %q", len(p.Messages), have)
	}
}

// TestResponseAfterANoteStaysOnTheBranch sends the same request twice at once. One is refused, and
// its note precedes the response of the other.
func TestResponseAfterANoteStaysOnTheBranch(t *testing.T) {
	arrived, refused := make(chan bool), make(chan bool)
	var mu sync.Mutex
	n := 0
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		n++
		first := n == 1
		mu.Unlock()
		if first {
			close(arrived)
			<-refused
			io.WriteString(out, chatAnswer("A"))
			return
		}
		out.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(out, "not now")
	})
	main := recorder.On(t.Context(), "main")
	var all sync.WaitGroup
	all.Go(func() { w.ask(main, "Q") })
	<-arrived
	w.ask(main, "Q")
	close(refused)
	all.Wait()
	w.want(map[string]string{"main": "Q | the request was answered 429 Too Many Requests | A"})
}

// TestRequestContinuesTheResponseWithItsSeal has two responses with equal text and different
// reasoning. The request that repeats the second one with its sealed reasoning continues that one.
func TestRequestContinuesTheResponseWithItsSeal(t *testing.T) {
	answer := func(n int) string {
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"c-1","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},
			"content":[{"type":"thinking","thinking":"reason %d","signature":"seal %d"},{"type":"text","text":"A"}]}`, n, n, n)
	}
	n := 0
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n++
		io.WriteString(out, answer(n))
	})
	ask := func(list string) {
		t.Helper()
		req := w.request(recorder.On(t.Context(), "main"), `{"model":"c-1","max_tokens":9,"messages":[`+list+`]}`)
		req.URL.Path = "/v1/messages"
		res, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	ask(`{"role":"user","content":"Q"}`)
	ask(`{"role":"user","content":"Q"}`)
	ask(`{"role":"user","content":"Q"},{"role":"assistant","content":[{"type":"thinking","thinking":"reason 2","signature":"seal 2"},{"type":"text","text":"A"}]},{"role":"user","content":"Q2"}`)
	ask(`{"role":"user","content":"Q"},{"role":"assistant","content":[{"type":"thinking","thinking":"reason 9","signature":"seal 9"},{"type":"text","text":"A"}]},{"role":"user","content":"Q3"}`)
	w.settle()
	reasons := map[string]string{}
	for b, err := range w.repo.Refs(t.Context(), tract.RefQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range w.repo.Log(t.Context(), b.Name, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind.String() == "reasoning" || c.Kind.String() == "user" {
				reasons[b.Name] = c.Block.String() + " | " + reasons[b.Name]
			}
		}
	}
	want := map[string]string{"main": "Q | reason 1 | ", "main/fork-2": "Q | reason 2 | Q2 | reason 3 | ", "main/fork-3": "Q | reason 9 | Q3 | reason 4 | "}
	if fmt.Sprint(reasons) != fmt.Sprint(want) {
		t.Errorf("have %q\nwant %q", reasons, want)
	}
}
