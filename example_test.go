package tract_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/priority"
)

// parrot stands for a model in these examples: a client whose replies are
// written down. Package llm/providers has the real ones.
type parrot struct{ replies [][]content.Block }

func (p *parrot) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	blocks := p.replies[0]
	p.replies = p.replies[1:]
	return &llm.Response{Blocks: blocks, Head: llm.Head{Model: "parrot-1", Finish: "stop"}}, nil
}

func Example_chat() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{}) // or ".tract", with OpenOptions{Create: true}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()

	client := &parrot{replies: [][]content.Block{{
		content.Reasoning{Text: "Short waves scatter more.", Format: content.FormatParsed},
		content.Assistant("Because of Rayleigh scattering."),
	}}}

	main := repo.Branch("main")
	if _, err := main.Append(ctx, []content.Block{content.System("Be brief.")}, tract.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	reply, err := main.Ask(ctx, client, "Why is the sky blue?", tract.AskOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("thought:", reply.Reasoning)
	fmt.Println("said:", reply.Text)

	for c, err := range repo.Log(ctx, "main", tract.LogOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Kind)
	}
	// Output:
	// thought: Short waves scatter more.
	// said: Because of Rayleigh scattering.
	// assistant
	// reasoning
	// user
	// system
}

func Example_toolLoop() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()

	client := &parrot{replies: [][]content.Block{
		{content.Reasoning{Text: "I need the weather."}, content.ToolCall{CallID: "call_1", Name: "weather", Arguments: `{"city":"Oslo"}`}},
		{content.Assistant("It is 4 degrees in Oslo.")},
	}}
	tools := []llm.Tool{{Name: "weather", Description: "The weather of a city.", Schema: []byte(`{"type":"object"}`)}}

	main := repo.Branch("main")
	reply, err := main.Ask(ctx, client, "How cold is it in Oslo?", tract.AskOptions{Tools: tools})
	for err == nil && len(reply.ToolCalls) > 0 {
		var results []content.Block
		for _, call := range reply.ToolCalls {
			fmt.Println("run", call.Name, call.Arguments)
			results = append(results, content.ToolResult{CallID: call.CallID, Text: "4 degrees"})
		}
		if _, err = main.Append(ctx, results, tract.AppendOptions{}); err == nil {
			reply, err = main.Generate(ctx, client, tract.AskOptions{Tools: tools})
		}
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output:
	// run weather {"city":"Oslo"}
	// It is 4 degrees in Oslo.
}

func Example_timeTravel() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()

	main := repo.Branch("main")
	blocks := []content.Block{content.User("My name is Ada."), content.Assistant("Hello, Ada.")}
	if _, err := main.Append(ctx, blocks, tract.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	then, err := main.Tip(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := main.Annotate(ctx, "HEAD~1", priority.Skip, "private"); err != nil {
		log.Fatal(err)
	}

	for _, rev := range []string{then.String(), "main"} {
		p, err := repo.Compile(ctx, rev, tract.CompileOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(p.Messages), "messages; the first commit:", p.Entries[0].Why())
	}
	// Output:
	// 2 messages; the first commit: default
	// 1 messages; the first commit: annotated: private
}

// A client needs one method. This one can neither stream nor find thoughts in
// its text, so what it says is committed as it is.
func Example_customClient() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()

	client := &parrot{replies: [][]content.Block{{content.Assistant("<think>no tags here</think> Hi!")}}}
	reply, err := repo.Branch("main").Ask(ctx, client, "Hello", tract.AskOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q, %d thoughts\n", reply.Text, len(reply.ReasoningCommits))
	// Output: "<think>no tags here</think> Hi!", 0 thoughts
}
