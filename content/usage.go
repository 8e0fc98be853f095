package content

// Usage is what a response cost, in tokens. Zero is none, or not reported; a
// response with no report at all has the zero Usage.
type Usage struct {
	Input      int64  // all of the prompt, cached or not
	Output     int64  // all that was generated, reasoning included
	Reasoning  int64  // the part of Output that was thought
	Cached     int64  // the part of Input that was read from a cache
	CacheWrite int64  // the part of Input that was written to one
	Raw        []byte // the provider's own JSON
}

// IsZero tells whether nothing was reported.
func (u Usage) IsZero() bool {
	return u.Input|u.Output|u.Reasoning|u.Cached|u.CacheWrite == 0 && len(u.Raw) == 0
}
