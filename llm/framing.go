package llm

// Framing is how a response body holds its JSON texts.
type Framing string

// The framings. FramingAuto and FramingStream are detected from the first bytes of
// the body; FramingStream takes a JSON text that stands alone for an event.
const (
	FramingAuto   Framing = ""
	FramingStream Framing = "stream" // any of the following but FramingJSON
	FramingJSON   Framing = "json"   // one JSON text
	FramingSSE    Framing = "sse"    // server-sent events
	FramingArray  Framing = "array"  // a JSON array whose elements are the events
	FramingLines  Framing = "lines"  // JSON texts one after the other, such as one per line
	FramingAWS    Framing = "aws"    // Amazon's binary event stream
)
