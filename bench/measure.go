package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// figure is what was measured of one side, in its unit.
type figure struct {
	name, unit string
	samples    []float64
}

// one is a figure that is counted and not measured: a size, a number.
func one(name, unit string, value float64) figure { return figure{name, unit, []float64{value}} }

// times is a figure of durations.
func times(name string, took []time.Duration) figure {
	f := figure{name: name, unit: "ms", samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(d) / float64(time.Millisecond)
	}
	return f
}

// per is a figure of durations as so many things a second.
func per(name string, things int, took []time.Duration) figure {
	f := figure{name: name, unit: "/s", samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(things) / d.Seconds()
	}
	return f
}

// each is a figure of durations shared out among things, in a smaller unit.
func each(name, unit string, of time.Duration, things int, took []time.Duration) figure {
	f := figure{name: name, unit: unit, samples: make([]float64, len(took))}
	for i, d := range took {
		f.samples[i] = float64(d) / float64(of) / float64(things)
	}
	return f
}

func (f figure) median() float64 { return f.at(0.5) }

// spread is how far apart the samples lie: p90 to p10.
func (f figure) spread() float64 {
	if low := f.at(0.1); low > 0 {
		return f.at(0.9) / low
	}
	return 0
}

// at is the sample below which a part of the samples lies.
func (f figure) at(part float64) float64 {
	if len(f.samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.samples))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// side is one way to do what is compared. It measures itself: some of them have
// to be made ready first, and some run in another process.
type side func(ctx context.Context) (time.Duration, error)

// clocked is a side that needs nothing but to be called.
func clocked(f func(ctx context.Context) error) side {
	return func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := f(ctx)
		return time.Since(start), err
	}
}

// inTurns calls the sides one after the other, round by round, so that what else
// the machine does hits all of them. The first round does not count. It ends after
// so many rounds, and not before lasting is over.
func inTurns(ctx context.Context, rounds int, lasting time.Duration, sides ...side) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(sides))
	begun := time.Now()
	for n := -1; n < rounds || time.Since(begun) < lasting; n++ {
		for k := range sides {
			i := (k + max(n, 0)) % len(sides) // nobody is always the one after the slowest
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

// goal is what a line has to come to, and what would be good. More says that a
// larger number is better. The zero goal asks for nothing.
type goal struct {
	must, aim float64
	more, set bool
}

func atMost(must, aim float64) goal  { return goal{must: must, aim: aim, set: true} }
func atLeast(must, aim float64) goal { return goal{must: must, aim: aim, more: true, set: true} }

// only gives a goal that holds on one condition.
func (g goal) only(when bool) goal {
	if when {
		return g
	}
	return goal{}
}

// unsteady is the spread of a yardstick above which nothing can be said.
const unsteady = 4

// verdict judges a number, held against a yardstick with a spread.
func (g goal) verdict(value, spread float64) string {
	meets := func(limit float64) bool { return value <= limit && !g.more || value >= limit && g.more }
	switch {
	case !g.set:
		return ""
	case spread > unsteady:
		return "unsteady"
	case meets(g.aim):
		return "aim"
	case meets(g.must):
		return "must"
	default:
		return "MISSED"
	}
}

// hold reports a figure against its yardstick.
func (b *bench) hold(name string, g goal, ours, limit figure) {
	r := newResult(name, g, ours)
	r.Limit, r.LimitName, r.Spread = round(limit.median()), limit.name, round(limit.spread())
	if limit.median() > 0 {
		r.Ratio = round(ours.median() / limit.median())
	}
	r.Verdict = g.verdict(r.Ratio, r.Spread)
	b.add(r)
}

// tell reports a figure that has no yardstick; its goal is in its own unit.
func (b *bench) tell(name string, g goal, ours figure) {
	r := newResult(name, g, ours)
	r.Verdict = g.verdict(r.Value, 0)
	b.add(r)
}

func newResult(name string, g goal, ours figure) result {
	return result{Name: name, Value: round(ours.median()), Unit: ours.unit, Samples: len(ours.samples), Must: g.must, Aim: g.aim, More: g.more || ours.unit == "/s", Load: load()}
}

func (b *bench) add(r result) {
	b.report.Results = append(b.report.Results, r)
	b.telling("  %s", r.short())
}

// named names a figure of a history.
func named(what string, size int) string { return fmt.Sprintf("%s, %s commits", what, count(size)) }

// count writes a number as people say it.
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
