package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tract-vcs/tract/llm/llmtest"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	read chan []byte
	said bytes.Buffer
}

// onTerminal starts a program on a terminal of 60 columns that has a dark
// background and says so.
func onTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there is no terminal to be had here: %v", err)
	}
	var number, unlock uint32
	ioctl := func(request uintptr, argument unsafe.Pointer) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, pty.Fd(), request, uintptr(argument)); errno != 0 {
			t.Fatal(errno)
		}
	}
	ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	ioctl(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{40, 60}
	ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &terminal{t: t, pty: pty, cmd: exec.CommandContext(t.Context(), "tract", args...), read: make(chan []byte)}
	c.cmd.Dir, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = dir, tty, tty, tty
	c.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "HOME="+dir, "PAGER=cat", "NO_COLOR=", "COLORFGBG=")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	t.Cleanup(func() { _ = pty.Close() })
	go c.listen()
	return c
}

// listen reads what is shown, and answers what a terminal is asked.
func (c *terminal) listen() {
	defer close(c.read)
	for buf := make([]byte, 4096); ; {
		n, err := c.pty.Read(buf)
		if bytes.Contains(buf[:n], []byte("\x1b]11;?")) {
			_, _ = c.pty.WriteString("\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\\x1b[?62c")
		}
		if n > 0 {
			c.read <- bytes.Clone(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// until waits for words to be shown and gives all that was shown since the last
// time.
func (c *terminal) until(words string) string {
	c.t.Helper()
	late := time.After(patience)
	for {
		if i := strings.Index(c.said.String(), words); i >= 0 {
			shown := string(c.said.Next(i + len(words)))
			return shown
		}
		select {
		case b, open := <-c.read:
			if !open {
				c.t.Fatalf("%q was never shown; it ends with %q", words, c.said.String())
			}
			c.said.Write(b)
		case <-late:
			c.t.Fatalf("%q was not shown in time; there is %q", words, c.said.String())
		}
	}
}

func (c *terminal) keys(typed string) {
	c.t.Helper()
	if _, err := c.pty.WriteString(typed); err != nil {
		c.t.Fatal(err)
	}
}

// ended waits for the program and gives what it showed last.
func (c *terminal) ended() string {
	c.t.Helper()
	for b := range c.read {
		c.said.Write(b)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("%v: %q", err, c.said.String())
	}
	return c.said.String()
}

// chatAnswer is an answer with a thought, as an OpenAI-compatible server streams
// it.
func chatAnswer(thought, text string) []string {
	chunk := func(delta string) string {
		return fmt.Sprintf("data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	return []string{
		chunk(`{"reasoning_content":"` + thought + `"}`), chunk(`{"content":"` + text + `"}`),
		"data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	}
}

// TestSession talks on a terminal: lines, several lines, a long paste, a
// stopped answer, commands.
func TestSession(t *testing.T) {
	t.Parallel()
	server := llmtest.Start(t,
		llmtest.Exchange{Chunks: chatAnswer("hm", "First answer.")},
		llmtest.Exchange{Chunks: append(chatAnswer("hm", "Half of the second"), "never"), Pace: 400 * time.Millisecond},
		llmtest.Exchange{Chunks: chatAnswer("hm", "Third answer.")},
	)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tract", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1")
	c.until("main> ")
	c.keys("one\x1b\rtwo\r") // Alt-Enter begins a new line
	shown := c.until("First answer.")
	if !strings.Contains(shown, "\x1b[48;5;236;2m[reasoning] ") || !strings.Contains(shown, "\x1b[48;5;236;2;3mhm") {
		t.Errorf("the thought is not shown dim, italic and on a shade: %q", shown)
	}
	if shown := c.until("main> "); !strings.Contains(shown, "9 tokens in context, 11 of reasoning hidden") {
		t.Errorf("the size of the context is not shown: %q", shown)
	}
	c.keys("/thinking effort high\r")
	c.until("reasoning.effort is high")
	c.until("main> ")
	long := strings.Repeat("x", 5000)
	c.keys("\x1b[200~" + long + "\ny\x1b[201~ please\r")
	c.until("Half of the second")
	c.keys("\x03") // stops the answer
	c.until("kept under refs/rescued/main/")
	c.until("main> ")
	c.keys("/log\r")
	if shown := c.until("main> "); !strings.Contains(shown, "First answer.") {
		t.Errorf("/log shows %q", shown)
	}
	c.keys("/profile save deep\r")
	c.until("profile deep has")
	c.until("main> ")
	c.keys("/thinking effort low\r")
	c.until("reasoning.effort is low")
	c.keys("/profile load deep\r")
	c.until("reasoning.effort is high")
	c.until("main> ")
	c.keys("/nope\r")
	c.until("unknown command /nope")
	c.until("main> ")
	c.keys("go on\r")
	c.until("Third answer.")
	c.until("main> ")
	c.keys("\x04")
	c.ended()

	asked := server.Requests()
	for i, want := range []string{`"content":"one\ntwo"`, `"content":"` + long + `\ny please"`, `"reasoning_effort":"high"`} {
		if !bytes.Contains(asked[i].Body, []byte(want)) {
			t.Errorf("request %d has no %.40s: %.200s", i+1, want, asked[i].Body)
		}
	}
}

// TestThinkingOffInASession: /thinking off asks for no reasoning, whatever effort is set,
// and /thinking on for what was set before.
func TestThinkingOffInASession(t *testing.T) {
	t.Parallel()
	server := llmtest.Start(t, llmtest.Exchange{Chunks: chatAnswer("hm", "First answer.")}, llmtest.Exchange{Chunks: chatAnswer("hm", "Second answer.")})
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tract", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--effort", "high")
	for _, step := range [][2]string{
		{"", "main> "},
		{"/thinking off\r", "reasoning.enabled is false"},
		{"", "main> "},
		{"one\r", "First answer."},
		{"", "main> "},
		{"/thinking on\r", "reasoning.enabled is true"},
		{"", "main> "},
		{"two\r", "Second answer."},
		{"", "main> "},
	} {
		c.keys(step[0])
		c.until(step[1])
	}
	c.keys("\x04")
	c.ended()
	for i, want := range []string{`"reasoning_effort":"none"`, `"reasoning_effort":"high"`} {
		if body := server.Requests()[i].Body; !bytes.Contains(body, []byte(want)) {
			t.Errorf("request %d has no %s: %s", i+1, want, body)
		}
	}
}

// TestSessionSettings: in a session a setting is shown without a value, and a word that
// is not known changes nothing.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	tools := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(tools, []byte(`[{"name":"weather","input_schema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--tools", tools)
	c.until("main> ")
	for _, step := range []struct{ typed, shown string }{
		{"/thinking effort", "reasoning.effort is not set (default)"},
		{"/thinking clear", "reasoning.include_in_context is false (default)"},
		{"/thinking clear ture", `/thinking clear "ture": want true or false`},
		{"/thinking clear", "reasoning.strip_from_context is none (default)"},
		{"/thinking clear yes please", `/thinking clear "yes please": want true or false`},
		{"/thinking effort hihg", "want none, minimal,"},
		{"/thinking effort", "reasoning.effort is not set (default)"},
		{"/thinking of", "unknown command: /thinking of"},
		{"/thinking on high", "unknown command: /thinking on high"},
		{"/thinking", "reasoning.enabled is true (default)"},
		{"/thinking clear true", "reasoning.strip_from_context is all"},
		{"/thinking clear", "reasoning.strip_from_context is all (/set)"},
		{"/thinking clear", "reasoning.include_in_context is false (default)"},
		{"/thinking clear off", "reasoning.include_in_context is true"},
		{"/thinking clear", "reasoning.strip_from_context is none (/set)"},
		{"/thinking effort  high", "reasoning.effort is high"},
		{"/thinking off", "reasoning.enabled is false"},
		{"/thinking", "reasoning.enabled is false (/set)"},
		{"/set provider antropic", "did you mean anthropic?"},
		{"/set provider", "provider is chat (--provider)"},
		{"/set provider openai-compatible", "provider is openai-compatible"},
		{"/retry other", "has no commits yet"},
		{"/set model", "model is m (--model)"},
		{"/set reasoning.commit false", "reasoning.commit is false"},
		{"Is it warm?", "reasoning.commit is false (flag /set) with tools"},
		{"/log", "has no commits yet"},
	} {
		c.keys(step.typed + "\r")
		if shown := c.until("main> "); !strings.Contains(shown, step.shown) {
			t.Errorf("%s shows %q, want %q", step.typed, shown, step.shown)
		}
	}
	c.keys("\x04")
	c.ended()
}

// TestSessionKeepsAttachments checks that attachments go with the next message that is committed:
// they stay when the message is refused before, and are sent once.
func TestSessionKeepsAttachments(t *testing.T) {
	t.Parallel()
	answer := llmtest.Exchange{Body: `{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Yes."}}]}`}
	server := llmtest.Start(t, answer, answer)
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	for name, text := range map[string]string{"tools.json": `[{"name":"weather","input_schema":{"type":"object"}}]`, "a.png": "\x89PNG\r\n\x1a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--no-stream", "--tools", filepath.Join(dir, "tools.json"))
	c.until("main> ")
	for _, step := range []struct{ typed, shown string }{
		{"/attach a.png", "is attached to the next message"},
		{"/set reasoning.commit false", "reasoning.commit is false"},
		{"Is it warm?", "reasoning.commit is false (flag /set) with tools"},
		{"/set reasoning.commit true", "reasoning.commit is true"},
		{"Is it warm?", "Yes."},
		{"Is it cold?", "Yes."},
	} {
		c.keys(step.typed + "\r")
		if shown := c.until("main> "); !strings.Contains(shown, step.shown) {
			t.Errorf("%s shows %q, want %q", step.typed, shown, step.shown)
		}
	}
	c.keys("\x04")
	c.ended()
	for i, r := range server.Requests() {
		if n := bytes.Count(r.Body, []byte("image/png")); n != 1 {
			t.Errorf("request %d has the picture %d times: %s", i+1, n, r.Body)
		}
	}
}

// TestSessionAnswersACall: a call of the model is answered in the session, and the model
// goes on when no call waits any more.
func TestSessionAnswersACall(t *testing.T) {
	t.Parallel()
	calls := `{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"clock","arguments":"{}"}}]}}]}`
	server := llmtest.Start(t,
		llmtest.Exchange{Body: calls},
		llmtest.Exchange{Body: `{"id":"2","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Go out at noon."}}]}`},
		llmtest.Exchange{Body: strings.ReplaceAll(calls, "call_", "again_")},
		llmtest.Exchange{Body: `{"id":"3","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"As you like."}}]}`},
	)
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	if err := os.WriteFile(filepath.Join(dir, "noon.txt"), []byte("12:00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() *terminal {
		return onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--no-stream")
	}
	c := start()
	c.until("main> ")
	c.keys("When?\r")
	c.until("weather is waiting for its result: /result call_1 TEXT")
	c.until("clock is waiting for its result: /result call_2 TEXT")
	c.until("main> ")
	c.keys("/quit\r")
	c.ended()

	c = start() // it says what waits
	c.until("weather is waiting for its result: /result call_1 TEXT")
	c.until("main> ")
	for _, step := range []struct{ typed, shown string }{
		{"/result", "clock is waiting for its result: /result call_2 TEXT"},
		{"/result call_9 sunny", "pending: call_1, call_2"},
		{"/result call_1 --abandon now", "unknown command: /result call_1 --abandon now"},
		{"/result call_1  sunny, 20 degrees", "clock is waiting for its result: /result call_2 TEXT"},
		{"/result call_2 -F nothing.txt", "no such file"},
		{"/result call_2 -F noon.txt", "Go out at noon."},
		{"/result", "no tool call is pending"},
		{"And then?", "weather is waiting for its result: /result again_1 TEXT"},
	} {
		c.keys(step.typed + "\r")
		if shown := c.until("main> "); !strings.Contains(shown, step.shown) {
			t.Errorf("%s shows %q, want %q", step.typed, shown, step.shown)
		}
	}
	c.keys("Leave it.\r")
	shown := c.until("As you like.")
	for _, want := range []string{"warning: the tool call again_1 has no result", "then /result again_1 TEXT (or --abandon)", "the tool call again_2 has no result"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it shows %q, want %q", shown, want)
		}
	}
	c.until("main> ")
	c.keys("\x04")
	c.ended()
	if body := server.Requests()[1].Body; !bytes.Contains(body, []byte(" sunny, 20 degrees")) || !bytes.Contains(body, []byte(`12:00\n`)) {
		t.Errorf("the results are not sent: %s", body)
	}
}

// TestSessionUndoesATurn: a question, the calls of the model, their results and the answer
// are undone together, whatever was looked at in between, and no other turn with them.
func TestSessionUndoesATurn(t *testing.T) {
	t.Parallel()
	answer := func(text string) llmtest.Exchange {
		return llmtest.Exchange{Body: `{"id":"` + text + `","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"` + text + `"}}]}`}
	}
	server := llmtest.Start(t, answer("Hello yourself."),
		llmtest.Exchange{Body: `{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[` +
			`{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"clock","arguments":"{}"}}]}}]}`},
		answer("Go out at noon."), answer("Good night."))
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--no-stream")
	c.until("main> ")
	for _, step := range []struct{ typed, shown string }{
		{"Hello.", "Hello yourself."},
		{"When?", "clock is waiting for its result: /result call_2 TEXT"},
		{"/result call_1 sunny", "clock is waiting for its result: /result call_2 TEXT"},
		{"/log", "sunny"},
		{"/result call_2 12:00", "Go out at noon."},
		{"/undo", `Undid "chat" of`},
		{"/undo", `Undid "chat" of`},
		{"/undo", "there is nothing left to undo on branch main"},
		{"Bye.", "Good night."},
	} {
		c.keys(step.typed + "\r")
		if shown := c.until("main> "); !strings.Contains(shown, step.shown) {
			t.Errorf("%s shows %q, want %q", step.typed, shown, step.shown)
		}
	}
	c.keys("/quit\r")
	c.ended()
	log, _ := command(t, codeOK, "--dir", dir, "log", "--oneline")
	if lines := strings.Count(log, "\n"); lines != 2 || !strings.Contains(log, "Bye.") {
		t.Errorf("the log is %s", log)
	}
}

// TestSessionAcceptsIDFromHint: a call whose id has a space can be answered as the hint
// writes it.
func TestSessionAcceptsIDFromHint(t *testing.T) {
	t.Parallel()
	server := llmtest.Start(t, llmtest.Exchange{Body: `{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Take a coat."}}]}`})
	dir := t.TempDir()
	for _, args := range [][]string{{"init", dir}, {"--dir", dir, "user", "Is it cold?"}, {"--dir", dir, "tool-call", "my call", "weather"}} {
		command(t, codeOK, args...)
	}
	c := onTerminal(t, dir, "chat", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--no-stream")
	c.until("weather is waiting for its result: /result 'my call' TEXT")
	c.until("main> ")
	c.keys("/result 'my call' 2 degrees\r")
	c.until("Take a coat.")
	c.until("main> ")
	c.keys("\x04")
	c.ended()
	if body := server.Requests()[0].Body; !bytes.Contains(body, []byte(`"2 degrees"`)) {
		t.Errorf("the result is not sent: %s", body)
	}
}

// TestNarrowTerminal: nothing is wider than the terminal, and no colour is left
// on at the end of a line.
func TestNarrowTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", dir},
		{"user", strings.Repeat("a question ", 20)},
		{"reasoning", "add", strings.Repeat("a thought ", 20)},
		{"assistant", strings.Repeat("an answer ", 20)},
	} {
		cmd := exec.CommandContext(t.Context(), "tract", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	question := regexp.MustCompile(`\x1b\]11;\?\x1b\\\x1b\[c`)
	color := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	off := regexp.MustCompile(`^\x1b\[(0|0;.*|2[0-9](;2[0-9])*)?m`)
	for _, args := range [][]string{{"log", "--oneline"}, {"compile", "--explain"}, {"branch"}} {
		shown := question.ReplaceAllString(onTerminal(t, dir, args...).ended(), "")
		if !color.MatchString(shown) {
			t.Errorf("%v: there is no colour", args)
		}
		for line := range strings.SplitSeq(shown, "\r\n") {
			if at := strings.LastIndex(line, "\x1b["); at >= 0 && !off.MatchString(line[at:]) {
				t.Errorf("%v: a colour is left on: %q", args, line)
			}
			if plain := color.ReplaceAllString(line, ""); len([]rune(plain)) > 60 {
				t.Errorf("%v: %d columns: %q", args, len([]rune(plain)), plain)
			}
		}
	}
}
