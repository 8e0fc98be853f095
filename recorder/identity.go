package recorder

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/llm"
)

// This file reads from the headers and the body of a request which conversation it belongs to:
// its identity. The table clients lists the coding agents that are known, by the beginning of
// their User-Agent, each with the function that reads its session id, sub-agent and kind of
// call. X-Tract-Session and X-Tract-Agent override what was read. An identity is not
// authenticated: it only chooses the branch, and its parts are made safe for a branch name.

// identity is the conversation that a request names, without proof.
type identity struct {
	client  string // sending program, such as claude-code
	session string // the program's session id; empty: the request names none
	agent   string // id of a sub-agent within the session; empty: the main conversation
	parent  string // id of the session or agent that started this agent; empty: the main conversation
	side    string // kind of a side call, which is not part of the conversation: title, routing, ...; empty: none
	branch  string // the branch that On names, of which the other fields say who sends to it; may be empty
	compact bool   // the request asks for a summary that will replace the conversation
}

// client describes how one program names the conversation of a request.
type client struct {
	name  string
	agent string                                                // beginning of the User-Agent
	read  func(c *identity, h http.Header, extra rawjson.Value) // extra has the members of the body that llm.Request has no field for
}

// clients lists the known programs. The first entry whose prefix matches the User-Agent is used.
var clients = []client{
	{"claude-code", "claude-cli/", readClaudeCode},
	{"codex", "codex", readCodex},
	{"opencode", "opencode/", readOpencode},
	{"gemini-cli", "GeminiCLI", func(*identity, http.Header, rawjson.Value) {}},
	{"", "", readOther},
}

// readIdentity returns the identity of a request, given its headers and what its body was decoded to.
// X-Tract-Session takes precedence.
func readIdentity(h http.Header, req *llm.Request) identity {
	var c identity
	extra := rawjson.Value(req.Settings.Extra)
	agent := h.Get("User-Agent")
	for _, known := range clients {
		if strings.HasPrefix(agent, known.agent) {
			c.client = cmp.Or(known.name, clientName(agent))
			known.read(&c, h, extra)
			break
		}
	}
	if session := h.Get("X-Tract-Session"); session != "" {
		c.session, c.agent, c.parent = session, h.Get("X-Tract-Agent"), ""
	}
	c.side = cmp.Or(c.side, sideCallKind(c.client, req))
	return c
}

func readClaudeCode(c *identity, h http.Header, extra rawjson.Value) {
	c.session = cmp.Or(h.Get("X-Claude-Code-Session-Id"), userSession(extra))
	c.agent, c.parent = h.Get("X-Claude-Code-Agent-Id"), h.Get("X-Claude-Code-Parent-Agent-Id")
}

// userSession returns the session id of metadata.user_id, which is JSON text with
// device_id, account_uuid and session_id.
func userSession(extra rawjson.Value) string {
	user, err := rawjson.Parse([]byte(extra.Get("metadata").Get("user_id").Text()))
	if err != nil {
		return ""
	}
	return user.Get("session_id").Text()
}

// readCodex reads the headers and metadata of Codex. A thread id that differs from the session
// id names a sub-agent.
func readCodex(c *identity, h http.Header, extra rawjson.Value) {
	meta := extra.Get("client_metadata")
	c.session = cmp.Or(h.Get("Session-Id"), meta.Get("session_id").Text(), extra.Get("prompt_cache_key").Text())
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

// readOpencode reads the headers of opencode. A sub-agent has its own session id.
func readOpencode(c *identity, h http.Header, _ rawjson.Value) {
	c.session = cmp.Or(h.Get("X-Session-Id"), h.Get("X-Session-Affinity"))
	if parent := h.Get("X-Parent-Session-Id"); parent != "" {
		c.session, c.agent = parent, c.session
	}
}

// readOther reads the headers and body fields that several other programs use. pi sends its
// session id as Session_id to one of three APIs. A prompt_cache_key does not name a
// conversation: programs use one key for many conversations.
func readOther(c *identity, h http.Header, extra rawjson.Value) {
	conversation := extra.Get("conversation")
	c.session = cmp.Or(h.Get("Session_id"), conversation.Get("id").Text(), conversation.Text(), userSession(extra))
}

// agentName is the part of a User-Agent that names the program, in lower case.
var agentName = regexp.MustCompile(`^[a-z/_-]*`)

// clientName returns the name of a program from the beginning of its User-Agent:
// "OpenAI/JS 6.26.0" becomes openai-js.
func clientName(userAgent string) string {
	name := strings.NewReplacer("/", "-", "_", "-").Replace(agentName.FindString(strings.ToLower(userAgent)))
	return cmp.Or(strings.Trim(name, "-"), "client")
}

// sideCallKind returns the kind of a side call of a coding agent, such as a request for a
// title; empty for a request of the conversation. A side call has no tools, and its
// instructions name its purpose. Side calls of other programs cannot be distinguished from
// their conversations.
func sideCallKind(client string, req *llm.Request) string {
	if len(req.Tools) > 0 || client != "claude-code" && client != "opencode" && client != "gemini-cli" {
		return ""
	}
	extra := rawjson.Value(req.Settings.Extra)
	structured := extra.Get("output_config", "format") != nil || extra.Get("response_format") != nil ||
		extra.Get("generationConfig", "responseJsonSchema") != nil || extra.Get("generationConfig", "responseSchema") != nil
	instruction := ""
	for _, m := range req.Messages {
		if m.Role != content.RoleSystem || len(instruction) > maxInstruction {
			break
		}
		for _, b := range m.Blocks {
			instruction += strings.ToLower(b.String()[:min(len(b.String()), maxInstruction)])
		}
	}
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

// maxInstruction is the length in bytes of the beginning of an instruction that sideCallKind reads.
const maxInstruction = 4 << 10

// shortIDLength is the length of a shortened id in a branch name.
const shortIDLength = 8

// shortenID returns the part of an id that is used in branch names. It is the beginning of the
// id, which people recognize; or the end if the beginning encodes the time (UUIDs of version 7,
// ids with a prefix such as ses_), because sessions of the same minute would get the same name.
func shortenID(id string) string {
	_, rest, prefixed := strings.Cut(id, "_")
	if prefixed {
		id = rest
	}
	name := refs.SafeName(id)
	switch {
	case len(name) <= shortIDLength:
		return cmp.Or(name, "session")
	case prefixed, len(name) == len("01a205ed-9ec9-7892-b2b2-4daa7e276c10") && name[14] == '7':
		name = name[len(name)-shortIDLength:]
	default:
		name = name[:shortIDLength]
	}
	return cmp.Or(strings.Trim(name, "-"), "session")
}

// branchName returns the name of the main branch of an identity with a session or a branch. wholeIDs uses
// the whole ids, for sessions whose shortened ids are equal.
func (c *identity) branchName(prefix string, wholeIDs bool) string {
	if c.branch != "" {
		return c.branch
	}
	part := shortenID
	if wholeIDs {
		part = refs.SafeName
	}
	name := prefix + c.client + "/" + part(c.session)
	if c.agent != "" {
		name += "/agent-" + part(c.agent)
	}
	if c.side != "" {
		name += "/side-" + refs.SafeName(c.side)
	}
	return name
}

// details returns the non-empty parts of an identity as the origins of commits store them: masked.
func (c *identity) details() map[string]string {
	all := map[string]string{}
	for name, value := range map[string]string{"client": c.client, "session": c.session, "agent": c.agent, "parent_agent": c.parent, "side": c.side, "branch": c.branch} {
		if value != "" {
			all[name] = secrets.Mask(value) // as it is stored
		}
	}
	return all
}
