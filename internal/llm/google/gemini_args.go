package google

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// How the arguments of a streamed call are assembled.
//
// Gemini streams the arguments of a call as single values, each with its path (JSONPath):
// {"jsonPath":"$.a[0].b", "stringValue":"x","willContinue":true}. A string may come in
// several pieces with the same path. The reader keeps a tree of values: findOrCreate follows a path,
// segment by segment, from the root, and creates the members and array elements that do not exist;
// addElement then stores the value, or appends the piece of a string; json encodes the tree.
// The depth of a path and the number of values are limited, because one path can name an
// array element with a large index.

// partialArgs collects the arguments of one streamed call.
type partialArgs struct {
	root  argsValue
	count int // number of values in the tree
}

// argsValue is one value of the tree: an object, an array, a string or another scalar.
type argsValue struct {
	members map[string]*argsValue
	keys    []string // keys of members, in the order in which they came
	items   []*argsValue
	text    []string      // pieces of a string in JSON form, without the quotes; nil: it is not a string
	other   rawjson.Value // any other value
}

// maxArgs limits the number of values of one call, including array elements that have no path
// of their own.
const maxArgs = 1 << 16

// addCompleteArguments adds the members of args, arguments that came complete and not by paths.
func (a *partialArgs) addCompleteArguments(args rawjson.Value) {
	for key, value := range args.Members() {
		a.root.findOrCreateMember(key).other = bytes.Clone(value)
	}
}

// addElement sets the value that an element of partialArgs has at its path.
func (a *partialArgs) addElement(v rawjson.Value) error {
	path := v.Get("jsonPath").Text()
	at, err := a.findOrCreate(path)
	if err != nil {
		return fmt.Errorf("%w: arguments at %q: %w", llm.ErrProtocol, rawjson.Excerpt([]byte(path)), err)
	}
	for key, value := range v.Members() {
		switch key {
		case "stringValue":
			if value.Kind() == rawjson.KindString {
				at.text = append(at.text, string(value[1:len(value)-1]))
			}
		case "numberValue", "boolValue":
			at.other = bytes.Clone(value)
		case "nullValue":
			at.other = rawjson.Value("null")
		}
	}
	return nil
}

// findOrCreate returns the value at a path, and creates it if necessary.
func (a *partialArgs) findOrCreate(path string) (*argsValue, error) {
	at := &a.root
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, errors.New("it does not begin with $")
	}
	for depth := 0; rest != ""; depth++ {
		if depth == rawjson.MaxDepth/2 {
			return nil, fmt.Errorf("more than %d levels", depth)
		}
		segment, err := cutPathSegment(rest)
		if err != nil {
			return nil, err
		}
		if a.count += at.countMissing(segment); a.count > maxArgs {
			return nil, fmt.Errorf("more than %d values", maxArgs)
		}
		at, rest = at.findOrCreateChild(segment), segment.rest
	}
	return at, nil
}

// pathSegment is one segment of a path: to an array element if index is not negative, else to the
// member key.
type pathSegment struct {
	key   string
	index int
	rest  string // the path after this segment
}

// countMissing returns how many values findOrCreateChild would create for a segment.
func (v *argsValue) countMissing(s pathSegment) int {
	if s.index >= 0 {
		return max(0, s.index+1-len(v.items))
	}
	if v.members[s.key] == nil {
		return 1
	}
	return 0
}

// findOrCreateChild returns the value that a segment leads to, and creates it if necessary.
func (v *argsValue) findOrCreateChild(s pathSegment) *argsValue {
	if s.index < 0 {
		return v.findOrCreateMember(s.key)
	}
	for len(v.items) <= s.index {
		v.items = append(v.items, &argsValue{})
	}
	return v.items[s.index]
}

// findOrCreateMember returns the value of a member, and creates it if necessary.
func (v *argsValue) findOrCreateMember(key string) *argsValue {
	m := v.members[key]
	if m == nil {
		if v.members == nil {
			v.members = map[string]*argsValue{}
		}
		m = &argsValue{}
		v.members[key], v.keys = m, append(v.keys, key)
	}
	return m
}

// json returns the value so far; null for a value that no path set.
func (v *argsValue) json() rawjson.Value {
	switch {
	case v.members != nil:
		var o rawjson.Object
		for _, key := range v.keys {
			o.Set(key, v.members[key].json())
		}
		return o.Bytes()
	case v.items != nil:
		var list rawjson.Array
		for _, item := range v.items {
			list.Add(item.json())
		}
		return list.Bytes()
	case v.text != nil:
		return rawjson.Value(`"` + strings.Join(v.text, "") + `"`)
	case v.other != nil:
		return v.other
	}
	return rawjson.Value("null")
}

// json returns the arguments so far.
func (a *partialArgs) json() rawjson.Value {
	if a.root.members == nil {
		return rawjson.Value("{}")
	}
	return a.root.json()
}

// cutPathSegment reads the first segment of a path.
func cutPathSegment(path string) (pathSegment, error) {
	if rest, ok := strings.CutPrefix(path, "."); ok {
		n := strings.IndexAny(rest, ".[")
		if n < 0 {
			n = len(rest)
		}
		return pathSegment{key: rest[:n], index: -1, rest: rest[n:]}, nil
	}
	rest, ok := strings.CutPrefix(path, "[")
	if !ok || rest == "" {
		return pathSegment{}, errors.New("want . or [")
	}
	if quote := rest[:1]; quote == "'" || quote == `"` {
		key, rest, ok := strings.Cut(rest[1:], quote+"]")
		if !ok {
			return pathSegment{}, errors.New("a quote is open")
		}
		return pathSegment{key: key, index: -1, rest: rest}, nil
	}
	digits, rest, _ := strings.Cut(rest, "]")
	n, err := strconv.ParseUint(digits, 10, 24)
	if err != nil {
		return pathSegment{}, errors.New("want an index")
	}
	return pathSegment{index: int(n), rest: rest}, nil
}
