package llm

// Problem is a reason for which a provider would refuse a request.
type Problem struct {
	Rule    string // its name, such as tool-result-missing
	Path    string // where in the request body, such as messages[2]; may be empty
	CallID  string // of the tool call it concerns; may be empty
	Block   Place  // the block it concerns; zero: not known
	Message string
	Warning bool // the request is answered all the same, if not as well
}

// Place is a block of a request. Both numbers count from 1.
type Place struct{ Message, Block int }

// Checker is a target that knows what its provider refuses.
type Checker interface {
	// Check lists what is wrong with a request, in the order of its rules; none:
	// nothing is known that speaks against it. It needs Body, which Encode makes.
	Check(req *Request) []Problem
}
