package tract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/llm/providers"
)

// A program with a transport of its own prepares the request, sends the body as it is, and
// gives the answer back. No transaction is open meanwhile.
func Example_prepareAndAccept() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	provider, err := llmtest.Serve(llmtest.Exchange{Body: `{"model":"deepseek-chat","choices":[{"finish_reason":"stop","message":
		{"role":"assistant","reasoning_content":"Short waves scatter more.","content":"Because of Rayleigh scattering."}}]}`})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = provider.Close() }()

	main := repo.Branch("main")
	if _, err := main.AppendUser(ctx, "Why is the sky blue?"); err != nil {
		log.Fatal(err)
	}
	target, err := providers.Open("deepseek", providers.Config{Model: "deepseek-chat"})
	if err != nil {
		log.Fatal(err)
	}
	x, err := main.Prepare(ctx, target, tract.PrepareOptions{})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := http.Post(provider.URL()+"/chat/completions", "application/json", bytes.NewReader(x.Body))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	reply, err := main.Accept(ctx, x, answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("thought:", reply.Reasoning)
	fmt.Println("said:", reply.Text)
	// Output:
	// thought: Short waves scatter more.
	// said: Because of Rayleigh scattering.
}

// A client sends its whole list of messages each time. Sync commits what is new, and forks
// where the client changed its past.
func ExampleBranch_Sync() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	user := func(text string) content.Message {
		return content.Message{Role: content.RoleUser, Blocks: []content.Block{content.User(text)}}
	}
	assistant := func(text string) content.Message {
		return content.Message{Role: content.RoleAssistant, Blocks: []content.Block{content.Assistant(text)}}
	}

	main := repo.Branch("main")
	for _, list := range [][]content.Message{
		{user("Hello")},
		{user("Hello"), assistant("Hi!"), user("Tell me a joke.")},
		{user("Hello"), assistant("Hi!"), user("Tell me a joke.")}, // the same again
		{user("Hello"), assistant("Hi!"), user("Tell me a story.")},
	} {
		r, err := main.Sync(ctx, list)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d known, %d added\n", r.Branch, r.Known, len(r.Commits))
	}
	// Output:
	// main: 0 known, 1 added
	// main: 1 known, 2 added
	// main: 3 known, 0 added
	// main/fork-2: 2 known, 1 added
}

// Names of other systems become names of branches.
func ExampleBranchName() {
	for _, name := range []string{"main", "thread 1", "user@host:7"} {
		branch := tract.BranchName(name)
		back, err := tract.ParseBranchName(branch)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is %q\n", branch, back)
	}
	// Output:
	// main is "main"
	// thread%201 is "thread 1"
	// user%40host%3A7 is "user@host:7"
}

// A server keeps the store of each tenant apart, and in it one branch for each thread. The
// names of tenants come from a table, never from a request.
func Example_tenants() {
	ctx := context.Background()
	stores := map[string]*tract.Repo{}
	for _, tenant := range []string{"acme", "globex"} {
		repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{Author: tenant}) // or a folder for each
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = repo.Close() }()
		stores[tenant] = repo
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{tenant}/{thread}", func(w http.ResponseWriter, r *http.Request) {
		repo := stores[r.PathValue("tenant")]
		if repo == nil {
			http.NotFound(w, r)
			return
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		client := &parrot{replies: [][]content.Block{{content.Assistant("You said " + string(text) + ".")}}}
		reply, err := repo.Branch(tract.BranchName(r.PathValue("thread"))).Ask(r.Context(), client, string(text), tract.AskOptions{})
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": reply.Text})
	})

	for _, path := range []string{"/acme/thread%201", "/globex/thread%201", "/nobody/1"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader("hello")))
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	for _, tenant := range []string{"acme", "globex"} {
		messages, err := stores[tenant].Branch(tract.BranchName("thread 1")).Messages(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tenant, "has", len(messages), "messages")
	}
	// Output:
	// 200 {"text":"You said hello."}
	// 200 {"text":"You said hello."}
	// 404 404 page not found
	// acme has 2 messages
	// globex has 2 messages
}
