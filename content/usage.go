package content

// Usage is what a response cost, in tokens. Zero is none, or not reported; a
// response with no report at all has the zero Usage.
type Usage struct {
	Input      int64  `json:"input"`                 // all of the prompt, cached or not
	Output     int64  `json:"output"`                // all that was generated, reasoning included
	Reasoning  int64  `json:"reasoning"`             // the part of Output that is reasoning
	Cached     int64  `json:"cached"`                // the part of Input that was read from a cache
	CacheWrite int64  `json:"cache_write,omitempty"` // the part of Input that was written to one
	Raw        []byte `json:"-"`                     // the provider's own JSON
}

// IsZero reports whether nothing was reported.
func (u Usage) IsZero() bool {
	return u.Input|u.Output|u.Reasoning|u.Cached|u.CacheWrite == 0 && len(u.Raw) == 0
}

// MaxTokens is the most tokens that a count of a Usage can be: more than any response
// has, and so few that the sum of all responses of a store fits an int64.
const MaxTokens = 1 << 40

// MaxRawUsage is the most bytes that the provider's JSON of a Usage can have.
const MaxRawUsage = 64 << 10

// BoundedTokens returns n, or 0, which is not reported, when no response can have n tokens:
// for numbers from a provider or a log.
func BoundedTokens(n int64) int64 {
	if n < 0 || n > MaxTokens {
		return 0
	}
	return n
}

// Bounded returns u without the counts that no response can have (see [BoundedTokens]), and
// without a Raw that is too long to be a report of usage.
func (u Usage) Bounded() Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.Reasoning, &u.Cached, &u.CacheWrite} {
		*n = BoundedTokens(*n)
	}
	if len(u.Raw) > MaxRawUsage {
		u.Raw = nil
	}
	return u
}
