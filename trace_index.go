package tract

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
	"github.com/tract-vcs/tract/settings"
)

// TraceIndex keeps an index of thoughts in a file, so that [Repo.Traces] need not
// read them all to find some, nor walk to a root to number turns. The file is made
// when there are many thoughts and it is asked for, brought up to date when it is
// used, and made anew when it is damaged; all of it is in the histories, and it may
// be deleted at any time. Where it cannot be written it is made each time. When words
// are erased the file goes first, and so does one of the name [TraceFile] beside the
// store.
func TraceIndex(file string) OpenOption {
	return func(o *opening) error { o.traces = file; return nil }
}

// TraceFile is the name that the index has in the folder of a store when the command
// line keeps it.
const TraceFile = "traces.idx"

// Likely tells Traces which thoughts are looked for, so that an index can leave out
// others. Some that do not fit may come all the same. Zero fields do not count.
type Likely struct {
	Session string
	Model   string // in which * stands for anything
	Source  string
	Turn    int
	Words   *regexp.Regexp // matches the text of the thought or its label
}

// Find has Traces leave out what is not likely looked for.
func Find(l Likely) Option { return func(c *call) error { c.likely = &l; return nil } }

// traceIndex is what is known of all thoughts that the refs reach.
type traceIndex struct {
	file  string
	files safefile.Policy

	mu    sync.Mutex
	ready bool                  // the file was read
	since *sinceErased          // when; what was erased after that may be in it
	tips  map[objects.ID]uint32 // of the refs, with the number of their turn
	list  []thought             // newest first
	names []string              // of sessions, models and sources
	known map[string]uint32     // place of each name
}

// thought is one of them. Names are places in the list of names.
type thought struct {
	id                     objects.ID
	at                     int64 // milliseconds; not later than what stands upon it
	depth                  uint64
	turn                   uint32
	session, model, source uint32
	reported               int64
	marks                  []byte // which letters follow one another in its words
}

func (x *traceIndex) forget() {
	x.tips, x.list, x.names, x.known = map[objects.ID]uint32{}, nil, nil, map[string]uint32{}
}

func (x *traceIndex) name(s string) uint32 {
	n, ok := x.known[s]
	if !ok {
		n = uint32(len(x.names)) //nolint:gosec // names of branches and models
		x.names, x.known[s] = append(x.names, s), n
	}
	return n
}

// manyThoughts is how many new ones the file is written for.
const manyThoughts = 1000

// indexed gives the thoughts that the refs reach and that a query may want, newest
// first, and the names in them.
func (x *traceIndex) indexed(ctx context.Context, r *Repo, want *Likely) ([]thought, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tips, err := r.roots(ctx, "") // which notices when another process has erased
	if err != nil {
		return nil, err
	}
	if since := r.sinceErased(); !x.ready || x.since != since {
		x.forget()
		if x.since == nil || x.since == since {
			x.read()
		} else {
			_ = removeIndex(x.file) // who erased has done so; it is written anew over it
		}
		x.ready, x.since = true, since
	}
	if err := x.refresh(ctx, r, tips); err != nil {
		return nil, err
	}
	if want == nil {
		return slices.Clone(x.list), nil
	}
	fits := x.fits(want)
	var list []thought
	for i := range x.list {
		if fits(&x.list[i]) {
			list = append(list, x.list[i])
		}
	}
	return list, nil
}

// fits is whether a thought may be wanted.
func (x *traceIndex) fits(want *Likely) func(*thought) bool {
	named := func(like func(string) bool) []bool {
		fit := make([]bool, len(x.names))
		for i, name := range x.names {
			fit[i] = like(name)
		}
		return fit
	}
	sessions := named(func(s string) bool { return want.Session == "" || s == want.Session })
	models := named(func(s string) bool { return want.Model == "" || settings.Match(want.Model, s) })
	sources := named(func(s string) bool { return want.Source == "" || s == want.Source })
	var words [][]uint32 // all of one of them; none: anything
	if want.Words != nil {
		for _, l := range literalsOf(want.Words.String()) {
			words = append(words, threes(nil, l.text))
		}
	}
	may := func(marks []byte) bool {
		return len(words) == 0 || slices.ContainsFunc(words, func(w []uint32) bool { return marked(marks, w) })
	}
	return func(t *thought) bool {
		return sessions[t.session] && models[t.model] && sources[t.source] && (want.Turn == 0 || int(t.turn) == want.Turn) && may(t.marks)
	}
}

// refresh looks at what the refs reach and the index does not have. A ref that went
// back, or is gone, may have taken thoughts with it: then all is looked at anew.
func (x *traceIndex) refresh(ctx context.Context, r *Repo, tips []objects.ID) error {
	b := &gathering{index: x, repo: r, turns: map[objects.ID]uint32{}, passed: map[objects.ID]bool{}}
	for _, tip := range tips {
		if _, there := x.tips[tip]; there {
			b.passed[tip] = true
		}
	}
	if len(b.passed) == len(tips) && len(tips) == len(x.tips) {
		return nil
	}
	if err := b.lines(ctx, tips); err != nil {
		return err
	}
	if len(b.passed) < len(x.tips) {
		x.forget()
		b = &gathering{index: x, repo: r, turns: map[objects.ID]uint32{}, passed: map[objects.ID]bool{}}
		if err := b.lines(ctx, tips); err != nil {
			return err
		}
	}
	if err := b.load(ctx); err != nil {
		x.ready = false // names may be there of thoughts that are not
		return err
	}
	now := map[objects.ID]uint32{}
	for _, tip := range tips {
		turn, walked := b.turns[tip]
		if !walked {
			turn = x.tips[tip]
		}
		now[tip] = turn
	}
	x.tips = now
	if len(b.found) > 0 {
		slices.SortStableFunc(x.list, newest)
	}
	if len(b.found) < manyThoughts && len(b.turns) < 10*manyThoughts {
		return nil
	}
	x.write()
	if _, err := r.roots(ctx, ""); err != nil {
		return err
	}
	if r.sinceErased() != x.since {
		return removeIndex(x.file)
	}
	return nil
}

// newest orders thoughts as Traces gives them.
func newest(a, b thought) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.depth, a.depth), b.id.Compare(a.id))
}

// gathering is a look at what an index does not have.
type gathering struct {
	index  *traceIndex
	repo   *Repo
	byID   map[objects.ID]uint32 // turns of the thoughts in the index; made when it is needed
	turns  map[objects.ID]uint32 // of every commit that was walked over
	passed map[objects.ID]bool   // tips of the index that are still reached
	found  []*commit.Commit
	at     []int64 // of each of them
}

// lines walks the histories of tips to where the index begins.
func (b *gathering) lines(ctx context.Context, tips []objects.ID) error {
	for len(tips) > 0 {
		tip := tips[0]
		tips = tips[1:]
		if _, there := b.index.tips[tip]; there {
			b.passed[tip] = true
			continue
		}
		var line []*commit.Commit
		var turn uint32
		for c, err := range commit.Walk(ctx, b.repo.store, tip, 0) {
			if err != nil {
				return err
			}
			var known bool
			if turn, known = b.turn(c); known {
				b.turns[c.ID] = turn
				break
			}
			line = append(line, c)
			tips = append(tips, c.Parents[min(1, len(c.Parents)):]...)
		}
		b.number(line, turn)
	}
	return nil
}

// turn is the number of the turn of a commit that is known already.
func (b *gathering) turn(c *commit.Commit) (turn uint32, known bool) {
	if turn, known = b.turns[c.ID]; known {
		return turn, true
	}
	if turn, known = b.index.tips[c.ID]; known {
		b.passed[c.ID] = true
		return turn, true
	}
	if c.Kind != content.KindReasoning {
		return 0, false
	}
	if b.byID == nil {
		b.byID = make(map[objects.ID]uint32, len(b.index.list))
		for i := range b.index.list {
			b.byID[b.index.list[i].id] = b.index.list[i].turn
		}
	}
	turn, known = b.byID[c.ID]
	return turn, known
}

// number counts the turns of a line, which is newest first, and notes its thoughts.
func (b *gathering) number(line []*commit.Commit, turn uint32) {
	for _, c := range slices.Backward(line) {
		if c.BeginsTurn() {
			turn++
		}
		b.turns[c.ID] = turn
	}
	var before int64
	for i, c := range line {
		at := c.Time.UnixMilli()
		if i > 0 {
			at = min(at, before)
		}
		before = at
		if c.Op == commit.Append && c.Kind == content.KindReasoning {
			b.found, b.at = append(b.found, c), append(b.at, at)
		}
	}
}

// loaders is how many pages of thoughts are read at once.
const loaders = 2

// load reads the thoughts that were found and puts them into the index.
func (b *gathering) load(ctx context.Context) error {
	type page struct{ from, to int }
	var pages []page
	for from := 0; from < len(b.found); {
		to := min(from+4*tracePage, len(b.found))
		for to < len(b.found) && b.found[to].Origin == b.found[to-1].Origin {
			to++ // the thoughts of one reply share what it cost
		}
		pages, from = append(pages, page{from, to}), to
	}
	base := len(b.index.list)
	b.index.list = append(b.index.list, make([]thought, len(b.found))...)
	work := make(chan page)
	errs := make([]error, loaders)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var names sync.Mutex
	var all sync.WaitGroup
	for n := range loaders {
		all.Go(func() {
			for p := range work {
				if errs[n] == nil {
					errs[n] = b.loadPage(ctx, p.from, b.found[p.from:p.to], b.index.list[base+p.from:base+p.to], &names)
				}
				if errs[n] != nil {
					stop()
				}
			}
		})
	}
	for _, p := range pages {
		work <- p
	}
	close(work)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("index thoughts: %w", err)
		}
	}
	return nil
}

func (b *gathering) loadPage(ctx context.Context, from int, commits []*commit.Commit, to []thought, names *sync.Mutex) error {
	list, err := b.repo.loadThoughts(ctx, commits)
	if err != nil {
		return err
	}
	for i, t := range list {
		if t.damaged != nil {
			return t.damaged
		}
		c := t.Commit
		to[i] = thought{
			id: c.ID, at: b.at[from+i], depth: c.Depth, turn: b.turns[c.ID], reported: t.Reported,
			marks: marksOf(c.Words.Text + "\n" + t.Block.String()),
		}
		names.Lock()
		to[i].session, to[i].model, to[i].source = b.index.name(t.Session()), b.index.name(t.Model()), b.index.name(t.Block.Source)
		names.Unlock()
		*c = commit.Commit{Origin: c.Origin} // what was read is not needed any more
	}
	return nil
}

// indexedTraces reads thoughts that the index gives.
func (r *Repo) indexedTraces(ctx context.Context, list []thought, yield func(*Trace, error) bool) {
	for from := 0; from < len(list); from += tracePage {
		page := list[from:min(from+tracePage, len(list))]
		traces, err := r.pageOf(ctx, page)
		if err != nil {
			yield(nil, fmt.Errorf("traces: %w", err))
			return
		}
		for i, t := range traces {
			t.Turn, t.Reported = int(page[i].turn), page[i].reported
			if !yield(t, t.damaged) {
				return
			}
		}
	}
}

func (r *Repo) pageOf(ctx context.Context, page []thought) ([]*Trace, error) {
	ids := make([]objects.ID, len(page))
	for i := range page {
		ids[i] = page[i].id
	}
	headers := map[objects.ID]*commit.Commit{}
	for obj, err := range r.store.Get(ctx, ids) {
		if err == nil {
			headers[obj.ID], err = commit.Parse(obj)
		}
		if err != nil {
			return nil, err
		}
	}
	commits := make([]*commit.Commit, len(ids))
	for i, id := range ids {
		if commits[i] = headers[id]; commits[i] == nil {
			return nil, &objects.NotFoundError{ID: id}
		}
	}
	return r.loadThoughts(ctx, commits)
}
