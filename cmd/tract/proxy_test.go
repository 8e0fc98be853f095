package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tract-vcs/tract/internal/fakeprovider"
)

// provide starts a model provider that answers by scripts, and sets PROVIDER to its base URL.
func provide(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: provide")
	}
	server := httptest.NewServer(fakeprovider.New(fakeprovider.Options{Dir: ts.Getenv("WORK")}))
	ts.Defer(server.Close)
	ts.Setenv("PROVIDER", server.URL)
}

// agent is a coding agent for the scripts: agent SESSION EXIT-CODE PLAN... asks a model for each
// plan in one conversation, runs the tools that it calls, and prints the text of the answers.
// It finds the provider as Claude Code does.
func agent() {
	if err := runAgent(os.Getenv("ANTHROPIC_BASE_URL"), os.Args[1], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	code, _ := strconv.Atoi(os.Args[2]) // 0 when it is no number
	os.Exit(code)
}

func runAgent(base, session string, plans []string) error {
	type object = map[string]any
	var messages []object
	for _, plan := range plans {
		messages = append(messages, object{"role": "user", "content": "PLAN:" + plan})
		for {
			body, err := json.Marshal(object{
				"model": "claude-x", "max_tokens": 1000, "thinking": object{"type": "enabled", "budget_tokens": 2000}, "messages": messages,
				"tools": []object{{"name": "Bash", "input_schema": object{"type": "object", "properties": object{"command": object{"type": "string"}}}}},
			})
			if err != nil {
				return err
			}
			content, err := ask(base+"/v1/messages", session, body)
			if err != nil {
				return err
			}
			messages = append(messages, object{"role": "assistant", "content": content})
			var results []object
			for _, block := range content {
				switch block["type"] {
				case "text":
					fmt.Println(block["text"])
				case "tool_use":
					results = append(results, object{"type": "tool_result", "tool_use_id": block["id"], "content": "a.txt"})
				}
			}
			if results == nil {
				break
			}
			messages = append(messages, object{"role": "user", "content": results})
		}
	}
	return nil
}

// ask sends one request, and returns the blocks of the answer.
func ask(url, session string, body []byte) ([]map[string]any, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "claude-cli/2.1.197")
	req.Header.Set("X-Claude-Code-Session-Id", session)
	req.Header.Set("X-Api-Key", "sk-ant-api03-"+session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	var message struct{ Content []map[string]any }
	return message.Content, json.Unmarshal(answer, &message)
}
