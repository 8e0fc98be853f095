package sdktest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/llm/providers"
)

// recording is a row of the manifest of recorded responses.
type recording struct {
	File, API, Container string
	Stream               bool
}

// question asks one thing in a dialect. What the library makes of the answer, or
// which error, is what it saw.
func question(r recording) talk {
	return func(ctx context.Context, base string, httpClient *http.Client) (saw []string, err error) {
		defer func() {
			if err != nil {
				saw, err = append(saw, strings.ReplaceAll(err.Error(), base, "")), nil
			}
		}()
		switch r.API {
		case "messages":
			client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey(key), anthropicoption.WithHTTPClient(httpClient))
			params := anthropic.MessageNewParams{Model: "claude", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Q"))}}
			if !r.Stream {
				reply, err := client.Messages.New(ctx, params)
				if err != nil {
					return nil, err
				}
				return []string{reply.RawJSON()}, nil
			}
			stream := client.Messages.NewStreaming(ctx, params)
			for stream.Next() {
				saw = append(saw, stream.Current().RawJSON())
			}
			return saw, stream.Err()
		case "responses":
			client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(httpClient))
			params := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Q")}}
			if !r.Stream {
				reply, err := client.Responses.New(ctx, params)
				if err != nil {
					return nil, err
				}
				return []string{reply.RawJSON()}, nil
			}
			_, saw, err := drain(client.Responses.NewStreaming(ctx, params))
			return saw, err
		}
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(httpClient))
		params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Q")}}
		if !r.Stream {
			reply, err := client.Chat.Completions.New(ctx, params)
			if err != nil {
				return nil, err
			}
			return []string{reply.RawJSON()}, nil
		}
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		for stream.Next() {
			saw = append(saw, stream.Current().RawJSON())
		}
		return saw, stream.Err()
	}
}

// TestRecordings plays every recorded response that the libraries can ask for.
func TestRecordings(t *testing.T) {
	dir := os.Getenv("TRACT_SHARED")
	if dir == "" {
		t.Skip("TRACT_SHARED names no folder of recordings")
	}
	manifest, err := os.Open(filepath.Join(dir, "wire", "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	played := 0
	lines := bufio.NewScanner(manifest)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		api, _ := providers.FindDialect(r.API)
		if r.API = api; !slices.Contains([]string{"messages", "chat", "responses"}, api) || !slices.Contains([]string{"json", "sse"}, r.Container) {
			continue
		}
		played++
		t.Run(r.File, func(t *testing.T) { play(t, dir, r) })
	}
	if lines.Err() != nil || played < 100 {
		t.Errorf("%d were played, %v", played, lines.Err())
	}
	t.Logf("%d were played", played)
}

func play(t *testing.T, dir string, r recording) {
	t.Helper()
	body := read(t, filepath.Join(dir, "wire", r.File))
	said := llmtest.Exchange{Body: body, Header: map[string]string{"Content-Type": "application/json"}}
	if r.Container == "sse" {
		said = llmtest.Exchange{Chunks: strings.SplitAfter(body, "\n\n"), Header: map[string]string{"Content-Type": "text/event-stream"}}
	}
	want, bad := llm.Collect(providers.Decode(r.API, "", "", strings.NewReader(body), llm.FramingAuto), nil)
	repo := recorded(t, question(r), said)
	var have []content.Block
	for c, err := range repo.Log(t.Context(), "main", tract.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind != content.KindUser {
			have = append([]content.Block{c.Block}, have...)
		}
	}
	if bad != nil {
		rescues, err := repo.Rescues(t.Context())
		if err != nil || len(rescues) == 0 && len(have) == 0 {
			t.Errorf("a response that is broken (%v) left no trace, %v", bad, err)
		}
		return
	}
	var texts, recorded []string
	for _, b := range want.Blocks {
		if text, ok := b.(content.Text); !ok || strings.TrimSpace(text.Text) != "" || !text.Form().Seal.IsZero() || len(text.Form().Extra) > 0 {
			texts = append(texts, b.Kind().String()+" "+b.String()+b.Form().Seal.Data)
		}
	}
	for _, b := range have {
		recorded = append(recorded, b.Kind().String()+" "+b.String()+b.Form().Seal.Data)
	}
	if !slices.Equal(recorded, texts) && len(texts) > 0 {
		t.Errorf("have %q\nwant %q", recorded, texts)
	}
}
