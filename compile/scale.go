package compile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Scale makes tokens of a model from estimates. Its factor is the median, over the last
// responses of one model on a history, of the input that they reported over the estimate of
// their requests; what is sent beside the history is in it. It follows from the history
// alone, so that a prompt counts the same for ever, whatever it is compiled for. The zero
// Scale leaves estimates as they are.
type Scale struct {
	Model     string  `json:"model,omitempty"` // that answered last and reported its input
	Factor    float64 `json:"factor"`
	Responses int     `json:"responses"` // that the factor is from
}

const (
	maxResponses = 5    // that a scale is from
	maxOrigins   = 32   // that are read to find them
	maxScan      = 4096 // commits that are looked at to find those
	smoothing    = 512  // tokens added to both sides: of a short request most is what is sent beside the history
	leastFactor  = 0.1  // what is beyond is a mistake of a server
	mostFactor   = 10.0
)

// Tokens makes tokens from an estimate.
func (s Scale) Tokens(estimate int) int {
	if s.Responses == 0 {
		return estimate
	}
	return int(math.Round(float64(estimate) * s.Factor))
}

// AddTokens makes tokens from one of several estimates, so that their tokens add up to those of
// their sum. sum is of the estimates before it, to which it is added.
func (s Scale) AddTokens(sum *int, estimate int) int {
	before := s.Tokens(*sum)
	*sum += estimate
	return s.Tokens(*sum) - before
}

// estimate is the largest that has no more tokens than these.
func (s Scale) estimate(tokens int) int {
	if s.Responses == 0 {
		return tokens
	}
	n := int(min((float64(tokens)+1)/s.Factor, math.MaxInt32))
	for n > 0 && s.Tokens(n) > tokens {
		n--
	}
	return n
}

// ScaleOf gives the scale of the prompts of head.
func ScaleOf(ctx context.Context, r objects.Reader, head objects.ID) (Scale, error) {
	o := Options{Budget: 1} // nothing fits
	h, err := whole(ctx, r, head, o)
	if err != nil && !errors.As(err, new(*priority.OverBudgetError)) {
		return Scale{}, fmt.Errorf("scale of %s: %w", head.Short(), err)
	}
	return h.scale, nil
}

// sums are the bytes of prompt that entries weigh.
type sums struct {
	sent     int64 // of what is counted
	thoughts int64 // of the other reasoning
	kept     int64 // of that, in turns with tool calls
}

func (s *sums) add(e *Entry, times int64) {
	switch n := times * int64(e.weight); {
	case !e.AddsBlock():
	case e.place&counted != 0:
		s.sent += n
	case e.isThought():
		if s.thoughts += n; e.place&inToolTurn != 0 {
			s.kept += n
		}
	}
}

// response is one on a history that may have reported what its request took.
type response struct {
	origin     objects.ID
	from       *commit.Origin
	first, end int // its entries
	turn       int32
	before     sums  // of the entries before it
	open       int64 // of these, the reasoning of its own turn
	changed    bool  // something after it speaks of what is before it
}

// changes reports whether an entry may change what is sent of the entries before it.
func (e *Entry) changes() bool {
	return e.Op == commit.Edit || e.Op == commit.Compress || e.Op == commit.Annotate && e.Priority != priority.Unset
}

// lastResponses lists the last responses among some entries, newest first, as far back as
// one entry. s is of all of them.
func lastResponses(entries []Entry, s sums, low int) (list []response) {
	open := 0 // of the list: the beginning of their turn was not reached
	reach := func() {
		list[open].open = list[open].before.thoughts - s.thoughts
		open++
	}
	changed := false
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		for open < len(list) && list[open].turn != e.Turn {
			reach()
		}
		more := i >= low && len(list) < maxOrigins
		if !more && open == len(list) {
			break
		}
		s.add(e, -1)
		changed = changed || e.changes()
		if !e.ofReply() || e.place&brought != 0 { // who answered elsewhere was sent something else
			continue
		}
		if n := len(list); n > 0 && list[n-1].origin == *e.origin {
			list[n-1].first, list[n-1].before = i, s
		} else if more {
			list = append(list, response{origin: *e.origin, first: i, end: i + 1, turn: e.Turn, before: s, changed: changed})
		}
	}
	for open < len(list) {
		reach()
	}
	return list
}

// readParsed returns the parsed objects of some ids, without those that are missing.
func readParsed[T any](ctx context.Context, r objects.Reader, ids []objects.ID, parse func(objects.Object) (*T, error)) (map[objects.ID]*T, error) {
	found := make(map[objects.ID]*T, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	for obj, err := range r.Get(ctx, ids) {
		if err != nil {
			return nil, err
		}
		if found[obj.ID], err = parse(obj); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// reported reads the origins of responses and keeps those that reported their input, of the
// model that did so last.
func reported(ctx context.Context, r objects.Reader, list []response) ([]response, error) {
	ids := make([]objects.ID, len(list))
	for i := range list {
		ids[i] = list[i].origin
	}
	origins, err := readParsed(ctx, r, ids, commit.ParseOrigin)
	if err != nil {
		return nil, fmt.Errorf("read what responses reported: %w", err)
	}
	kept := list[:0]
	for _, a := range list {
		a.from = origins[a.origin]
		if a.from != nil && a.from.Usage.Input > 0 && !a.from.Incomplete && (len(kept) == 0 || kept[0].from.Model == a.from.Model) {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// scaled finds the scale of some entries that are decided, the sums of which are s.
func (h *history) scaled(ctx context.Context, r objects.Reader, entries []Entry, s sums) (Scale, error) {
	low := max(0, len(entries)-maxScan)
	list, err := reported(ctx, r, lastResponses(entries, s, low))
	if err == nil && len(list) > 0 && list[0].changed {
		entries, s = h.asOf(entries[:list[0].end])
		list, err = reported(ctx, r, lastResponses(entries, s, low))
	}
	if err != nil || len(list) == 0 {
		return Scale{}, err
	}
	if i := slices.IndexFunc(list, func(a response) bool { return a.changed }); i > 0 {
		list = list[:i]
	}
	list = list[:min(len(list), maxResponses)]
	var asked []objects.ID
	for _, a := range list {
		if !a.from.Manifest.IsZero() {
			asked = append(asked, a.from.Manifest)
		}
	}
	manifests, err := readParsed(ctx, r, asked, ParseManifest)
	if err != nil {
		return Scale{}, fmt.Errorf("read what responses were asked: %w", err)
	}
	var factors []float64
	for _, a := range list {
		weight := int64(0)
		m := manifests[a.from.Manifest]
		if m == nil {
			m = &Manifest{}
		}
		if m.Options.Budget <= 0 {
			weight = a.weight(m.Options)
		} else {
			sent, err := ReadSentFlags(ctx, r, a.from.Manifest)
			if errors.Is(err, objects.ErrNotFound) { // a prompt can do without
				continue
			}
			if err != nil {
				return Scale{}, err
			}
			weight = weigh(entries[:a.first], sent)
		}
		if weight > 0 {
			factors = append(factors, (float64(a.from.Usage.Input)+smoothing)/(float64(weight)/4+smoothing))
		}
	}
	if len(factors) == 0 {
		return Scale{}, nil
	}
	return Scale{Model: list[0].from.Model, Factor: min(max(median(factors), leastFactor), mostFactor), Responses: len(factors)}, nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// weight is what was sent to a response, asked with these options, but for a budget.
func (a *response) weight(o Options) int64 {
	switch {
	case o.Policy.IncludeReasoning && o.Policy.Strip == priority.StripNone:
		return a.before.sent + a.before.thoughts
	case o.KeepToolReasoning:
		return a.before.sent + a.before.kept
	case o.DropOpenReasoning:
		return a.before.sent
	}
	return a.before.sent + a.open
}

// weigh is what those of some entries weigh that flags say were sent.
func weigh(entries []Entry, flags []bool) (sum int64) {
	for i := range entries {
		if e := &entries[i]; i < len(flags) && flags[i] && e.AddsBlock() {
			sum += int64(e.weight)
		}
	}
	return sum
}

// asOf decides some entries as if nothing came after them, and gives their sums.
func (h *history) asOf(entries []Entry) ([]Entry, sums) {
	then := newHistory()
	then.ranges = h.ranges
	then.entries = make([]Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		then.entries[i] = e.undecided()
		then.entries[i].Block = e.Block
		if c := e.Change(); c != nil {
			then.entries[i].few().speaks = c
		}
	}
	then.number()
	then.decide(Options{})
	then.summaries()
	then.replaceSystems()
	return then.entries, then.sums()
}
