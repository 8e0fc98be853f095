package recorder_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/recorder"
)

// Whatever library asks the models, it is given an http.Client, and that one is
// given a Transport.
func Example() {
	ctx := context.Background()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{}) // or ".tract", with OpenOptions{Create: true}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	transport := recorder.New(repo, recorder.Options{
		OnError: func(err *recorder.Error) { log.Print(err) },
	})
	client := &http.Client{Transport: transport}

	provider, err := llmtest.Serve(llmtest.Exchange{Body: `{"model":"deepseek-chat","choices":[{"finish_reason":"stop","message":
		{"role":"assistant","reasoning_content":"Short waves scatter more.","content":"Because of Rayleigh scattering."}}]}`})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = provider.Close() }()
	ask(recorder.On(ctx, "main"), client, provider.URL()) // what the library does
	if err := transport.Wait(ctx); err != nil {           // before the program ends
		log.Fatal(err)
	}

	for c, err := range repo.Log(ctx, "main", tract.LogOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Kind, c.Block)
	}
	// Output:
	// assistant Because of Rayleigh scattering.
	// reasoning Short waves scatter more.
	// user Why is the sky blue?
}

func ask(ctx context.Context, client *http.Client, base string) {
	body := strings.NewReader(`{"model":"deepseek-chat","messages":[{"role":"user","content":"Why is the sky blue?"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", body)
	if err != nil {
		log.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		log.Fatal(err)
	}
}
