package commit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
)

// Source is where a block was written.
type Source string

// The sources.
const (
	SourceUser   Source = "user"   // written by a person or a program at hand
	SourceModel  Source = "model"  // a model's response
	SourceTool   Source = "tool"   // a tool's result
	SourceImport Source = "import" // read from another program's log
	SourceRemote Source = "remote" // from another store
)

// Origin is where the blocks of one message came from. It is one object, shared
// by them, so that what a response cost is counted once. Zero fields are not
// known.
type Origin struct {
	Source               Source
	Session              string // name of the branch it was committed on
	Provider             string // such as anthropic or deepseek
	Dialect              string // the wire format: chat, messages, ...
	Endpoint             string // host that answered
	Model                string
	ResponseID           string
	Finish               string // the provider's finish reason
	Incomplete           bool   // the response broke off
	UncommittedReasoning int    // reasoning blocks of the response that were not committed, by request
	Usage                content.Usage
	Settings             map[string]string // what the request asked for
	Manifest             objects.ID        // what the request was made of
	Started              time.Time         // the request was sent; UTC, whole milliseconds
	FirstToken           time.Duration     // until something came; whole milliseconds
	Duration             time.Duration     // until all had come; whole milliseconds
	Importer             string            // program that brought it
	Original             map[string]string // its ids there
}

// Object makes the object of o.
func (o *Origin) Object() objects.Object {
	var e canonical.Encoder
	o.encode(&e)
	return objects.New(objects.KindOrigin, nil, o.links(), e.Bytes())
}

func (o *Origin) links() []objects.ID {
	if o.Manifest.IsZero() {
		return nil
	}
	return []objects.ID{o.Manifest}
}

func (o *Origin) encode(e *canonical.Encoder) {
	e.String(1, string(o.Source))
	e.String(2, o.Session)
	e.String(3, o.Provider)
	e.String(4, o.Dialect)
	e.String(5, o.Endpoint)
	e.String(6, o.Model)
	e.String(7, o.ResponseID)
	e.String(8, o.Finish)
	e.Bool(9, o.Incomplete)
	e.Uint(10, uint64(o.UncommittedReasoning))
	e.Uint(11, nonNegative(o.Usage.Input))
	e.Uint(12, nonNegative(o.Usage.Output))
	e.Uint(13, nonNegative(o.Usage.Reasoning))
	e.Uint(14, nonNegative(o.Usage.Cached))
	e.Uint(15, nonNegative(o.Usage.CacheWrite))
	e.Raw(16, o.Usage.Raw)
	e.Map(17, o.Settings)
	if !o.Started.IsZero() {
		e.Int(18, o.Started.UnixMilli())
	}
	e.Uint(19, nonNegative(o.FirstToken.Milliseconds()))
	e.Uint(20, nonNegative(o.Duration.Milliseconds()))
	e.String(21, o.Importer)
	e.Map(22, o.Original)
}

// nonNegative returns n as a record has it: 0 where a provider reports a negative number.
func nonNegative(n int64) uint64 { return uint64(max(n, 0)) }

// ParseOrigin reads the object of an origin. Anything else is a
// *[objects.CorruptError].
func ParseOrigin(obj objects.Object) (*Origin, error) {
	o := &Origin{}
	d := canonical.NewDecoder(obj.Data)
	if obj.Kind != objects.KindOrigin || len(obj.Links) > 1 || len(obj.Parents) > 0 {
		d.Refuse(fmt.Sprintf("a %s with %d links", obj.Kind, len(obj.Links)))
	}
	for d.Next() {
		o.decode(d)
	}
	if err := d.Err(); err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("origin record: %w", err)}
	}
	if len(obj.Links) == 1 {
		o.Manifest = obj.Links[0]
	}
	return o, nil
}

func (o *Origin) decode(d *canonical.Decoder) {
	count := func() int64 { return int64(d.Small(1 << 63)) } // whatever encode writes
	millis := func() time.Duration {
		return time.Duration(d.Small(math.MaxInt64/uint64(time.Millisecond)+1)) * time.Millisecond
	}
	switch d.Field() {
	case 1:
		o.Source = Source(d.String())
	case 2:
		o.Session = d.String()
	case 3:
		o.Provider = d.String()
	case 4:
		o.Dialect = d.String()
	case 5:
		o.Endpoint = d.String()
	case 6:
		o.Model = d.String()
	case 7:
		o.ResponseID = d.String()
	case 8:
		o.Finish = d.String()
	case 9:
		o.Incomplete = d.Bool()
	case 10:
		o.UncommittedReasoning = int(d.Small(1 << 31))
	case 11:
		o.Usage.Input = count()
	case 12:
		o.Usage.Output = count()
	case 13:
		o.Usage.Reasoning = count()
	case 14:
		o.Usage.Cached = count()
	case 15:
		o.Usage.CacheWrite = count()
	case 16:
		o.Usage.Raw = slices.Clone(d.Raw())
	case 17:
		o.Settings = addPair(d, o.Settings)
	case 18:
		o.Started = time.UnixMilli(d.Int()).UTC()
	case 19:
		o.FirstToken = millis()
	case 20:
		o.Duration = millis()
	case 21:
		o.Importer = d.String()
	case 22:
		o.Original = addPair(d, o.Original)
	}
}

func addPair(d *canonical.Decoder, m map[string]string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	k, v := d.Pair()
	m[k] = v
	return m
}

// Label is words that a person puts on a commit: a line and named values.
type Label struct {
	Text string
	Meta map[string]string
}

// IsZero reports whether there is no label.
func (l Label) IsZero() bool { return l.Text == "" && len(l.Meta) == 0 }

// Object returns the object of l.
func (l Label) Object() objects.Object {
	var e canonical.Encoder
	e.String(1, l.Text)
	e.Map(2, l.Meta)
	return objects.New(objects.KindLabel, nil, nil, e.Bytes())
}

// ParseLabel reads the object of a label. Anything else is a
// *[objects.CorruptError].
func ParseLabel(obj objects.Object) (Label, error) {
	var l Label
	d := canonical.NewDecoder(obj.Data)
	if obj.Kind != objects.KindLabel || len(obj.Links)+len(obj.Parents) > 0 {
		d.Refuse("a " + obj.Kind.String())
	}
	for d.Next() {
		switch d.Field() {
		case 1:
			l.Text = d.String()
		case 2:
			l.Meta = addPair(d, l.Meta)
		}
	}
	if err := d.Err(); err != nil {
		return Label{}, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("label record: %w", err)}
	}
	return l, nil
}
