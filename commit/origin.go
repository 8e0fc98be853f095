package commit

import (
	"fmt"
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
	var r canonical.Record
	own := *o
	own.fields(&r)
	var links []objects.ID
	if !o.Manifest.IsZero() {
		links = []objects.ID{o.Manifest}
	}
	return objects.New(objects.KindOrigin, nil, links, r.Bytes())
}

// fields writes the fields of the record of o, or reads them.
func (o *Origin) fields(r *canonical.Record) {
	const maxCount = 1 << 63 // whatever is written
	var started int64        // absent for the zero time
	if !o.Started.IsZero() {
		started = o.Started.UnixMilli()
	}
	r.String(1, (*string)(&o.Source))
	r.String(2, &o.Session)
	r.String(3, &o.Provider)
	r.String(4, &o.Dialect)
	r.String(5, &o.Endpoint)
	r.String(6, &o.Model)
	r.String(7, &o.ResponseID)
	r.String(8, &o.Finish)
	r.Bool(9, &o.Incomplete)
	canonical.Number(r, 10, &o.UncommittedReasoning, 1<<31)
	canonical.Number(r, 11, &o.Usage.Input, maxCount)
	canonical.Number(r, 12, &o.Usage.Output, maxCount)
	canonical.Number(r, 13, &o.Usage.Reasoning, maxCount)
	canonical.Number(r, 14, &o.Usage.Cached, maxCount)
	canonical.Number(r, 15, &o.Usage.CacheWrite, maxCount)
	r.Raw(16, &o.Usage.Raw)
	r.Map(17, &o.Settings)
	if r.Int(18, &started); started != 0 {
		o.Started = time.UnixMilli(started).UTC()
	}
	r.Millis(19, &o.FirstToken)
	r.Millis(20, &o.Duration)
	r.String(21, &o.Importer)
	r.Map(22, &o.Original)
}

// ParseOrigin reads the object of an origin. Anything else is a
// *[objects.CorruptError].
func ParseOrigin(obj objects.Object) (*Origin, error) {
	o := &Origin{}
	r := canonical.NewReader(obj.Data)
	if obj.Kind != objects.KindOrigin || len(obj.Links) > 1 || len(obj.Parents) > 0 {
		r.Refuse(fmt.Sprintf("a %s with %d links", obj.Kind, len(obj.Links)))
	}
	o.fields(&r)
	if err := r.Err(); err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("origin record: %w", err)}
	}
	if len(obj.Links) == 1 {
		o.Manifest = obj.Links[0]
	}
	return o, nil
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
	var r canonical.Record
	l.fields(&r)
	return objects.New(objects.KindLabel, nil, nil, r.Bytes())
}

func (l *Label) fields(r *canonical.Record) {
	r.String(1, &l.Text)
	r.Map(2, &l.Meta)
}

// ParseLabel reads the object of a label. Anything else is a
// *[objects.CorruptError].
func ParseLabel(obj objects.Object) (Label, error) {
	var l Label
	r := canonical.NewReader(obj.Data)
	if obj.Kind != objects.KindLabel || len(obj.Links)+len(obj.Parents) > 0 {
		r.Refuse("a " + obj.Kind.String())
	}
	l.fields(&r)
	if err := r.Err(); err != nil {
		return Label{}, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("label record: %w", err)}
	}
	return l, nil
}
