package compile

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Calibration fits the estimate to a model, from what the replies on the history
// say that they cost. What a reply said counts as it told; other blocks count
// Factor times their estimate; Overhead comes once, for what is sent beside the
// history (tool definitions, what a provider puts around messages), so that the
// prompt of the last reply counts what its provider counted. All of it follows
// from the history, so that a prompt counts the same for ever.
type Calibration struct {
	Model    string  `json:"model,omitempty"` // of the last reply that told its usage
	Factor   float64 `json:"factor"`
	Overhead int     `json:"overhead"`
	Replies  int     `json:"replies"` // of that model that were looked at: the newest
}

const (
	maxReplies = 16   // that a calibration looks at, the newest
	maxOrigins = 64   // that are read to find them
	prior      = 256  // tokens that a factor of 1 is worth against what replies say
	leastOf    = 0.25 // of the factor: what is beyond is a mistake of a server
	mostOf     = 4.0
)

// reply is what one reply says of the prompt that it was given to.
type reply struct {
	from       *commit.Origin
	first, end int // its entries
	turn       int
}

// calibrate gives every entry its tokens by what replies cost. It comes after
// decide, which estimates them.
func (h *history) calibrate(ctx context.Context, r objects.Reader, o Options) error {
	h.calibration = Calibration{Factor: 1}
	replies, err := h.replies(ctx, r)
	if err != nil || len(replies) == 0 {
		return err
	}
	last := replies[0]
	then, err := h.asked(ctx, r, last, o)
	if err != nil {
		return err
	}
	h.calibration = Calibration{Model: last.from.Model, Replies: len(replies), Factor: h.factor(replies, o)}
	for i := range h.entries {
		h.entries[i].scale(h.calibration.Factor)
	}
	for _, r := range replies {
		h.tell(r)
	}
	sent := 0
	for i := range h.entries[:last.first] {
		if e := &h.entries[i]; then(i, e) {
			sent += e.Tokens
		}
	}
	h.calibration.Overhead = int(last.from.Usage.Input) - sent
	if h.calibration.Overhead < 0 { // what a provider adds is not less than nothing: the estimate is too high
		h.calibration.Overhead = 0
		for i := range h.entries[:last.first] {
			h.entries[i].scale(float64(last.from.Usage.Input) / float64(sent))
		}
	}
	return nil
}

func (e *Entry) scale(by float64) { e.Tokens = int(float64(e.Tokens)*by + 0.5) }

// replies lists the last replies of one model that told their usage, newest
// first: of the model that answered last.
func (h *history) replies(ctx context.Context, r objects.Reader) ([]reply, error) {
	var found []reply
	var ids []objects.ID
	for i := len(h.entries) - 1; i >= 0 && len(ids) < maxOrigins; i-- {
		c := h.entries[i].Commit
		if c.Op != commit.Append || c.Origin.IsZero() || c.Role == content.RoleUser || c.Role == content.RoleSystem || c.Role == content.RoleTool {
			continue
		}
		if n := len(found); n > 0 && ids[n-1] == c.Origin {
			found[n-1].first = i // walking back, the first comes last
			continue
		}
		ids, found = append(ids, c.Origin), append(found, reply{first: i, end: i + 1, turn: h.entries[i].Turn})
	}
	if len(ids) == 0 {
		return nil, nil
	}
	origins := map[objects.ID]*commit.Origin{}
	for obj, err := range r.Get(ctx, ids) {
		if err != nil {
			return nil, fmt.Errorf("read what replies cost: %w", err)
		}
		if origins[obj.ID], err = commit.ParseOrigin(obj); err != nil {
			return nil, err
		}
	}
	var told []reply
	for i, f := range found {
		f.from = origins[ids[i]]
		if f.from == nil || f.from.Usage.Input <= 0 || f.from.Incomplete || len(told) == maxReplies {
			continue
		}
		if len(told) == 0 || told[0].from.Model == f.from.Model {
			told = append(told, f)
		}
	}
	return told, nil
}

// asked tells which entries were sent to a reply, by what its manifest says that
// it was asked with; without one, by what usually is.
func (h *history) asked(ctx context.Context, r objects.Reader, of reply, o Options) (func(int, *Entry) bool, error) {
	then := Options{DropOpen: o.DropOpen}
	if id := of.from.Manifest; !id.IsZero() {
		m, err := ReadManifest(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if then = m.Options; then.Budget > 0 {
			flags, err := ReadFlags(ctx, r, id)
			return func(i int, _ *Entry) bool { return i < len(flags) && flags[i] }, err
		}
	}
	return func(_ int, e *Entry) bool {
		c := e.Commit
		if c.Op != commit.Append || c.Kind != content.KindReasoning || h.notes[c.ID] != nil || c.Priority != priority.Unset {
			return e.Sent
		}
		own := e.Turn == of.turn && !then.DropOpen
		return own || then.Policy.IncludeReasoning && then.Policy.Strip == priority.StripNone
	}, nil
}

// estimates is those of what a reply said and of what it thought.
func (h *history) estimates(r reply) (said, thought int) {
	for i := range h.entries[r.first:r.end] {
		if e := &h.entries[r.first+i]; e.Commit.Kind == content.KindReasoning {
			thought += e.Tokens
		} else {
			said += e.Tokens
		}
	}
	return said, thought
}

// costs is what a reply's words and its thoughts cost when they are sent back.
// Where its provider does not tell them apart, thoughts are what the words leave.
// ok is false when what is told cannot be.
func (r reply) costs(said, thought int) (words, thoughts int, ok bool) {
	words, thoughts = int(r.from.Usage.Output), int(r.from.Usage.Reasoning)
	if words <= 0 || r.from.Source == commit.SourceImport && 3*words < said {
		return 0, 0, false // logs of streams have the count of the first event
	}
	if thoughts == 0 && thought > 0 {
		thoughts = max(words-said, 0)
	}
	if thought == 0 && r.from.Dialect == sealedWords {
		return words, 0, true
	}
	words = max(words-thoughts, 0)
	if r.from.Usage.Reasoning > 0 && said > 0 {
		words = min(words, said+said/4) // some round thoughts down, and count the rest as words
	}
	if r.from.Dialect == uncounted {
		thoughts = 0
	}
	return words, thoughts, true
}

// What wire formats do with thoughts that come back sealed, as the recorded pairs
// of TestEstimateOfRecordedRequests show.
const (
	uncounted   = "responses" // they are not counted again
	sealedWords = "gemini"    // the seal may ride on a call or a text, and counts like the thought
)

// tell gives the blocks of a reply what it cost, shared by size.
func (h *history) tell(r reply) {
	said, thought := h.estimates(r)
	words, thoughts, ok := r.costs(said, thought)
	if !ok {
		return
	}
	for i := range h.entries[r.first:r.end] {
		if e := &h.entries[r.first+i]; e.Commit.Kind == content.KindReasoning {
			e.scale(float64(thoughts) / float64(max(thought, 1)))
		} else {
			e.scale(float64(words) / float64(max(said, 1)))
		}
	}
}

// factor is how the cost of blocks that no model said grew from one reply to the
// next, against their estimate.
func (h *history) factor(replies []reply, o Options) float64 {
	sent, cost := prior, prior
	for i := range replies[1:] {
		newer, older := replies[i], replies[i+1]
		said, thought := h.estimates(older)
		words, thoughts, ok := older.costs(said, thought)
		if !ok {
			words, thoughts = said, thought
		}
		if thought > 0 && older.turn != newer.turn {
			continue // whether the thoughts of a whole turn went is not told
		}
		between := 0
		for j := range h.entries[older.end:newer.first] {
			if e := &h.entries[older.end+j]; e.Sent {
				between += e.Tokens
			}
		}
		grown := int(newer.from.Usage.Input-older.from.Usage.Input) - words
		if !o.DropOpen {
			grown -= thoughts
		}
		if between > 0 && grown > 0 {
			sent, cost = sent+between, cost+grown
		}
	}
	return min(max(float64(cost)/float64(sent), leastOf), mostOf)
}
