package recorder

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/secrets"
)

// claim is what a request says about its conversation.
type claim struct {
	client  string // program that asks, such as claude-code
	session string // its id of the session; empty: the request names none
	agent   string // id of a sub-agent within the session; empty: the main conversation
	parent  string // id of the session or the agent that started the agent; empty: the main conversation
	side    string // kind of a call beside the conversation: title, routing, ...; empty: the conversation
	compact bool   // the request asks for a summary that is to replace the conversation
}

// client is how one program says which conversation a request is of.
type client struct {
	name  string
	agent string // beginning of the User-Agent
	read  func(c *claim, h http.Header, body rawjson.Value)
}

// clients lists the programs that are known. The order counts: the first whose
// User-Agent fits is taken.
var clients = []client{
	{"claude-code", "claude-cli/", readClaudeCode},
	{"codex", "codex", readCodex},
	{"opencode", "opencode/", readOpencode},
	{"gemini-cli", "GeminiCLI", func(*claim, http.Header, rawjson.Value) {}},
	{"", "", readOther},
}

// claimOf reads the claim of a request. X-Tract-Session counts before everything else.
func claimOf(h http.Header, body rawjson.Value) claim {
	var c claim
	agent := h.Get("User-Agent")
	for _, known := range clients {
		if strings.HasPrefix(agent, known.agent) {
			c.client = cmp.Or(known.name, nameOf(agent))
			known.read(&c, h, body)
			break
		}
	}
	if session := h.Get("X-Tract-Session"); session != "" {
		c.session, c.agent, c.parent = session, h.Get("X-Tract-Agent"), ""
	}
	c.side = cmp.Or(c.side, sideOf(body, c.client))
	return c
}

func readClaudeCode(c *claim, h http.Header, body rawjson.Value) {
	c.session = cmp.Or(h.Get("X-Claude-Code-Session-Id"), userSession(body))
	c.agent, c.parent = h.Get("X-Claude-Code-Agent-Id"), h.Get("X-Claude-Code-Parent-Agent-Id")
}

// userSession returns the session id of metadata.user_id, which is JSON text with
// device_id, account_uuid and session_id.
func userSession(body rawjson.Value) string {
	user, err := rawjson.Parse([]byte(body.Get("metadata").Get("user_id").Text()))
	if err != nil {
		return ""
	}
	return user.Get("session_id").Text()
}

// readCodex reads the headers of Codex. A thread that differs from the session is that of
// a sub-agent.
func readCodex(c *claim, h http.Header, body rawjson.Value) {
	meta := body.Get("client_metadata")
	c.session = cmp.Or(h.Get("Session-Id"), meta.Get("session_id").Text(), body.Get("prompt_cache_key").Text())
	if thread := cmp.Or(h.Get("Thread-Id"), meta.Get("thread_id").Text()); thread != c.session {
		c.agent = thread
		if parent := h.Get("X-Codex-Parent-Thread-Id"); parent != c.session {
			c.parent = parent
		}
	}
	turn, err := rawjson.Parse([]byte(h.Get("X-Codex-Turn-Metadata")))
	if err != nil {
		return
	}
	switch kind := turn.Get("request_kind").Text(); kind {
	case "", "turn":
	case "compaction":
		c.compact = true
	default:
		c.side = kind
	}
}

// readOpencode reads the headers of opencode. A sub-agent has a session of its own.
func readOpencode(c *claim, h http.Header, _ rawjson.Value) {
	c.session = cmp.Or(h.Get("X-Session-Id"), h.Get("X-Session-Affinity"))
	if parent := h.Get("X-Parent-Session-Id"); parent != "" {
		c.session, c.agent = parent, c.session
	}
}

// readOther reads what is common to programs that are not known by name. pi sends its
// session as Session_id to one of three APIs. A prompt_cache_key alone names no
// conversation: programs share it among many.
func readOther(c *claim, h http.Header, body rawjson.Value) {
	conversation := body.Get("conversation")
	c.session = cmp.Or(h.Get("Session_id"), conversation.Get("id").Text(), conversation.Text(), userSession(body))
}

// agentName is the part of a User-Agent that names the program, in lower case.
var agentName = regexp.MustCompile(`^[a-z/_-]*`)

// nameOf makes a name of the beginning of a User-Agent: "OpenAI/JS 6.26.0" is openai-js.
func nameOf(agent string) string {
	name := strings.NewReplacer("/", "-", "_", "-").Replace(agentName.FindString(strings.ToLower(agent)))
	return cmp.Or(strings.Trim(name, "-"), "client")
}

// sideOf returns the kind of a call beside the conversation of a coding agent: it has no
// tools, and its instruction says what it is for. Other programs have no such calls that
// could be told from their conversations.
func sideOf(body rawjson.Value, client string) string {
	if body.Get("tools").At(0) != nil {
		return ""
	}
	if client != "claude-code" && client != "opencode" && client != "gemini-cli" {
		return ""
	}
	structured := body.Get("output_config").Get("format") != nil || body.Get("response_format") != nil ||
		body.Get("generationConfig").Get("responseJsonSchema") != nil || body.Get("generationConfig").Get("responseSchema") != nil
	instruction := strings.ToLower(instructions(body))
	switch {
	case strings.Contains(instruction, "title generator"), structured && strings.Contains(instruction, " title "):
		return "title"
	case structured && strings.Contains(instruction, "rout"):
		return "routing"
	case structured:
		return "structured"
	}
	return ""
}

// instructions returns the JSON of the instructions of a request, at most 4 KiB.
func instructions(body rawjson.Value) string {
	text := string(body.Get("system")) + string(body.Get("systemInstruction"))
	if first := body.Get("messages").At(0); first.Get("role").Text() == "system" {
		text += string(first)
	}
	return text[:min(len(text), 4<<10)]
}

// shortID is the length of an id in the name of a branch.
const shortID = 8

// short is the part of an id that names of branches have: its beginning, by which people know
// it, or its end where the beginning is the time (UUIDs of version 7, ids with a prefix such
// as ses_): sessions that begin in the same minute would have the same name.
func short(id string) string {
	_, rest, prefixed := strings.Cut(id, "_")
	if prefixed {
		id = rest
	}
	name := strings.Map(inName, id)
	switch {
	case len(name) <= shortID:
		return cmp.Or(name, "session")
	case prefixed, len(name) == len("01a205ed-9ec9-7892-b2b2-4daa7e276c10") && name[14] == '7':
		name = name[len(name)-shortID:]
	default:
		name = name[:shortID]
	}
	return cmp.Or(strings.Trim(name, "-"), "session")
}

// branch returns the name of the branch of a claim with a session. whole asks for the
// whole ids, for sessions whose short ids are the same.
func (c *claim) branch(prefix string, whole bool) string {
	part := short
	if whole {
		part = func(id string) string { return strings.Map(inName, id) }
	}
	name := prefix + c.client + "/" + part(c.session)
	if c.agent != "" {
		name += "/agent-" + part(c.agent)
	}
	if c.side != "" {
		name += "/side-" + strings.Map(inName, c.side)
	}
	return name
}

// inName maps what a branch name cannot have.
func inName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
		return r
	}
	return '-'
}

// details returns what the origins of commits keep of a claim.
func (c *claim) details() map[string]string {
	all := map[string]string{}
	for name, value := range map[string]string{"client": c.client, "session": c.session, "agent": c.agent, "parent_agent": c.parent, "side": c.side} {
		if value != "" {
			all[name] = secrets.Mask(value) // as it is stored
		}
	}
	return all
}
