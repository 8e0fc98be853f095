package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// figure is the samples of one measured quantity, in one unit.
type figure struct {
	name, unit string
	samples    []float64
}

// one returns a figure with a single value, such as a size or a count.
func one(name, unit string, value float64) figure { return figure{name, unit, []float64{value}} }

// times returns a figure of durations in milliseconds.
func times(name string, took []time.Duration) figure {
	f := figure{name: name, unit: "ms", samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(d) / float64(time.Millisecond)
	}
	return f
}

// per returns a figure of rates: so many things per second for each duration.
func per(name string, things int, took []time.Duration) figure {
	f := figure{name: name, unit: "/s", samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(things) / d.Seconds()
	}
	return f
}

// each returns a figure of durations divided by a number of things, in the given unit.
func each(name, unit string, of time.Duration, things int, took []time.Duration) figure {
	f := figure{name: name, unit: unit, samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(d) / float64(of) / float64(things)
	}
	return f
}

func (f figure) median() float64 { return f.at(0.5) }

// spread is the ratio of the 90th to the 10th percentile.
func (f figure) spread() float64 {
	if low := f.at(0.1); low > 0 {
		return f.at(0.9) / low
	}
	return 0
}

// at returns a quantile: at(0.99) is the 99th percentile, at(1) the largest sample.
func (f figure) at(part float64) float64 {
	if len(f.samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.samples))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// side is one of the programs that are compared. It returns the time of one run; it
// measures itself, because some sides need preparation and some run in another process.
type side func(ctx context.Context) (time.Duration, error)

// timed returns a side that measures a call of f.
func timed(f func(ctx context.Context) error) side {
	return func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := f(ctx)
		return time.Since(start), err
	}
}

// alternate runs the sides in turns, round by round, so that other load on the machine
// affects all of them alike. The first round does not count. It ends after the given number
// of rounds, but not before the duration has passed.
func alternate(ctx context.Context, rounds int, duration time.Duration, sides ...side) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(sides))
	begun := time.Now()
	for n := -1; n < rounds || time.Since(begun) < duration; n++ {
		for k := range sides {
			i := (k + max(n, 0)) % len(sides) // the side after the slowest changes
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d, err := sides[i](ctx)
			if err != nil {
				return nil, err
			}
			if n >= 0 {
				took[i] = append(took[i], d)
			}
		}
	}
	return took, nil
}

// limit is what a result must come to: at most value, or at least value. The zero limit
// asks for nothing.
type limit struct {
	value   float64
	atLeast bool
	set     bool
}

// noLimit asks for nothing.
var noLimit limit

func atMost(value float64) limit  { return limit{value: value, set: true} }
func atLeast(value float64) limit { return limit{value: value, atLeast: true, set: true} }

// only returns the limit if it applies, and no limit otherwise.
func (l limit) only(applies bool) limit {
	if applies {
		return l
	}
	return noLimit
}

// unsteady is the spread of a baseline (p90 / p10) above which a ratio says nothing.
const unsteady = 4

// verdict judges a value: "ok", "MISSED", "unsteady" when the baseline's spread is too
// large, and "" without a limit.
func (l limit) verdict(value, spread float64) string {
	switch {
	case !l.set:
		return ""
	case spread > unsteady:
		return "unsteady"
	case l.atLeast && value >= l.value, !l.atLeast && value <= l.value:
		return "ok"
	default:
		return "MISSED"
	}
}

// compare records a figure, its baseline, and the ratio of the two. The limit is one of
// the ratio.
func (b *bench) compare(name string, l limit, ours, baseline figure) {
	r := newResult(name, l, ours)
	r.Baseline, r.BaselineName, r.Spread = round(baseline.median()), baseline.name, round(baseline.spread())
	if baseline.median() > 0 {
		r.Ratio = round(ours.median() / baseline.median())
	}
	r.Verdict = l.verdict(r.Ratio, r.Spread)
	b.add(r)
}

// record records a figure that has no baseline. The limit is in the figure's unit.
func (b *bench) record(name string, l limit, ours figure) {
	r := newResult(name, l, ours)
	r.Verdict = l.verdict(r.Value, 0)
	b.add(r)
}

func newResult(name string, l limit, ours figure) result {
	return result{
		Name: name, Value: round(ours.median()), Unit: ours.unit, Samples: len(ours.samples),
		Limit: l.value, AtLeast: l.atLeast, HigherIsBetter: l.atLeast || ours.unit == "/s", Load: load(),
	}
}

func (b *bench) add(r result) {
	b.report.Results = append(b.report.Results, r)
	b.progress("  %s", r.oneLine())
}

// named returns the name of a figure of a history.
func named(what string, size int) string { return fmt.Sprintf("%s, %s commits", what, count(size)) }

// count formats a number: 10k, 1M.
func count(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprint(n)
	}
}
