package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/settings"
)

type usageOptions struct {
	timeRange
	by             []string
	session, model string
}

func newUsage(a *app) *cobra.Command {
	o := &usageOptions{}
	cmd := &cobra.Command{
		Use: "usage [REV]", Short: "Report what responses cost",
		Long: `Report the tokens that responses used, as the providers reported them: in the history of a
revision, of the branch that -b names, or of all branches, tags and rescued responses.
Each response is counted once, for the branch that asked for it, so forks do not count
responses twice. --by turn reports one history, by default that of HEAD.

If the settings have prices, the cost is reported too, in the currency of the prices. A
price is for a million tokens: set it with tract config set price.MODEL.input 3. Set
price.MODEL.output in the same way, and also cached and cache_write if they differ from
input. * in MODEL matches any text; if several names match, the one with the most letters
is used. In config.toml:

  [price."claude-sonnet-*"]
  input = 3
  output = 15
  cached = 0.3

If a provider does not report reasoning tokens, they are estimated as in compile and
reasoning stats, and marked "about". For reasoning that was not stored, the estimate is the
reported output minus the text of the response.`,
		Example: `  tract usage
  tract usage --by model --since 30d
  tract usage --by day,model --json
  tract usage --by turn`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.printUsage(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.by, "by", []string{"branch"}, "group by these, separated by commas: "+strings.Join(usageKeys, ", "))
	o.addFlags(cmd, "responses")
	f.StringVar(&o.session, "session", "", "only responses on this branch, or on a branch below it: forks, sub-agents and side calls of a recorded session")
	f.StringVar(&o.model, "model", "", "only responses of models with this name; * matches anything")
	a.completeFlag(cmd, "by", completeWords(usageKeys...))
	a.completeFlag(cmd, "session", a.completeBranches)
	return cmd
}

// usageKeys are the values of --by.
var usageKeys = []string{"branch", "model", "day", "turn"}

// usageRow is the sum of the usage of the responses with the same keys.
type usageRow struct {
	Branch    *string  `json:"branch,omitempty"`
	Model     *string  `json:"model,omitempty"`
	Day       *string  `json:"day,omitempty"`
	Turn      *int     `json:"turn,omitempty"`
	Replies   int      `json:"replies"`
	Usage     tokens   `json:"usage"`
	Estimated bool     `json:"estimated,omitempty"` // some reasoning tokens are estimated
	Cost      *float64 `json:"cost,omitempty"`
	Unpriced  int      `json:"unpriced,omitempty"` // responses of models without a price

	estimate int // estimated tokens of reasoning that was not reported
}

type tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	Cached     int64 `json:"cached"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

func (r *usageRow) add(reply inspect.Cost, v settings.Values) {
	u := reply.Commit.Origin.Usage
	r.Replies++
	r.Usage.Input += u.Input
	r.Usage.Output += u.Output
	r.Usage.Reasoning += reply.Reasoning
	r.Usage.Cached += u.Cached
	r.Usage.CacheWrite += u.CacheWrite
	r.Estimated = r.Estimated || reply.Estimated
	r.estimate += reply.Estimate
	price, ok := v.Price(reply.Commit.Origin.Model)
	if !ok {
		r.Unpriced++
		return
	}
	if r.Cost == nil {
		r.Cost = new(float64)
	}
	plain := float64(max(u.Input-u.Cached-u.CacheWrite, 0))
	*r.Cost += (plain*price.Input + float64(u.Cached)*price.Cached + float64(u.CacheWrite)*price.CacheWrite + float64(u.Output)*price.Output) / 1e6
}

// keyCells returns the table cells of the keys.
func (r *usageRow) keyCells() (cells []string) {
	for _, name := range []*string{r.Branch, r.Model, r.Day} {
		if name != nil {
			cells = append(cells, firstNonEmpty(*name, "(unknown)"))
		}
	}
	if r.Turn != nil {
		cells = append(cells, "turn "+strconv.Itoa(*r.Turn))
	}
	return cells
}

func (r *usageRow) cells() []string {
	reasoning := fmt.Sprintf("%d reasoning", r.Usage.Reasoning)
	if r.Estimated {
		reasoning = "about " + reasoning
	}
	cells := append(r.keyCells(), count(r.Replies, "response"), fmt.Sprintf("%d in (%d cached)", r.Usage.Input, r.Usage.Cached), fmt.Sprintf("%d out", r.Usage.Output), reasoning)
	switch {
	case r.Cost != nil && r.Unpriced > 0:
		cells = append(cells, fmt.Sprintf("costs %.4f, %d without a price", *r.Cost, r.Unpriced))
	case r.Cost != nil:
		cells = append(cells, fmt.Sprintf("costs %.4f", *r.Cost))
	}
	return cells
}

// newRow returns an empty row with the keys of a response.
func (o *usageOptions) newRow(reply inspect.Cost) *usageRow {
	row := &usageRow{}
	day := reply.Time().UTC().Format(time.DateOnly)
	for _, by := range o.by {
		switch by {
		case "branch":
			row.Branch = &reply.Commit.Origin.Session
		case "model":
			row.Model = &reply.Commit.Origin.Model
		case "day":
			row.Day = &day
		case "turn":
			row.Turn = &reply.Turn
		}
	}
	return row
}

func (a *app) printUsage(ctx context.Context, o *usageOptions, args []string) error {
	for _, by := range o.by {
		if !slices.Contains(usageKeys, by) {
			return usageError("--by %q: want %s", by, strings.Join(usageKeys, ", "))
		}
	}
	rows, err := a.countUsage(ctx, o, args)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		a.info("no response reports its usage")
	}
	return a.emitRows(rows, mapSlice(rows, (*usageRow).cells))
}

func (a *app) countUsage(ctx context.Context, o *usageOptions, args []string) ([]*usageRow, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	where := inspect.UsageOptions{Turns: slices.Contains(o.by, "turn")}
	if where.Turns && len(args) == 0 && a.branch == "" {
		args = []string{"HEAD"} // turns are counted in one history
	}
	if where.Revs, err = a.revOrBranchFlag(ctx, args); err != nil {
		return nil, err
	}
	rows, byName := []*usageRow{}, map[string]*usageRow{}
	for reply, err := range inspect.Usage(ctx, repo, where) {
		if err != nil {
			return nil, err
		}
		if !o.matches(reply) {
			continue
		}
		row := o.newRow(reply)
		name := strings.Join(row.keyCells(), "\x00")
		if byName[name] == nil {
			byName[name], rows = row, append(rows, row)
		}
		byName[name].add(reply, *a.loaded)
	}
	scale, err := a.tokenScale(ctx, where.Revs)
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, row := range rows {
		row.Usage.Reasoning += int64(scale.AddTokens(&sum, row.estimate))
	}
	slices.SortStableFunc(rows, func(a, b *usageRow) int {
		if a.Turn != nil {
			return cmp.Compare(*a.Turn, *b.Turn)
		}
		return slices.Compare(a.keyCells(), b.keyCells())
	})
	return rows, nil
}

func (o *usageOptions) matches(r inspect.Cost) bool {
	from := r.Commit.Origin
	return (o.session == "" || from.Session == o.session || strings.HasPrefix(from.Session, o.session+"/")) && (o.model == "" || settings.Match(o.model, from.Model)) && o.contains(r.Time())
}
