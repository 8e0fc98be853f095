package format

import (
	"encoding/json"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

type commitJSON struct {
	ID        objects.ID        `json:"id"`
	Short     string            `json:"short"`
	Parents   []objects.ID      `json:"parents"`
	Op        string            `json:"op"`
	Kind      content.Kind      `json:"kind"`
	Role      content.Role      `json:"role"`
	Priority  *priorityJSON     `json:"priority,omitempty"`
	Turn      int               `json:"turn"`
	Index     int               `json:"index"`
	Time      string            `json:"time"`
	Author    string            `json:"author,omitempty"`
	Key       string            `json:"key,omitempty"`
	KeyKind   string            `json:"key_kind,omitempty"`  // the kind of the key, unless the caller chose it
	KeyBlock  int               `json:"key_block,omitempty"` // of an import: the index of the block at the position
	Label     string            `json:"label,omitempty"`
	Summary   string            `json:"summary"`
	Purged    *purgedJSON       `json:"pruned,omitempty"`
	Damaged   string            `json:"damaged,omitempty"`
	Size      int64             `json:"size"`
	Tokens    int               `json:"tokens"`
	ContentID objects.ID        `json:"content_id,omitzero"`
	Target    objects.ID        `json:"target,omitzero"`
	First     objects.ID        `json:"first,omitzero"`   // of a summary: its range is first to target
	Covers    string            `json:"covers,omitempty"` // of a summary: all, dialogue or reasoning
	Refs      []string          `json:"refs,omitempty"`
	Agents    []string          `json:"agents,omitempty"` // branches of the sub-agents that the call started
	Origin    *originJSON       `json:"origin,omitempty"`
	Meta      map[string]string `json:"meta,omitempty"`
}

type priorityJSON struct {
	Level priority.Level `json:"level"`
	Why   priority.Why   `json:"why,omitempty"`
}

type originJSON struct {
	Source     string            `json:"source,omitempty"`
	Session    string            `json:"session,omitempty"`
	Provider   string            `json:"provider,omitempty"`
	Dialect    string            `json:"dialect,omitempty"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Model      string            `json:"model,omitempty"`
	ResponseID string            `json:"response_id,omitempty"`
	Finish     string            `json:"finish_reason,omitempty"`
	Usage      content.Usage     `json:"usage,omitzero"`
	Manifest   objects.ID        `json:"manifest,omitzero"`
	Incomplete bool              `json:"incomplete,omitempty"`
	Unkept     int               `json:"unkept,omitempty"`
	Started    string            `json:"started,omitempty"`
	FirstToken int64             `json:"first_token_ms,omitempty"`
	Duration   int64             `json:"duration_ms,omitempty"`
	Settings   map[string]string `json:"settings,omitempty"`
	Importer   string            `json:"importer,omitempty"`
	Original   map[string]string `json:"original,omitempty"`
}

// CommitJSON returns a commit for programs, without its content.
func CommitJSON(c Commit) any { return newCommit(c) }

func newCommit(c Commit) *commitJSON {
	v := &commitJSON{
		ID: c.ID, Short: c.ID.Short(), Parents: c.Parents, Op: c.Op.String(), Kind: c.Kind, Role: c.Role,
		Turn: c.Turn, Index: c.Index, Time: jsonTime(c.Time), Author: c.Author, Key: c.Key.Text, KeyBlock: c.Key.Block, Label: c.Label.Text,
		Summary: c.summary(summaryCells, ""), Purged: newPurged(c.Tombstone, c.Size), Damaged: damagedJSON(c.Damaged), Size: c.Size, Tokens: estimatedTokens(c.Commit), ContentID: c.ContentID, Target: c.Target,
		Refs: c.Refs, Agents: c.Agents, Origin: newOrigin(c.Origin), Meta: c.Label.Meta,
	}
	if c.Key.Kind != commit.KeyCaller {
		v.KeyKind = c.Key.Kind.String()
	}
	if c.Op == commit.Compress {
		v.First, v.Covers = c.First, c.Scope.String()
	}
	if v.Parents == nil {
		v.Parents = []objects.ID{}
	}
	switch {
	case c.Op == commit.Annotate:
		v.Priority = &priorityJSON{Level: c.Commit.Priority}
	case c.Level != priority.Unset || c.Why != "":
		v.Priority = &priorityJSON{Level: c.Level, Why: c.Why}
	}
	return v
}

func newOrigin(o *commit.Origin) *originJSON {
	if o == nil {
		return nil
	}
	return &originJSON{
		Source: string(o.Source), Session: o.Session, Provider: o.Provider, Dialect: o.Dialect, Endpoint: o.Endpoint,
		Model: o.Model, ResponseID: o.ResponseID, Finish: o.Finish, Usage: o.Usage, Manifest: o.Manifest,
		Incomplete: o.Incomplete, Unkept: o.UncommittedReasoning, Started: jsonTime(o.Started), FirstToken: o.FirstToken.Milliseconds(),
		Duration: o.Duration.Milliseconds(), Settings: o.Settings, Importer: o.Importer, Original: o.Original,
	}
}

type showJSON struct {
	*commitJSON
	Content     *blockJSON       `json:"content,omitempty"`
	Annotations []annotationJSON `json:"annotations"`
	Edits       []editJSON       `json:"edits,omitempty"`
}

type annotationJSON struct {
	Level  priority.Level `json:"level"`
	Reason string         `json:"reason,omitempty"`
	Commit objects.ID     `json:"commit"`
	Time   string         `json:"time"`
	Author string         `json:"author,omitempty"`
}

type editJSON struct {
	Commit objects.ID `json:"commit"`
	Time   string     `json:"time"`
	Author string     `json:"author,omitempty"`
}

// ShowJSON is CommitJSON with the content, annotations and edits.
func ShowJSON(c Commit) any {
	v := showJSON{commitJSON: newCommit(c), Content: newBlock(c.Block), Annotations: []annotationJSON{}}
	for _, n := range c.Notes {
		if n.Op == commit.Edit {
			v.Edits = append(v.Edits, editJSON{Commit: n.ID, Time: jsonTime(n.Time), Author: n.Author})
			continue
		}
		a := annotationJSON{Level: n.Priority, Commit: n.ID, Time: jsonTime(n.Time), Author: n.Author}
		if n.Block != nil {
			a.Reason = n.Block.String()
		}
		v.Annotations = append(v.Annotations, a)
	}
	return v
}

// blockJSON is one block. Of a seal it has the type and the size, not the data.
type blockJSON struct {
	Kind         content.Kind    `json:"kind"`
	Role         string          `json:"role,omitempty"` // when it is not the usual role of the kind
	Type         string          `json:"type,omitempty"`
	ID           string          `json:"id,omitempty"`
	Dialect      string          `json:"dialect,omitempty"`
	Text         *string         `json:"text,omitempty"`
	TextBase64   string          `json:"text_base64,omitempty"`
	Format       string          `json:"format,omitempty"`
	Source       string          `json:"source,omitempty"`
	Parts        any             `json:"parts,omitempty"`
	Seal         *sealJSON       `json:"seal,omitempty"`
	CallID       string          `json:"call_id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	ArgumentsRaw *string         `json:"arguments_raw,omitempty"`
	ArgumentsB64 string          `json:"arguments_base64,omitempty"`
	Server       bool            `json:"server,omitempty"`
	IsError      *bool           `json:"is_error,omitempty"`
	MediaType    string          `json:"media_type,omitempty"`
	URL          string          `json:"url,omitempty"`
	Bytes        int             `json:"bytes,omitempty"` // of an image or a file
	JSON         json.RawMessage `json:"json,omitempty"`  // of a provider's own item
	Incomplete   bool            `json:"incomplete,omitempty"`
}

type sealJSON struct {
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

func newSeal(s content.Seal) *sealJSON {
	if s.IsZero() {
		return nil
	}
	return &sealJSON{Type: s.Type.String(), Bytes: len(s.Data)}
}

func (v *blockJSON) setText(text string) {
	v.Text, v.TextBase64 = &text, base64OrEmptyIfValid(text)
}

// newBlock is a block for programs; nil for none.
func newBlock(b content.Block) *blockJSON {
	if b == nil {
		return nil
	}
	w := b.Form()
	v := &blockJSON{Kind: b.Kind(), Type: w.Type, ID: w.ID, Dialect: w.Dialect, Seal: newSeal(w.Seal), Incomplete: w.Incomplete}
	if w.Role != content.NoRole && w.Role != b.Kind().Traits().Role {
		v.Role = w.Role.String()
	}
	switch b := b.(type) {
	case content.Text:
		v.Name = b.Name
		v.setText(b.Text)
	case content.Reasoning:
		v.Format, v.Source = string(b.Format), b.Source
		v.setText(b.String())
		if len(b.Parts) > 0 {
			v.Parts = b.Parts
		}
	case content.ToolCall:
		v.CallID, v.Name, v.Server = b.CallID, b.Name, b.Server
		v.Arguments, v.ArgumentsRaw, v.ArgumentsB64 = parsedJSON(b.Arguments), &b.Arguments, base64OrEmptyIfValid(b.Arguments)
	case content.ToolResult:
		v.CallID, v.Name, v.Server, v.IsError = b.CallID, b.Name, b.Server, &b.IsError
		v.setText(resultText(b))
		if parts := parsedJSON(string(b.Parts)); len(b.Parts) > 0 && parts != nil {
			v.Parts = parts
		}
	case content.Media:
		v.Name, v.MediaType, v.URL, v.Bytes = b.Name, b.MediaType, b.URL, len(b.Data)
	case content.Native:
		if v.JSON = parsedJSON(b.JSON); strings.TrimSpace(b.JSON) == "" || v.JSON == nil {
			v.JSON = nil
			v.setText(b.JSON)
		}
	default:
		v.setText(b.String())
	}
	return v
}
