// Package rawjson reads and writes JSON without changing a byte of a string.
//
// encoding/json replaces lone surrogates and invalid UTF-8 by U+FFFD and turns
// long numbers into floats. A store that has to give back what a provider sent,
// byte for byte, needs the text itself: here a [Value] is a piece of the text it
// came from, and nothing is decoded before it is asked for.
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
// Nothing here panics, whatever bytes a Value has; what a Value that [Parse] did
// not check has to say is unspecified where it is not JSON. Values may be read by
// any number of goroutines as long as nobody writes to the bytes behind them. The
// package does not map JSON to Go types: that is not wanted.
package rawjson
