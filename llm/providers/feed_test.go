package providers_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// A program that receives the answer by itself gives it to a Feed in whatever
// pieces it comes: reasoning, words and whole blocks are told apart at once.
func ExampleNewFeed() {
	answer, err := os.ReadFile("testdata/feed/messages.sse")
	if err != nil {
		log.Fatal(err)
	}
	feed, err := providers.NewFeed("messages", "anthropic", "", func(e llm.Event) {
		switch e.Type {
		case llm.ReasoningDelta:
			fmt.Printf("thinks %q\n", e.Text)
		case llm.TextDelta:
			fmt.Printf("says %q\n", e.Text)
		case llm.BlockDone:
			fmt.Println("whole:", e.Block.Kind())
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	for len(answer) > 0 { // cut anywhere
		n := min(7, len(answer))
		if _, err := feed.Write(answer[:n]); err != nil {
			log.Fatal(err)
		}
		answer = answer[n:]
	}
	reply, err := feed.Close()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d tokens: %q after %q\n", reply.Finish, reply.Usage.Output, reply.Text(), reply.Reasoning())
	// Output:
	// thinks "Short waves"
	// thinks " scatter more."
	// whole: reasoning
	// says "Because of Rayleigh"
	// says " scattering."
	// whole: assistant
	// end_turn, 31 tokens: "Because of Rayleigh scattering." after "Short waves scatter more."
}

// TestFeedDoesNotDependOnCuts cuts a stream at every byte, breaks it off at
// every byte, and gives its events as JSON lines.
func TestFeedDoesNotDependOnCuts(t *testing.T) {
	b, err := os.ReadFile("testdata/feed/messages.sse")
	if err != nil {
		t.Fatal(err)
	}
	want, err := llm.Collect(providers.Decode("messages", "anthropic", "", strings.NewReader(string(b)), llm.FramingAuto), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed := func(parts ...string) (*llm.Response, error) {
		f, err := providers.NewFeed("messages", "anthropic", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if n, err := f.Write([]byte(part)); err != nil || n != len(part) {
				t.Fatalf("write %q: %d, %v", part, n, err)
			}
		}
		return f.Close()
	}
	for i := range b {
		if have, err := feed(string(b[:i]), string(b[i:])); err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("cut at %d: %v, %v", i, have, err)
		}
		cut, err := feed(string(b[:i]))
		truth, broken := llm.Collect(providers.Decode("messages", "anthropic", "", strings.NewReader(string(b[:i])), llm.FramingStream), nil)
		if truth == nil {
			truth = &llm.Response{Incomplete: true}
		}
		if !errors.Is(broken, llm.ErrTruncated) != (err == nil) || !reflect.DeepEqual(cut, truth) {
			t.Fatalf("broken off at %d: %v, %v; want %v, %v", i, cut, err, truth, broken)
		}
	}
	if have, err := feed(strings.Split(string(b), "")...); err != nil || !reflect.DeepEqual(have, want) {
		t.Fatalf("byte by byte: %v, %v", have, err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			lines = append(lines, data)
		}
	}
	if have, err := feed(lines...); err != nil || !reflect.DeepEqual(have, want) {
		t.Fatalf("as JSON lines: %v, %v", have, err)
	}
}

func TestFeedWithoutInput(t *testing.T) {
	f, err := providers.NewFeed("chat", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := f.Close(); !errors.Is(err, llm.ErrTruncated) || len(reply.Blocks) > 0 || !reply.Incomplete {
		t.Errorf("%v, %v", reply, err)
	}
	if _, err := providers.NewFeed("none", "", "", nil); err == nil {
		t.Error("a dialect that does not exist was taken")
	}
	f, err = providers.NewFeed("chat", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("data: {\"error\":{\"message\":\"no\"}}\n\n")); !errors.As(err, new(*llm.APIError)) {
		t.Errorf("an error inside the stream is %v", err)
	}
}
