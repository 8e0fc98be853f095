package fakeprovider

import (
	"fmt"
	"regexp"
	"strings"
)

// A step is one turn of the model.
type step struct {
	text   string
	calls  []action
	refuse int  // status of the first try; 0: none
	cut    bool // the stream of the first try breaks off
	slow   bool // the stream takes seconds
	tokens int  // input tokens that the response reports; 0: by the size of the request
}

// An action is a call of a tool, by the tool's kind.
type action struct {
	kind toolKind
	arg  string // the command, the path or the task
}

type toolKind string

const (
	runCommand toolKind = "run"
	readFile   toolKind = "read"
	askAgent   toolKind = "agent"
	waitAgent  toolKind = "wait"
)

// toolNames are the names that agents give their tools of a kind.
var toolNames = map[toolKind][]string{
	runCommand: {"Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command"},
	readFile:   {"Read", "read", "read_file"},
	askAgent:   {"Task", "Agent", "task", "spawn_agent", "generalist", "codebase_investigator"},
	waitAgent:  {"wait_agent", "wait"},
}

// scripts are the plans that a user text can name.
var scripts = map[string][]step{
	"hello": {{text: "Hello there."}},
	"list":  {{calls: []action{{runCommand, "ls"}}}, {text: "There are some files here."}},
	"count": {
		{text: "I look first.", calls: []action{{runCommand, "ls -a"}}},
		{calls: []action{{runCommand, "wc -l a.txt"}}},
		{text: "a.txt has three lines."},
	},
	"parallel": {{calls: []action{{runCommand, "echo one"}, {runCommand, "echo two"}}}, {text: "One and two."}},
	"agent":    {{calls: []action{{askAgent, "PLAN:list Look around in this folder."}}}, {text: "The helper has looked."}},
	"agents": {
		{calls: []action{{askAgent, "PLAN:count Count the lines."}, {askAgent, "PLAN:parallel Say one and two."}}},
		{text: "Both helpers are back."},
	},
	"spawn":     {{calls: []action{{askAgent, "PLAN:list Look around in this folder."}}}, {calls: []action{{waitAgent, ""}}}, {text: "The helper has looked."}},
	"read":      {{calls: []action{{readFile, "a.txt"}}}, {text: "It says alpha, beta, gamma."}},
	"limited":   {{text: "After a pause.", refuse: 429}},
	"overload":  {{text: "After an overload.", refuse: 529}},
	"cut":       {{text: "This was cut off once and is whole now, with many more words than one.", cut: true}},
	"slow":      {{text: strings.Repeat("slowly spoken words ", 40), slow: true}},
	"full":      {{calls: []action{{runCommand, "seq 1 30"}}, tokens: 400}, {text: "The window is nearly full now.", tokens: 260_000}},
	"many":      manyCalls(20),
	"nonsuch":   {{calls: []action{{runCommand, "cat nothing.txt"}}}, {text: "There is no such file."}},
	"summarize": {{text: "<summary>\nThe user had small tasks done in a folder with a.txt.\n</summary>"}},
}

func manyCalls(n int) []step {
	var steps []step
	for i := range n {
		steps = append(steps, step{calls: []action{{runCommand, fmt.Sprintf("echo step %d", i+1)}}})
	}
	return append(steps, step{text: "All steps are done."})
}

var planName = regexp.MustCompile(`PLAN:([a-z]+)`)

// turn returns the step that a request asks for, and a key that is the same for each try of it.
func (r *request) turn() (s step, key string) {
	last, name := -1, ""
	for i, m := range r.messages {
		if found := planName.FindAllStringSubmatch(m.text, -1); m.role == "user" && found != nil {
			last, name = i, found[len(found)-1][1]
		}
	}
	text := ""
	if n := len(r.messages); n > 0 {
		text = strings.ToLower(r.messages[n-1].text)
	}
	switch {
	case isSummaryRequest(text):
		return scripts["summarize"][0], "summarize"
	case r.schema:
		return step{text: `{"isNewTopic":true,"title":"Look at files","reasoning":"easy","model_choice":"flash","next_speaker":"user","complexity_reasoning":"easy","complexity_score":10}`}, "schema"
	case len(r.tools) == 0 && strings.Contains(strings.ToLower(r.system)+text, "title"):
		return step{text: "Look at files"}, "title"
	case last < 0:
		return step{text: fmt.Sprintf("No plan was named (%d tools).", len(r.tools))}, "none"
	}
	done := 0
	for _, m := range r.messages[last+1:] {
		if m.role == "assistant" {
			done++
		}
	}
	steps := scripts[name]
	if steps == nil {
		return step{text: "There is no plan " + name + "."}, "none"
	}
	return steps[min(done, len(steps)-1)], digest(name, r.messages[last].text, fmt.Sprint(last, done))
}

// isSummaryRequest reports whether a client asks for a summary to replace its history.
func isSummaryRequest(text string) bool {
	if !strings.Contains(text, "summar") {
		return false
	}
	for _, word := range []string{"conversation", "handoff", "context checkpoint", "snapshot"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// tool returns the client's tool of a kind; empty: it has none.
func (r *request) tool(kind toolKind) string {
	for _, name := range toolNames[kind] {
		if _, has := r.tools[name]; has {
			return name
		}
	}
	return ""
}

// arguments returns the arguments of a call: those of the known names that the tool's schema
// has.
func (p *Provider) arguments(r *request, tool string, a action) map[string]any {
	known := map[string]any{}
	switch a.kind {
	case runCommand:
		if tool == "shell" {
			return map[string]any{"command": []string{"bash", "-lc", a.arg}}
		}
		known = map[string]any{"command": a.arg, "cmd": a.arg, "description": "Runs " + a.arg}
	case readFile:
		path := p.path(a.arg)
		known = map[string]any{"file_path": path, "filePath": path, "path": path}
	case askAgent:
		agent := "general-purpose"
		if tool == "task" {
			agent = "general"
		}
		known = map[string]any{
			"description": "Look around", "prompt": a.arg, "message": a.arg, "task_name": "look_around", "objective": a.arg, "request": a.arg, "subagent_type": agent,
		}
	case waitAgent:
		known = map[string]any{"targets": []string{r.spawned}}
	}
	args := map[string]any{}
	for name, value := range known {
		if strings.Contains(r.tools[tool], `"`+name+`"`) {
			args[name] = value
		}
	}
	return args
}
