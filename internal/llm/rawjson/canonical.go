package rawjson

import (
	"bytes"
	"slices"
	"strconv"
)

// AppendCanonical appends a text to dst that is the same for all ways to write a value: white space, the
// order of members, escapes and the notation of numbers do not matter, and members with one of the
// keys are left out at any depth. The text is for comparing and hashing; it is not JSON.
func AppendCanonical(dst []byte, v Value, without ...string) []byte {
	switch v.Kind() {
	case KindObject:
		var members [][]byte
		for key, member := range v.Members() {
			if !slices.Contains(without, key) {
				members = append(members, AppendCanonical(append(AppendString(nil, key), ':'), member, without...))
			}
		}
		slices.SortFunc(members, bytes.Compare)
		return append(append(append(dst, '{'), bytes.Join(members, []byte{','})...), '}')
	case KindArray:
		dst = append(dst, '[')
		for element := range v.Elements() {
			dst = append(AppendCanonical(dst, element, without...), ',')
		}
		return append(dst, ']')
	case KindString:
		return AppendString(dst, v.Text())
	case KindNumber:
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return strconv.AppendFloat(dst, f, 'g', -1, 64)
		}
	}
	return append(dst, v...)
}
