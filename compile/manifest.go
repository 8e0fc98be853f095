package compile

import (
	"context"
	"fmt"
	"sync"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Manifest records what one request was made of: enough to compile the prompt again and to prove
// that it is the same. Its size depends on what is new since the manifest before it, not on the
// length of the history.
type Manifest struct {
	Prev       objects.ID // the manifest of the previous request on this history; zero: none
	Head       objects.ID // what was compiled
	Tools      objects.ID // the tool definitions; zero: none
	Options    Options
	Provider   string
	Dialect    string
	Model      string
	ToolChoice string
	Encoder    int // version of the encoder that made the body

	// RequestSettings are all other settings of the request, as names and values.
	// UncommittedReasoning counts the reasoning blocks that were sent without being committed:
	// such a body cannot be made again.
	RequestSettings      map[string]string
	UncommittedReasoning int

	// Which commits of the history were sent, oldest first: the first Same commits as in Prev, then
	// alternating runs of commits that were sent and that were not.
	Same uint64
	Runs []uint64

	// Sources are the commits whose content the transcript in a request for a summary
	// repeats, oldest first, at most [MaxSources]; nil in any other manifest.
	Sources []objects.ID

	Compiled objects.ID // hash of the request body as it was compiled
	Sent     objects.ID // hash of the body as it was sent; zero: the same
}

// MaxSources is the largest number of sources that fits into an object.
const MaxSources = 28_000

// SentFlags reports for each commit of a prompt, oldest first, whether it is sent.
func (p *Prompt) SentFlags() []bool {
	flags := make([]bool, len(p.Entries))
	for i := range p.Entries {
		flags[i] = p.Entries[i].Sent
	}
	return flags
}

// SetSentFlags sets Same and Runs, so that SentFlags(before) returns now.
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

// SentFlags returns which commits were sent, given the flags of Prev.
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

// maxRun is more commits than any history has: a damaged record must not exhaust the memory.
const maxRun = 1 << 28

// The fields of a manifest record.
const (
	manifestStrip = 1 + iota
	manifestInclude
	manifestBudget
	manifestDropOpen
	manifestProvider
	manifestDialect
	manifestModel
	manifestToolChoice
	manifestEncoder
	manifestSame
	manifestRuns
	manifestCompiled
	manifestSent
	manifestSettings
	manifestUncommitted
	manifestKeepTool
	manifestSource
)

// Object returns the object of m.
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
	e.Uint(manifestStrip, uint64(m.Options.Policy.Strip))
	e.Bool(manifestInclude, m.Options.Policy.IncludeReasoning)
	e.Uint(manifestBudget, uint64(max(m.Options.Budget, 0)))
	e.Bool(manifestDropOpen, m.Options.DropOpenReasoning)
	e.String(manifestProvider, m.Provider)
	e.String(manifestDialect, m.Dialect)
	e.String(manifestModel, m.Model)
	e.String(manifestToolChoice, m.ToolChoice)
	e.Uint(manifestEncoder, uint64(max(m.Encoder, 0)))
	e.Uint(manifestSame, m.Same)
	e.Uints(manifestRuns, m.Runs)
	e.Hash(manifestCompiled, m.Compiled)
	e.Hash(manifestSent, m.Sent)
	e.Map(manifestSettings, m.RequestSettings)
	e.Uint(manifestUncommitted, uint64(max(m.UncommittedReasoning, 0)))
	e.Bool(manifestKeepTool, m.Options.KeepToolReasoning)
	for _, id := range m.Sources {
		e.Item(manifestSource, id[:])
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
	case manifestStrip:
		m.Options.Policy.Strip = priority.Strip(d.Small(uint64(priority.StripAll) + 1))
	case manifestInclude:
		m.Options.Policy.IncludeReasoning = d.Bool()
	case manifestBudget:
		m.Options.Budget = int(d.Small(1 << 63))
	case manifestDropOpen:
		m.Options.DropOpenReasoning = d.Bool()
	case manifestProvider:
		m.Provider = d.String()
	case manifestDialect:
		m.Dialect = d.String()
	case manifestModel:
		m.Model = d.String()
	case manifestToolChoice:
		m.ToolChoice = d.String()
	case manifestEncoder:
		m.Encoder = int(d.Small(1 << 63))
	case manifestSame:
		m.Same = d.Uint()
	case manifestRuns:
		m.Runs = d.Uints()
	case manifestCompiled:
		m.Compiled = objects.ID(d.Hash())
	case manifestSent:
		m.Sent = objects.ID(d.Hash())
	case manifestSettings:
		if m.RequestSettings == nil {
			m.RequestSettings = map[string]string{}
		}
		k, v := d.Pair()
		m.RequestSettings[k] = v
	case manifestUncommitted:
		m.UncommittedReasoning = int(d.Small(1 << 31))
	case manifestKeepTool:
		m.Options.KeepToolReasoning = d.Bool()
	case manifestSource:
		m.Sources = append(m.Sources, objects.ID(d.HashItem()))
	}
}

// ReadManifest reads a manifest.
func ReadManifest(ctx context.Context, r objects.Reader, id objects.ID) (*Manifest, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return ParseManifest(obj)
}

// ReadSentFlags returns which commits were sent by the request of a manifest, oldest first. It
// reads the manifests before it as far as their flags are not cached. The zero id has no flags. The
// list is shared and must not be changed.
func ReadSentFlags(ctx context.Context, r objects.Reader, id objects.ID) ([]bool, error) {
	kept := flagsCacheOf(r)
	var line []*Manifest
	var flags []bool
	next := id
	for limit := 2; !next.IsZero(); limit = 0 { // the one before it is mostly cached
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
			next = m.Prev
			if m.Same == 0 {
				next = objects.ID{} // it does not depend on those before
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

// flagsCache holds the flags of the manifests read last, by id: the flags of a request are
// computed from those of the request before it.
type flagsCache struct {
	mu    sync.Mutex
	known map[objects.ID][]bool
	order []objects.ID // the newest last
}

// flagsCacheKey is the key of the flagsCache in the cache of a store.
type flagsCacheKey struct{}

// maxCachedManifests is enough for the branches in use at a time.
const maxCachedManifests = 16

func flagsCacheOf(r objects.Reader) *flagsCache {
	cache := &flagsCache{known: map[objects.ID][]bool{}}
	if store, ok := r.(objects.Cacher); ok {
		cache = store.Cache().Get(flagsCacheKey{}, func() any { return cache }).(*flagsCache)
	}
	return cache
}

func (s *flagsCache) get(id objects.ID) (flags []bool, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	flags, ok = s.known[id]
	return flags, ok
}

func (s *flagsCache) put(id objects.ID, flags []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.known[id]; id.IsZero() || there {
		return
	}
	s.order = append(s.order, id)
	if len(s.order) > maxCachedManifests {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[id] = flags
}
