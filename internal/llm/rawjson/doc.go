// Package rawjson reads and writes JSON without changing a byte of a string.
//
// encoding/json replaces lone surrogates and invalid UTF-8 by U+FFFD and turns
// long numbers into floats. A store that must return exactly the bytes that a
// provider sent needs the original text. Here a [Value] is a slice of the text it
// came from, and a string or a number is decoded only on request.
//
// For most uses:
//
//	v, err := rawjson.Parse(body)
//	for choice := range v.Get("choices").Elements() {
//		text += choice.Get("delta", "content").Text()
//	}
//
//	var o rawjson.Object
//	o.SetString("role", "assistant")
//	o.Set("reasoning_details", details) // the bytes as they came
//	body := o.Bytes()
//
// No method of a Value panics, whatever its bytes are. The results for a Value that
// was not checked by [Parse] and is not JSON are unspecified. Several goroutines may
// read a Value as long as its bytes do not change. The package does not map JSON to
// Go types, and should not.
package rawjson
