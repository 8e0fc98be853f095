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

// Scale converts estimates into tokens of a model. Its factor is the median, over the last
// responses of one model on a history, of the reported input tokens divided by the estimate of the
// request. So the factor includes the parts of a request that are not in the history, such as tool
// definitions. It depends on the history alone, so a prompt has the same count for every target.
// The zero Scale returns estimates unchanged.
type Scale struct {
	Model     string  `json:"model,omitempty"` // the last one that reported its input
	Factor    float64 `json:"factor"`
	Responses int     `json:"responses"` // number of responses from which the factor was computed
}

const (
	maxResponses = 5    // most responses from which a factor is computed
	maxOrigins   = 32   // most origins read to find these responses
	maxScan      = 1024 // most commits searched for the origins
	smoothing    = 512  // tokens added to both sides, because most of a short request is not part of the history
	leastFactor  = 0.1  // a factor outside of this range is an error of a server
	mostFactor   = 10.0
)

// Tokens converts an estimate into tokens.
func (s Scale) Tokens(estimate int) int {
	if s.Responses == 0 {
		return estimate
	}
	return int(math.Round(float64(estimate) * s.Factor))
}

// AddTokens adds an estimate to a sum of estimates, and returns the tokens by which the converted
// sum grows. So the returned tokens of several calls add up to the tokens of their sum.
func (s Scale) AddTokens(sum *int, estimate int) int {
	before := s.Tokens(*sum)
	*sum += estimate
	return s.Tokens(*sum) - before
}

// largestEstimate returns the largest estimate that stands for at most this number of tokens.
func (s Scale) largestEstimate(tokens int) int {
	if s.Responses == 0 {
		return tokens
	}
	n := int(min((float64(tokens)+1)/s.Factor, math.MaxInt32))
	for n > 0 && s.Tokens(n) > tokens {
		n--
	}
	return n
}

// ScaleOf returns the scale of the prompts of head.
func ScaleOf(ctx context.Context, r objects.Reader, head objects.ID) (Scale, error) {
	h, err := collect(ctx, r, head, nil)
	if err == nil {
		err = h.decideBeforePairing(ctx, r, Options{Budget: 1}) // nothing fits
	}
	if err != nil && !errors.As(err, new(*priority.OverBudgetError)) {
		return Scale{}, fmt.Errorf("scale of %s: %w", head.Short(), err)
	}
	return h.scale, nil
}

// byteSums are sums of the bytes that entries have in a prompt.
type byteSums struct {
	base          int64 // sent under any policy
	reasoning     int64 // other reasoning
	toolReasoning int64 // the part of reasoning that is in turns with tool calls
}

// addBytes adds the bytes of an entry, multiplied by sign: 1 adds, -1 subtracts.
func (s *byteSums) addBytes(e *Entry, sign int64) {
	switch n := sign * int64(e.promptBytes); {
	case !e.AddsBlock():
	case e.flags&counted != 0:
		s.base += n
	case e.isReasoning():
		s.reasoning += n
		if e.flags&inToolTurn != 0 {
			s.toolReasoning += n
		}
	}
}

// response is one response of a history that may have reported the input tokens of its request.
type response struct {
	origin        objects.ID
	report        *commit.Origin
	first, end    int // indexes of its entries
	turn          int32
	before        byteSums // of the entries before it
	turnReasoning int64    // the part of before that is reasoning of its own turn
	changedLater  bool     // a later entry may change which entries before it are sent
}

// mayChangeEarlier reports whether an entry may change which entries before it are sent.
func (e *Entry) mayChangeEarlier() bool {
	return e.Op == commit.Edit || e.Op == commit.Compress || e.Op == commit.Annotate && e.Priority != priority.Unset
}

// latestResponses lists the last responses among entries, newest first. A response that ends
// before minIndex is not listed. sum has the bytes of all entries.
func latestResponses(entries []Entry, sum byteSums, minIndex int) (list []response) {
	open := 0 // the first response of the list whose turn has not been walked to its beginning
	finishOpen := func() {
		list[open].turnReasoning = list[open].before.reasoning - sum.reasoning
		open++
	}
	changed := false
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		for open < len(list) && list[open].turn != e.Turn {
			finishOpen()
		}
		more := i >= minIndex && len(list) < maxOrigins
		if !more && open == len(list) {
			break
		}
		sum.addBytes(e, -1)
		changed = changed || e.mayChangeEarlier()
		if !e.isPartOfResponse() || e.flags&merged != 0 { // a response on a merged line was sent something else
			continue
		}
		if n := len(list); n > 0 && list[n-1].origin == *e.origin {
			list[n-1].first, list[n-1].before = i, sum
		} else if more {
			list = append(list, response{origin: *e.origin, first: i, end: i + 1, turn: e.Turn, before: sum, changedLater: changed})
		}
	}
	for open < len(list) {
		finishOpen()
	}
	return list
}

// keepReportedOfNewestModel reads the origins of responses, newest first, and returns the responses that
// reported their input tokens and have the model of the newest one that did.
func keepReportedOfNewestModel(ctx context.Context, r objects.Reader, list []response) (ofOneModel []response, err error) {
	ids := make([]objects.ID, len(list))
	for i := range list {
		ids[i] = list[i].origin
	}
	origins, err := objects.ReadAll(ctx, r, ids, commit.ParseOrigin)
	if err != nil {
		return nil, fmt.Errorf("read what responses reported: %w", err)
	}
	kept := list[:0]
	for _, a := range list {
		a.report = origins[a.origin]
		if a.report != nil && a.report.Usage.Input > 0 && !a.report.Incomplete && (len(kept) == 0 || kept[0].report.Model == a.report.Model) {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// findScale returns the scale for decided entries. s has the bytes of all of them.
func (h *history) findScale(ctx context.Context, r objects.Reader, entries []Entry, s byteSums) (Scale, error) {
	low := max(0, len(entries)-maxScan)
	list, err := keepReportedOfNewestModel(ctx, r, latestResponses(entries, s, low))
	if err == nil && len(list) > 0 && list[0].changedLater {
		entries, s = h.decidePrefixAlone(entries[:list[0].end])
		list, err = keepReportedOfNewestModel(ctx, r, latestResponses(entries, s, low))
	}
	if err != nil || len(list) == 0 {
		return Scale{}, err
	}
	if i := slices.IndexFunc(list, func(a response) bool { return a.changedLater }); i > 0 {
		list = list[:i]
	}
	list = list[:min(len(list), maxResponses)]
	var manifestIDs []objects.ID
	for _, a := range list {
		if !a.report.Manifest.IsZero() {
			manifestIDs = append(manifestIDs, a.report.Manifest)
		}
	}
	manifests, err := objects.ReadAll(ctx, r, manifestIDs, ParseManifest)
	if err != nil {
		return Scale{}, fmt.Errorf("read what responses were asked: %w", err)
	}
	var factors []float64
	for _, a := range list {
		bytes := int64(0)
		m := manifests[a.report.Manifest]
		if m == nil {
			m = &Manifest{}
		}
		if m.Options.Budget <= 0 {
			bytes = a.requestBytes(m.Options)
		} else {
			sent, err := ReadSentFlags(ctx, r, a.report.Manifest)
			if errors.Is(err, objects.ErrNotFound) { // the manifest is missing; the other responses are enough
				continue
			}
			if err != nil {
				return Scale{}, err
			}
			bytes = sentBytes(entries[:a.first], sent)
		}
		if bytes > 0 {
			factors = append(factors, (float64(a.report.Usage.Input)+smoothing)/(float64(bytes)/4+smoothing))
		}
	}
	if len(factors) == 0 {
		return Scale{}, nil
	}
	slices.Sort(factors)
	return Scale{Model: list[0].report.Model, Factor: min(max(median(factors), leastFactor), mostFactor), Responses: len(factors)}, nil
}

func median(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// requestBytes returns the bytes that were sent in the request of a response with these options,
// which have no budget.
func (a *response) requestBytes(o Options) int64 {
	switch {
	case o.Policy.IncludeReasoning && o.Policy.Strip == priority.StripNone:
		return a.before.base + a.before.reasoning
	case o.KeepToolReasoning:
		return a.before.base + a.before.toolReasoning
	case o.DropOpenReasoning:
		return a.before.base
	}
	return a.before.base + a.turnReasoning
}

// sentBytes returns the bytes of the entries that were sent, according to flags.
func sentBytes(entries []Entry, flags []bool) (sum int64) {
	for i := range entries {
		if e := &entries[i]; i < len(flags) && flags[i] && e.AddsBlock() {
			sum += int64(e.promptBytes)
		}
	}
	return sum
}

// decidePrefixAlone decides about copies of the entries at the beginning of a history, as if no
// entries followed them. It returns copies with the new decisions, and their bytes.
func (h *history) decidePrefixAlone(entries []Entry) (decided []Entry, sums byteSums) {
	then := newHistory()
	then.mergedSummaryRanges = h.mergedSummaryRanges
	then.entries = make([]Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		then.entries[i] = e.undecidedCopyWithoutBlock()
		then.entries[i].Block = e.Block
	}
	then.numberAndGroupByKind()
	then.decideLevels(Options{})
	then.applySummaries()
	then.replaceNamedSystems()
	return then.entries, then.sumBytes()
}
