package sdktest

import (
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
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/recorder"
)

const key = "sk-proj-not-a-real-key-but-secret-0123456789"

// talk is a conversation that a program has by means of a library. It returns what
// the library gave it, as JSON.
type talk func(ctx context.Context, base string, client *http.Client) ([]string, error)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exchange is a recording as a server says it: a stream event by event.
func exchange(t *testing.T, name string) llmtest.Exchange {
	t.Helper()
	body := read(t, name)
	if filepath.Ext(name) != ".sse" {
		return llmtest.Exchange{Body: body, Header: map[string]string{"Content-Type": "application/json", "X-Request-Id": "req-of-" + filepath.Base(name)}}
	}
	return llmtest.Exchange{Chunks: strings.SplitAfter(body, "\n\n"), Header: map[string]string{"Content-Type": "text/event-stream"}}
}

// recorded has a conversation twice, once through a transport, and checks that the
// library saw the same. It returns the repo, closed to more.
func recorded(t *testing.T, have talk, script ...llmtest.Exchange) *tract.Repo {
	t.Helper()
	repo, err := tract.Open(t.Context(), "mem:", tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := recorder.New(repo, recorder.Options{
		OnError: func(err *recorder.Error) { t.Errorf("%v", err) },
	})
	var saw [2][]string
	for i, client := range []*http.Client{{}, {Transport: transport}} {
		server, err := llmtest.Serve(script...)
		if err != nil {
			t.Fatal(err)
		}
		if saw[i], err = have(recorder.On(t.Context(), "main"), server.URL(), client); err != nil {
			t.Errorf("talk %d: %v", i, err)
		}
		if err := server.Err(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
	if !slices.Equal(saw[0], saw[1]) {
		t.Errorf("through the transport the library saw something else:\n%q\n%q", saw[0], saw[1])
	}
	if err := transport.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	return repo
}

// story is the history of a branch, oldest first, in words.
func story(t *testing.T, repo *tract.Repo, branch string) (lines []string) {
	t.Helper()
	for c, err := range repo.Log(t.Context(), branch, tract.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append([]string{c.Kind.String() + " " + strings.TrimSpace(c.Block.String())}, lines...)
	}
	return lines
}

func wantStory(t *testing.T, repo *tract.Repo, want ...string) {
	t.Helper()
	if have := story(t, repo, "main"); !slices.Equal(have, want) {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnthropic(t *testing.T) {
	repo := recorded(t, func(ctx context.Context, base string, httpClient *http.Client) (saw []string, err error) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey(key), anthropicoption.WithHTTPClient(httpClient))
		params := anthropic.MessageNewParams{
			Model: "claude-sonnet-4-20250514", MaxTokens: 4000, Thinking: anthropic.ThinkingConfigParamOfEnabled(2000),
			System:   []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("How cold is it in Oslo?"))},
			Tools:    []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}}, "weather")},
		}
		var answer anthropic.Message
		stream := client.Messages.NewStreaming(ctx, params)
		for stream.Next() {
			event := stream.Current()
			saw = append(saw, event.RawJSON())
			if err := answer.Accumulate(event); err != nil {
				return saw, err
			}
		}
		if err := stream.Err(); err != nil {
			return saw, err
		}
		params.Messages = append(params.Messages, answer.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock("toolu_01", "4 degrees", false)))
		last, err := client.Messages.New(ctx, params)
		if err != nil {
			return saw, err
		}
		return append(saw, last.RawJSON()), nil
	}, exchange(t, "testdata/messages-1.sse"), exchange(t, "testdata/messages-2.json"))
	wantStory(t, repo,
		"system Be brief.", "user How cold is it in Oslo?", "reasoning The user wants the weather in Oslo. I have a tool.", "assistant I will look.",
		`tool-call {"days": 1.0, "city": "Oslo"}`, `tool-result [{"text":"4 degrees","type":"text"}]`, "reasoning Four degrees: cold.", "assistant It is 4 degrees in Oslo.")
	last, err := repo.Show(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if o := last.Origin; o.Importer != "record" || o.ResponseID != "msg_02" || o.Original["request_id"] != "req-of-messages-2.json" || o.Usage.Output != 40 || o.Manifest.IsZero() || o.Settings["reasoning.max_tokens"] != "2000" {
		t.Errorf("origin %+v", o)
	}
}

func TestOpenAIChat(t *testing.T) {
	repo := recorded(t, func(ctx context.Context, base string, httpClient *http.Client) (saw []string, err error) {
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(httpClient), option.WithMaxRetries(2))
		params := openai.ChatCompletionNewParams{
			Model:    "gpt-5",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("How cold is it in Oslo?")},
			Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather"})},
		}
		var answer openai.ChatCompletionAccumulator
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		for stream.Next() {
			saw = append(saw, stream.Current().RawJSON())
			answer.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			return saw, err
		}
		params.Messages = append(params.Messages, answer.Choices[0].Message.ToParam(), openai.ToolMessage("4 degrees", "call_1"))
		last, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return saw, err
		}
		return append(saw, last.RawJSON()), nil
	}, refusal(), exchange(t, "testdata/chat-1.sse"), exchange(t, "testdata/chat-2.json"))
	wantStory(t, repo, "system Be brief.", "user How cold is it in Oslo?",
		"note the request was answered 429 Too Many Requests\n"+`{"error":{"message":"slow down, [secret]","type":"rate_limit"}}`,
		`tool-call {"city":"Oslo"}`, "tool-result 4 degrees", "assistant It is 4 degrees in Oslo.")
}

// refusal is one that the library answers by asking again.
func refusal() llmtest.Exchange {
	return llmtest.Exchange{
		Status: 429, Body: `{"error":{"message":"slow down, ` + key + `","type":"rate_limit"}}`,
		Header: map[string]string{"Content-Type": "application/json", "Retry-After-Ms": "1"},
	}
}

// item is a part of an input as JSON.
func item(json json.RawMessage) responses.ResponseInputItemUnionParam {
	return param.Override[responses.ResponseInputItemUnionParam](json)
}

// ask has the two requests of a tool call. stateful: the second names the first
// answer, else it repeats it.
func ask(ctx context.Context, base string, httpClient *http.Client, stateful bool) (saw []string, err error) {
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(httpClient))
	question := responses.ResponseInputItemParamOfMessage("How cold is it in Oslo?", responses.EasyInputMessageRoleUser)
	params := responses.ResponseNewParams{
		Model: "gpt-5", Store: openai.Bool(stateful),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: []responses.ResponseInputItemUnionParam{question}},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", map[string]any{"type": "object"}, false)},
	}
	stream := client.Responses.NewStreaming(ctx, params)
	answer, saw, err := drain(stream)
	if err != nil {
		return saw, err
	}
	if stateful {
		params.Input.OfInputItemList = nil
		params.PreviousResponseID = openai.String(answer.ID)
	} else {
		for _, out := range answer.Output {
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, item(json.RawMessage(out.RawJSON())))
		}
	}
	params.Input.OfInputItemList = append(params.Input.OfInputItemList, item(json.RawMessage(`{"type":"function_call_output","call_id":"call_1","output":"4 degrees"}`)))
	last, err := client.Responses.New(ctx, params)
	if err != nil {
		return saw, err
	}
	return append(saw, last.RawJSON()), nil
}

func drain(stream *ssestream.Stream[responses.ResponseStreamEventUnion]) (answer responses.Response, saw []string, err error) {
	for stream.Next() {
		event := stream.Current()
		saw = append(saw, event.RawJSON())
		if event.Type == "response.completed" {
			answer = event.Response
		}
	}
	return answer, saw, stream.Err()
}

func TestOpenAIResponses(t *testing.T) {
	for name, stateful := range map[string]bool{"repeating": false, "by its id": true} {
		t.Run(name, func(t *testing.T) {
			repo := recorded(t, func(ctx context.Context, base string, client *http.Client) ([]string, error) {
				return ask(ctx, base, client, stateful)
			}, exchange(t, "testdata/responses-1.sse"), exchange(t, "testdata/responses-2.json"))
			wantStory(t, repo, "user How cold is it in Oslo?", "reasoning **Looking** at Oslo", `tool-call {"city":"Oslo"}`, "tool-result 4 degrees", "assistant It is 4 degrees in Oslo.")
		})
	}
}
