package tract_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// A program that starts again asks the branch which tool calls wait for a result, runs
// these and asks the model.
func Example_resume() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "tract")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	client := &parrot{replies: [][]content.Block{
		{content.ToolCall{CallID: "call_1", Name: "weather", Arguments: `{"city":"Oslo"}`}},
		{content.Assistant("It is 4 degrees in Oslo.")},
	}}
	tools := []llm.Tool{{Name: "weather", Schema: []byte(`{"type":"object"}`)}}

	// The first process ends before it runs the tool.
	repo, err := tract.Open(ctx, folder+"/store", tract.OpenOptions{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := repo.Branch("main").Ask(ctx, client, "How cold is it in Oslo?", tract.AskOptions{Tools: tools}); err != nil {
		log.Fatal(err)
	}
	if err := repo.Close(); err != nil {
		log.Fatal(err)
	}

	// The second process finds everything that was committed.
	repo, err = tract.Open(ctx, folder+"/store", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	main := repo.Branch("main")
	pending, err := main.Pending(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range pending {
		fmt.Println("run", call.Name, call.Arguments)
		// With a key, the result is committed once, however often the program starts again.
		result := []content.Block{content.ToolResult{CallID: call.CallID, Text: "4 degrees"}}
		if _, err := main.Append(ctx, result, tract.AppendOptions{Key: "result/" + call.CallID}); err != nil {
			log.Fatal(err)
		}
	}
	reply, err := main.Generate(ctx, client, tract.AskOptions{Tools: tools})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output:
	// run weather {"city":"Oslo"}
	// It is 4 degrees in Oslo.
}

// A sub-agent works on a branch of its own. Its answer is the result of the call that
// started it, and its history stays beside that of the parent.
func Example_subAgent() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	client := &parrot{replies: [][]content.Block{
		{content.ToolCall{CallID: "call_1", Name: "research", Arguments: `{"topic":"tides"}`}},
		{content.Reasoning{Text: "The moon matters most."}, content.Assistant("The moon pulls the sea.")},
		{content.Assistant("Tides come from the moon.")},
	}}
	tools := []llm.Tool{{Name: "research", Schema: []byte(`{"type":"object"}`)}}

	main := repo.Branch("main")
	reply, err := main.Ask(ctx, client, "Why are there tides?", tract.AskOptions{Tools: tools})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range reply.ToolCalls {
		agent := repo.Branch("main/" + tract.BranchName(call.CallID))
		task := []content.Block{content.User(call.Arguments)}
		if _, err := agent.Append(ctx, task, tract.AppendOptions{Meta: map[string]string{"parent_call": call.CallID}}); err != nil {
			log.Fatal(err)
		}
		found, err := agent.Generate(ctx, client, tract.AskOptions{})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := main.Append(ctx, []content.Block{content.ToolResult{CallID: call.CallID, Text: found.Text}}, tract.AppendOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	if reply, err = main.Generate(ctx, client, tract.AskOptions{Tools: tools}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)

	for _, branch := range []string{"main", "main/call_1"} {
		messages, err := repo.Branch(branch).Messages(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(branch, "has", len(messages), "messages")
	}
	// Output:
	// Tides come from the moon.
	// main has 4 messages
	// main/call_1 has 2 messages
}

// A long conversation gets a summary in place of its old turns as soon as the prompt is
// too long. Nothing is lost: Messages still has every block.
func Example_compaction() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	const most = 40 // tokens

	main := repo.Branch("main")
	for _, city := range []string{"Oslo", "Rome", "Lima", "Kiev"} {
		client := &parrot{replies: [][]content.Block{{content.Assistant("I have written down that you went to " + city + ".")}}}
		if _, err := main.Ask(ctx, client, "Last year I went to "+city+".", tract.AskOptions{}); err != nil {
			log.Fatal(err)
		}
		prompt, err := repo.Compile(ctx, "main", tract.CompileOptions{})
		if err != nil {
			log.Fatal(err)
		}
		if prompt.Tokens.Effective <= most {
			continue
		}
		writer := &parrot{replies: [][]content.Block{{content.Assistant("The user travels a lot.")}}}
		if _, err := main.Compress(ctx, "", tract.CompressOptions{Client: writer, Covers: commit.ScopeAll}); err != nil {
			log.Fatal(err)
		}
		fmt.Println("summary after", city)
	}

	prompt, err := repo.Compile(ctx, "main", tract.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := main.Messages(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the prompt begins:", prompt.Messages[0].Blocks[0])
	fmt.Println(len(prompt.Messages), "messages of", len(messages))
	// Output:
	// summary after Lima
	// summary after Kiev
	// the prompt begins: The user travels a lot.
	// 3 messages of 8
}
