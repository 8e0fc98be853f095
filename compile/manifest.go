package compile

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/internal/lru"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Manifest records the head, the options and the settings of one request: enough to compile the
// prompt again and to prove that it is the same. Its size depends on the number of commits since
// the manifest before it, not on the length of the history.
type Manifest struct {
	Prev       objects.ID // the manifest of the previous request on this history; zero: none
	Head       objects.ID // the commit whose history was compiled
	Tools      objects.ID // the tool definitions; zero: none
	Body       objects.ID // the stored body of a request of another program; zero: none
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
		flags[i] = p.Entries[i].InPrompt
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

// maxRun is larger than the number of commits of any history: a damaged record must not exhaust
// the memory.
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
	manifestBody
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
	if !m.Body.IsZero() {
		links = append(links, m.Body)
	}
	var r canonical.Record
	own, hasBody := *m, !m.Body.IsZero()
	own.fields(&r, &hasBody)
	return objects.New(objects.KindManifest, parents, links, r.Bytes())
}

// fields writes the fields of the record of m, or reads them. hasBody is one of them, which m does not
// have: whether the last link of the object is the request body.
func (m *Manifest) fields(r *canonical.Record, hasBody *bool) {
	canonical.Number(r, manifestStrip, &m.Options.Policy.Strip, uint64(priority.StripAll)+1)
	r.Bool(manifestInclude, &m.Options.Policy.IncludeReasoning)
	canonical.Number(r, manifestBudget, &m.Options.Budget, 1<<63)
	r.Bool(manifestDropOpen, &m.Options.DropOpenReasoning)
	r.String(manifestProvider, &m.Provider)
	r.String(manifestDialect, &m.Dialect)
	r.String(manifestModel, &m.Model)
	r.String(manifestToolChoice, &m.ToolChoice)
	canonical.Number(r, manifestEncoder, &m.Encoder, 1<<63)
	r.Uint(manifestSame, &m.Same)
	r.Uints(manifestRuns, &m.Runs)
	r.Hash(manifestCompiled, (*[32]byte)(&m.Compiled))
	r.Hash(manifestSent, (*[32]byte)(&m.Sent))
	r.Map(manifestSettings, &m.RequestSettings)
	canonical.Number(r, manifestUncommitted, &m.UncommittedReasoning, 1<<31)
	r.Bool(manifestKeepTool, &m.Options.KeepToolReasoning)
	canonical.List(r, manifestSource, &m.Sources,
		func(id *objects.ID) []byte { return id[:] },
		func(id *objects.ID, b []byte) (err error) { *id, err = canonical.ParseHash(b); return err })
	r.Bool(manifestBody, hasBody)
}

// ParseManifest reads the object of a manifest. Anything else is a
// *[objects.CorruptError].
func ParseManifest(obj objects.Object) (*Manifest, error) {
	m := &Manifest{}
	r := canonical.NewReader(obj.Data)
	if obj.Kind != objects.KindManifest || len(obj.Parents) > 1 || len(obj.Links) == 0 {
		r.Refuse(fmt.Sprintf("a %s with %d parents and %d links", obj.Kind, len(obj.Parents), len(obj.Links)))
	}
	hasBody := false
	m.fields(&r, &hasBody)
	links := obj.Links
	if n := len(links); hasBody && n > 1 {
		m.Body, links = links[n-1], links[:n-1]
	}
	if hasBody && m.Body.IsZero() || len(links) > 2 {
		r.Refuse(fmt.Sprintf("%d links", len(obj.Links)))
	}
	if err := r.Err(); err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("manifest record: %w", err)}
	}
	if len(obj.Parents) == 1 {
		m.Prev = obj.Parents[0]
	}
	m.Head = links[0]
	if len(links) == 2 {
		m.Tools = links[1]
	}
	return m, nil
}

// ReadManifest reads a manifest.
func ReadManifest(ctx context.Context, r objects.Reader, id objects.ID) (*Manifest, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return ParseManifest(obj)
}

// ReadSentFlags returns for each commit, oldest first, whether the request of a manifest sent it.
// It reads the manifests before it as far as their flags are not cached. The zero id has no flags.
// The list is shared and must not be changed.
func ReadSentFlags(ctx context.Context, r objects.Reader, id objects.ID) ([]bool, error) {
	kept := sentFlagsCacheOf(r)
	var line []*Manifest
	var flags []bool
	next := id
	for limit := 2; !next.IsZero(); limit = 0 { // the manifest before it is mostly cached
		for obj, err := range r.Chain(ctx, next, objects.ChainOptions{Limit: limit}) {
			if err != nil {
				return nil, fmt.Errorf("read manifest: %w", err)
			}
			if flags = kept.Get(obj.ID); flags != nil {
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
				next = objects.ID{} // it does not depend on earlier manifests
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
	kept.Put(id, flags, 1)
	return flags, nil
}

// sentFlagsCacheKey is the key of the cache of sent flags in the cache of a store.
type sentFlagsCacheKey struct{}

// maxCachedManifests is enough for the branches that are in use at the same time.
const maxCachedManifests = 16

// sentFlagsCacheOf returns the cache of a store for the flags of the manifests used last, by id: the flags of a
// request are computed from those of the request before it.
func sentFlagsCacheOf(r objects.Reader) *lru.Cache[objects.ID, []bool] {
	cache := lru.New[objects.ID, []bool](maxCachedManifests)
	if store, ok := r.(objects.Cacher); ok {
		cache = store.Cache().Get(sentFlagsCacheKey{}, func() any { return cache }).(*lru.Cache[objects.ID, []bool])
	}
	return cache
}
