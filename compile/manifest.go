package compile

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Manifest is what one request was made of: enough to compile the prompt again
// and to prove that it is the same. It grows with what is new since the
// manifest before it, not with the length of the history.
type Manifest struct {
	Prev       objects.ID // of the request before it on this history; zero: none
	Head       objects.ID // what was compiled
	Tools      objects.ID // the tool definitions; zero: none
	Options    Options
	Provider   string
	Dialect    string
	Model      string
	ToolChoice string
	Encoder    int // version of the encoder that made the body

	// RequestSettings is everything else that the body was made with, as names and values;
	// nil in a manifest of an older version, which does not say. Unkept is how many
	// thoughts were sent that no commit has: such a body cannot be made again.
	RequestSettings      map[string]string
	UncommittedReasoning int

	// Which commits of the history were sent, oldest first: the first Same as in
	// Prev, then runs of commits that were sent and were not, in turn.
	Same uint64
	Runs []uint64

	// Sources are the commits whose content the transcript in a request for a summary
	// repeats, oldest first, at most [MaxSources]; nil in any other manifest.
	Sources []objects.ID

	Compiled objects.ID // hash of the request body as it was compiled
	Sent     objects.ID // and as it was sent, where that differs; else zero
}

// MaxSources is the most sources that a manifest has, so that it fits into an object.
const MaxSources = 28_000

// SentFlags tells which commits of a prompt are sent, oldest first.
func (p *Prompt) SentFlags() []bool {
	flags := make([]bool, len(p.Entries))
	for i := range p.Entries {
		flags[i] = p.Entries[i].Sent
	}
	return flags
}

// SetSentFlags fills in Same and Runs, so that Flags over before gives now.
func (m *Manifest) SetSentFlags(before, now []bool) {
	m.Same, m.Runs = 0, nil
	for int(m.Same) < min(len(before), len(now)) && before[m.Same] == now[m.Same] {
		m.Same++
	}
	sent, run := true, uint64(0)
	for _, flag := range now[m.Same:] {
		if flag != sent {
			m.Runs, sent, run = append(m.Runs, run), flag, 0
		}
		run++
	}
	m.Runs = append(m.Runs, run)
}

// SentFlags gives which commits were sent, from those of Prev.
func (m *Manifest) SentFlags(before []bool) ([]bool, error) {
	if m.Same > uint64(len(before)) {
		return nil, fmt.Errorf("manifest: keeps %d commits of %d", m.Same, len(before))
	}
	flags := append([]bool(nil), before[:m.Same]...)
	sent := true
	for _, run := range m.Runs {
		if run > maxRun {
			return nil, fmt.Errorf("manifest: a run of %d commits", run)
		}
		for range run {
			flags = append(flags, sent)
		}
		sent = !sent
	}
	return flags, nil
}

// maxRun is more commits than any history has, so that damage takes no memory.
const maxRun = 1 << 28

// Object makes the object of m.
func (m *Manifest) Object() objects.Object {
	parents := []objects.ID{m.Prev}
	if m.Prev.IsZero() {
		parents = nil
	}
	links := []objects.ID{m.Head}
	if !m.Tools.IsZero() {
		links = append(links, m.Tools)
	}
	var e canonical.Encoder
	e.Uint(1, uint64(m.Options.Policy.Strip))
	e.Bool(2, m.Options.Policy.IncludeReasoning)
	e.Uint(3, uint64(max(m.Options.Budget, 0)))
	e.Bool(4, m.Options.DropOpenReasoning)
	e.String(5, m.Provider)
	e.String(6, m.Dialect)
	e.String(7, m.Model)
	e.String(8, m.ToolChoice)
	e.Uint(9, uint64(max(m.Encoder, 0)))
	e.Uint(10, m.Same)
	e.Uints(11, m.Runs)
	e.Hash(12, m.Compiled)
	e.Hash(13, m.Sent)
	e.Map(14, m.RequestSettings)
	e.Uint(15, uint64(max(m.UncommittedReasoning, 0)))
	e.Bool(16, m.Options.KeepToolReasoning)
	for _, id := range m.Sources {
		e.Item(17, id[:])
	}
	return objects.New(objects.KindManifest, parents, links, e.Bytes())
}

// ParseManifest reads the object of a manifest. Anything else is a
// *[objects.CorruptError].
func ParseManifest(obj objects.Object) (*Manifest, error) {
	m := &Manifest{}
	d := canonical.NewDecoder(obj.Data)
	if obj.Kind != objects.KindManifest || len(obj.Parents) > 1 || len(obj.Links) < 1 || len(obj.Links) > 2 {
		d.Refuse(fmt.Sprintf("a %s with %d parents and %d links", obj.Kind, len(obj.Parents), len(obj.Links)))
	}
	for d.Next() {
		m.decode(d)
	}
	if err := d.Err(); err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("manifest record: %w", err)}
	}
	if len(obj.Parents) == 1 {
		m.Prev = obj.Parents[0]
	}
	m.Head = obj.Links[0]
	if len(obj.Links) == 2 {
		m.Tools = obj.Links[1]
	}
	return m, nil
}

func (m *Manifest) decode(d *canonical.Decoder) {
	switch d.Field() {
	case 1:
		m.Options.Policy.Strip = priority.Strip(d.Small(uint64(priority.StripAll) + 1))
	case 2:
		m.Options.Policy.IncludeReasoning = d.Bool()
	case 3:
		m.Options.Budget = int(d.Small(1 << 63))
	case 4:
		m.Options.DropOpenReasoning = d.Bool()
	case 5:
		m.Provider = d.String()
	case 6:
		m.Dialect = d.String()
	case 7:
		m.Model = d.String()
	case 8:
		m.ToolChoice = d.String()
	case 9:
		m.Encoder = int(d.Small(1 << 63))
	case 10:
		m.Same = d.Uint()
	case 11:
		m.Runs = d.Uints()
	case 12:
		m.Compiled = objects.ID(d.Hash())
	case 13:
		m.Sent = objects.ID(d.Hash())
	case 14:
		if m.RequestSettings == nil {
			m.RequestSettings = map[string]string{}
		}
		k, v := d.Pair()
		m.RequestSettings[k] = v
	case 15:
		m.UncommittedReasoning = int(d.Small(1 << 31))
	case 16:
		m.Options.KeepToolReasoning = d.Bool()
	case 17:
		m.Sources = append(m.Sources, objects.ID(d.HashItem()))
	}
}

// ReadManifest gives the manifest with an id.
func ReadManifest(ctx context.Context, r objects.Reader, id objects.ID) (*Manifest, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return ParseManifest(obj)
}

// ReadSentFlags gives which commits were sent by the request of a manifest, oldest
// first, from all manifests before it, as far as they are not remembered. The zero id
// has none. Nobody changes what it gives.
func ReadSentFlags(ctx context.Context, r objects.Reader, id objects.ID) ([]bool, error) {
	kept := keptFlags(r)
	var line []*Manifest
	var flags []bool
	next := id
	for limit := 2; !next.IsZero(); limit = 0 { // mostly the one before it is known
		for obj, err := range r.Chain(ctx, next, objects.ChainOptions{Limit: limit}) {
			if err != nil {
				return nil, fmt.Errorf("read manifest: %w", err)
			}
			known := false
			if flags, known = kept.get(obj.ID); known {
				next = objects.ID{}
				break
			}
			m, err := ParseManifest(obj)
			if err != nil {
				return nil, err
			}
			line = append(line, m)
			if next = m.Prev; m.Same == 0 {
				next = objects.ID{} // nothing before it counts
				break
			}
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		var err error
		if flags, err = line[i].SentFlags(flags); err != nil {
			return nil, &objects.CorruptError{ID: id, Cause: err}
		}
	}
	kept.put(id, flags)
	return flags, nil
}
