package inspect_test

import (
	"context"
	"fmt"
	"log"
	"regexp"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
)

// Why did the model call this tool, and where was the city said?
func Example() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{}) // or ".tract"
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	_, err = repo.Branch("main").Append(ctx, []content.Block{
		content.User("Do I need a coat in Oslo?"),
		content.Reasoning{Text: "That depends on the weather in Oslo."},
		content.ToolCall{CallID: "toolu_01A", Name: "weather", Arguments: `{"city":"Oslo"}`},
	}, tract.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	why, err := inspect.Why(ctx, repo, "toolu_01A")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("question:", why.Question.Block)
	fmt.Println("reasoning:", why.Reasoning[0].Block)
	for m, err := range inspect.Grep(ctx, repo, regexp.MustCompile("Oslo"), inspect.GrepOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Commit.Kind)
	}
	// Output:
	// question: Do I need a coat in Oslo?
	// reasoning: That depends on the weather in Oslo.
	// tool-call
	// reasoning
	// user
}
