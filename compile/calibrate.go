package compile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Calibration fits the tokens of a prompt to a model, from what the replies on the
// history say that they cost. What the last replies said counts as they told; other
// blocks count Factor times their estimate; Overhead comes once, for what is sent
// beside the history (tool definitions, what a provider puts around messages), so
// that the prompt of the last reply counts what its provider counted. All of it
// follows from the history, so that a prompt counts the same for ever.
type Calibration struct {
	Model    string  `json:"model,omitempty"` // of the last reply that told its usage
	Factor   float64 `json:"factor"`
	Overhead int     `json:"overhead"`
	Replies  int     `json:"replies"` // of that model that were looked at: the newest
}

const (
	maxReplies = 16   // that a calibration looks at
	maxOrigins = 32   // that are read to find them
	maxScan    = 4096 // commits that are looked at to find those
	prior      = 256  // tokens that a factor of 1 is worth against what replies say
	leastOf    = 0.25 // of the factor: what is beyond is a mistake of a server
	mostOf     = 4.0
)

// What wire formats do with thoughts that come back sealed, as the recorded pairs
// of TestEstimateOfRecordedRequests show.
const (
	uncounted   = "responses" // they are not counted again
	sealedWords = "gemini"    // the seal may ride on a call or a text, and counts like the thought
)

// fitting is a calibration with what replies told of their own blocks.
type fitting struct {
	Calibration
	entries []Entry
	unread  unread          // commits of the history that are not among them
	flags   []bool          // what was sent to the last reply, where a budget cut its prompt
	told    map[int]float64 // tokens, by place among the entries
	places  []int           // those, in an order that is always the same: sums of fractions depend on it
}

// reply is what one reply says of the prompt that it was given to.
type reply struct {
	from       *commit.Origin
	first, end int // its entries
	turn       int32
}

// lastReply goes over the entries of a history and links those that may be of replies,
// so that the last ones are found without a look at every entry. What it leaves in an
// entry, as reply, is how far before it lies
//
//	the first block of its reply      over 0, if it is of one and not the first
//	the last block of the one before  below 0, if it is the first of one
//	the last block of a reply         if it is of none
//
// and 0 where there is none.
type lastReply struct {
	ago, first int32       // how far back the last block was, and how far before that the first; ago 0: there was none
	origin     *objects.ID // of both
}

func (l *lastReply) pass(e *Entry) {
	if e.reply = l.ago; !e.ofReply() {
		if l.ago > 0 {
			l.ago++
		}
		return
	}
	if l.ago > 0 && (l.origin == e.origin || *l.origin == *e.origin) {
		e.reply += l.first
		*l = lastReply{1, e.reply, e.origin}
		return
	}
	e.reply = -l.ago
	*l = lastReply{1, 0, e.origin}
}

// calibrate fits the estimates of a history, the sums of which are sums.
func calibrate(ctx context.Context, r objects.Reader, entries []Entry, unread unread, sums Tokens, o Options) (*fitting, error) {
	f := &fitting{Calibration: Calibration{Factor: 1}, entries: entries, unread: unread, told: map[int]float64{}}
	replies, err := f.replies(ctx, r)
	if err != nil || len(replies) == 0 {
		return f, err
	}
	last := replies[0]
	then, flags, err := last.options(ctx, r, o)
	if err != nil {
		return nil, err
	}
	f.Model, f.Replies, f.Factor = last.from.Model, len(replies), f.slope(replies, o)
	for _, r := range replies {
		f.tell(r)
	}
	f.flags = flags
	f.level(last, sums, then)
	return f, nil
}

// options is what a reply was asked with, and, where a budget cut its prompt, what
// of the history was sent. A reply that does not say was asked as is usual.
func (r reply) options(ctx context.Context, from objects.Reader, o Options) (then Options, flags []bool, err error) {
	usual := Options{DropOpen: o.DropOpen}
	if r.from.Manifest.IsZero() {
		return usual, nil, nil
	}
	m, err := ReadManifest(ctx, from, r.from.Manifest)
	if err == nil && m.Options.Budget > 0 {
		flags, err = ReadFlags(ctx, from, r.from.Manifest)
	}
	if errors.Is(err, objects.ErrNotFound) { // a prompt can do without
		return usual, nil, nil
	}
	if err != nil {
		return usual, nil, err
	}
	return m.Options, flags, nil
}

// lastReplies lists what may be the last replies among some entries, newest first, with
// their origins.
func lastReplies(entries []Entry) (found []reply, ids []objects.ID) {
	low := max(0, len(entries)-maxScan)
	for i := len(entries) - 1; i >= low && len(ids) < maxOrigins; {
		c := &entries[i]
		first, back := i, int(c.reply)
		if c.ofReply() {
			first = i - max(back, 0)
			at := max(first, low)
			for !entries[at].ofReply() { // another may lie there, between its blocks
				at++
			}
			ids, found = append(ids, *c.origin), append(found, reply{first: at, end: i + 1, turn: c.Turn})
			back = -min(back, 0)
			if first >= low && first < i {
				back = -int(entries[first].reply)
			}
		}
		if i = first - back; back == 0 {
			break
		}
	}
	if len(found) == maxOrigins { // how far the oldest reaches is not looked for
		found[maxOrigins-1].first = found[maxOrigins-1].end - 1
	}
	return found, ids
}

// replies lists the last replies of one model that told their usage, newest
// first: of the model that answered last.
func (f *fitting) replies(ctx context.Context, r objects.Reader) ([]reply, error) {
	found, ids := lastReplies(f.entries)
	if len(ids) == 0 {
		return nil, nil
	}
	origins, err := readOrigins(ctx, r, ids)
	if err != nil {
		return nil, fmt.Errorf("read what replies cost: %w", err)
	}
	var told []reply
	for i, a := range found {
		a.from = origins[ids[i]]
		if a.from == nil || a.from.Usage.Input <= 0 || a.from.Incomplete || len(told) == maxReplies {
			continue
		}
		if len(told) == 0 || told[0].from.Model == a.from.Model {
			told = append(told, a)
		}
	}
	return told, nil
}

// slope is how the cost of blocks that no model said grew from one reply to the
// next, against their estimate.
func (f *fitting) slope(replies []reply, o Options) float64 {
	sent, cost := float64(prior), float64(prior)
	for i := range replies[1:] {
		newer, older := replies[i], replies[i+1]
		said, thought := f.estimates(older)
		words, thoughts, ok := older.costs(said, thought)
		if thought > 0 && older.turn != newer.turn {
			continue // whether the thoughts of a whole turn went is not told
		}
		if !ok {
			words, thoughts = said, thought
		}
		between := 0
		for _, e := range f.entries[older.end:newer.first] {
			if e.Sent {
				between += int(e.Tokens)
			}
		}
		grown := float64(newer.from.Usage.Input) - float64(older.from.Usage.Input) - float64(words)
		if !o.DropOpen {
			grown -= float64(thoughts)
		}
		if between > 0 && grown > 0 {
			sent, cost = sent+float64(between), cost+grown
		}
	}
	return bounded(cost / sent)
}

func bounded(factor float64) float64 { return min(max(factor, leastOf), mostOf) }

// estimates is those of what a reply said and of what it thought.
func (f *fitting) estimates(r reply) (said, thought int) {
	for _, e := range f.entries[r.first:r.end] {
		if e.Kind == content.KindReasoning {
			thought += int(e.Tokens)
		} else {
			said += int(e.Tokens)
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

// tell gives the blocks of a reply what it cost, shared by size.
func (f *fitting) tell(r reply) {
	said, thought := f.estimates(r)
	words, thoughts, ok := r.costs(said, thought)
	if !ok {
		return
	}
	for i := r.first; i < r.end; i++ {
		e := &f.entries[i]
		if e.Kind == content.KindReasoning {
			f.told[i] = float64(e.Tokens) * float64(thoughts) / float64(max(thought, 1))
		} else {
			f.told[i] = float64(e.Tokens) * float64(words) / float64(max(said, 1))
		}
		f.places = append(f.places, i)
	}
}

// level finds the overhead, by which what was sent to the last reply counts what it
// cost. It was asked with the options then.
func (f *fitting) level(last reply, sums Tokens, then Options) {
	estimate, told := f.sentTo(last, sums, then)
	input := float64(last.from.Usage.Input)
	f.Overhead = int(input - estimate*f.Factor - told + 0.5)
	if f.Overhead < 0 { // what a provider adds is not less than nothing: the estimate is too high
		f.Overhead, f.Factor = 0, bounded((input-told)/max(estimate, 1))
	}
}

// sentTo is what was sent to a reply: the estimate of most of it, and what replies
// told of the rest.
func (f *fitting) sentTo(last reply, sums Tokens, then Options) (estimate, told float64) {
	sent := func(i int) bool { return f.wasSent(i, last, then) }
	all := then.Policy.IncludeReasoning && then.Policy.Strip == priority.StripNone
	if f.flags != nil {
		sent = func(i int) bool {
			at := f.unread.place(i)
			return at < len(f.flags) && f.flags[at]
		}
		for i := range f.entries[:last.first] {
			if e := &f.entries[i]; sent(i) && e.Says() {
				estimate += float64(e.Tokens)
			}
		}
	} else {
		before := sums
		for i := range f.entries[last.first:] {
			before.take(&f.entries[last.first+i])
		}
		estimate = float64(before.Effective + before.erased - (before.thoughts - before.HiddenReasoning) + before.pinned)
		if all {
			estimate += float64(before.thoughts - before.pinned)
		}
		for i := last.first - 1; !all && i >= 0 && f.entries[i].Turn == last.turn; i-- {
			if e := &f.entries[i]; e.isThought() && !pinned(e) && sent(i) {
				estimate += float64(e.Tokens)
			}
		}
	}
	for _, i := range f.places {
		if i < last.first && sent(i) {
			estimate -= float64(f.entries[i].Tokens)
			told += f.told[i]
		}
	}
	return estimate, told
}

// wasSent tells whether an entry was sent to a later reply, as far as it can be
// known from what is sent now.
func (f *fitting) wasSent(i int, to reply, then Options) bool {
	e := &f.entries[i]
	if !e.isThought() || strings.HasPrefix(string(e.Why()), "annotated") {
		return e.Sent
	}
	return e.Turn == to.turn && !then.DropOpen || then.Policy.IncludeReasoning && then.Policy.Strip == priority.StripNone
}

// pinned tells whether a thought is sent because a person said so.
func pinned(e *Entry) bool { return e.Sent && strings.HasPrefix(string(e.Why()), "annotated") }

// tokens is what one entry counts.
func (f *fitting) tokens(i int) float64 {
	if told, ok := f.told[i]; ok {
		return told
	}
	return float64(f.entries[i].Tokens) * f.Factor
}

// apply makes the estimates of a prompt what it counts. Its entries keep theirs.
func (f *fitting) apply(p *Prompt) {
	p.Calibration = f.Calibration
	sent, hidden, thoughts := float64(p.Tokens.Effective)*f.Factor, float64(p.Tokens.Hidden)*f.Factor, float64(p.Tokens.HiddenReasoning)*f.Factor
	for _, i := range f.places {
		more := f.told[i] - float64(f.entries[i].Tokens)*f.Factor
		switch e := &p.Entries[i]; {
		case e.Sent:
			sent += more
		case e.isThought():
			thoughts += more
		default:
			hidden += more
		}
	}
	round := func(n float64) int { return int(math.Round(max(n, 0))) }
	t := Tokens{Effective: round(sent) + f.Overhead, Hidden: round(hidden), HiddenReasoning: round(thoughts)}
	t.Raw = t.Effective + t.Hidden + t.HiddenReasoning
	p.Tokens = t
}
