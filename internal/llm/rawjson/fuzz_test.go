package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "null", " [1,2.5e-3,-0] ", "\xEF\xBB\xBF{}", `{"a":{"b":["\ud83d\ude00","\ud800"]},"a":"\"\\"}`,
		"\"\xff\xed\xa0\x80\"", `{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}`, "[1,]", `{"a"`, "\"\x00\"", "1e5", "[[[[]]]]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		exercise(Value(b))
		v, err := Parse(b)
		if valid := json.Valid(bytes.TrimPrefix(b, bom)); valid != (err == nil) && !(valid && depth(b) > MaxDepth) {
			t.Fatalf("Parse: %v, json.Valid: %t", err, valid)
		}
		if err != nil {
			checkError(t, b, err)
			return
		}
		c := Compact(v)
		if !Equal(v, c) || !Equal(c, v) || !Equal(v, rebuildClean(v)) {
			t.Fatalf("%q is not equal to its compact form %q or its parts", v, c)
		}
		var want bytes.Buffer
		if json.Compact(&want, v) != nil || !bytes.Equal(c, want.Bytes()) {
			t.Fatalf("Compact(%q) = %q, want %q", v, c, want.Bytes())
		}
	})
}

// checkError looks at the parts of a syntax error.
func checkError(t *testing.T, b []byte, err error) {
	t.Helper()
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(b) || syntax.Truncated != (syntax.Offset == len(b)) {
		t.Fatalf("error %#v for %d bytes", err, len(b))
	}
}

// exercise calls everything on bytes that are perhaps not JSON.
func exercise(v Value) {
	for key, val := range v.Members() {
		v.Get(key, "a")
		val.Int()
	}
	for val := range v.Elements() {
		exercise(val)
	}
	v.Text()
	v.Int()
	v.Bool()
	Equal(v, append(Value(nil), v...))
	Equal(v, Compact(v))
	Without(v, "a", "")
	var o Object
	o.Merge(v)
	o.Set("a", v)
	o.Bytes()
}

// rebuildClean is rebuild, going through decoded strings where nothing is lost.
func rebuildClean(v Value) Value {
	switch v.Kind() {
	case KindString:
		if s := v.Text(); Clean(s) {
			return AppendString(nil, s)
		}
		return v
	case KindObject:
		var o Object
		for key, val := range v.Members() {
			if !Clean(key) {
				return v
			}
			o.Set(key, rebuildClean(val))
		}
		return o.Bytes()
	case KindArray:
		var a Array
		for val := range v.Elements() {
			a.Add(rebuildClean(val))
		}
		return a.Bytes()
	default:
		return v
	}
}

// depth is how deep the brackets outside strings lie in each other.
func depth(b []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			now++
		case '}', ']':
			now--
		}
		deepest = max(deepest, now)
		i++
	}
	return deepest
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/<>&\n\x00\u2028", "\xff\xfe", "\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98", "é\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString([]byte("x"), s)[1:]
		if !json.Valid(b) || !utf8.Valid(b) {
			t.Fatalf("AppendString(%q) = %q", s, b)
		}
		if back := Value(b).Text(); (back == s) != Clean(s) {
			t.Fatalf("%q comes back as %q, clean: %t", s, back, Clean(s))
		}
		var std string
		if err := json.Unmarshal(b, &std); err != nil || std != Value(b).Text() {
			t.Fatalf("encoding/json reads %q: %v", std, err)
		}
		if n := strings.Count(Value(b).Text(), "\ufffd"); Clean(s) != (n == strings.Count(s, "\ufffd")) {
			t.Fatalf("%d replacement characters for %q", n, s)
		}
	})
}

// anyJSON generates what encoding/json can decode without loss.
func anyJSON() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Float64Range(-1e300, 1e300).AsAny(),
		rapid.String().AsAny(),
	)
	node := leaf
	for range 3 {
		inner := node
		node = rapid.OneOf(
			leaf,
			rapid.SliceOfN(inner, 0, 4).AsAny(),
			rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny(),
		)
	}
	return node
}

// TestAgreesWithEncodingJSON writes values with encoding/json and reads them both
// ways.
func TestAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyJSON().Draw(t, "x")
		var b []byte
		var err error
		if rapid.Bool().Draw(t, "indent") {
			b, err = json.MarshalIndent(x, " ", "\t")
		} else {
			b, err = json.Marshal(x)
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var std any
		if err := dec.Decode(&std); err != nil {
			t.Fatal(err)
		}
		same(t, v, std)
	})
}

// same compares v with what encoding/json made of it, piece by piece.
func same(t *rapid.T, v Value, std any) {
	switch x := std.(type) {
	case nil:
		if v.Kind() != KindNull {
			t.Fatalf("%s is not null", v)
		}
	case bool:
		if v.Kind() != KindBool || v.Bool() != x {
			t.Fatalf("%s is not %t", v, x)
		}
	case json.Number:
		n, ok := v.Int()
		if m, err := x.Int64(); err == nil && (!ok || n != m) {
			t.Fatalf("%s is not %d", v, m)
		}
		if v.Kind() != KindNumber || string(v) != x.String() {
			t.Fatalf("%s is not %s", v, x)
		}
	case string:
		if v.Kind() != KindString || v.Text() != x {
			t.Fatalf("%s is not %q", v, x)
		}
	case []any:
		list := slices.Collect(v.Elements())
		if v.Kind() != KindArray || len(list) != len(x) {
			t.Fatalf("%s has %d elements, not %d", v, len(list), len(x))
		}
		for i := range x {
			same(t, list[i], x[i])
		}
	case map[string]any:
		if v.Kind() != KindObject || len(lastMembers(v)) != len(x) {
			t.Fatalf("%s has not %d members", v, len(x))
		}
		for key := range x {
			same(t, v.Get(key), x[key])
		}
	}
}

// TestEscapesRoundTrip checks that any string of code units, surrogates alone or
// in pairs, decodes to what a straightforward decoder gives.
func TestEscapesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.OneOf(
			rapid.Uint16(), rapid.Uint16Range(0xD7F0, 0xE00F), rapid.Uint16Range(0, 0x80),
		), 0, 12).Draw(t, "units")
		text, want := []byte{'"'}, []byte(nil)
		for i := 0; i < len(units); i++ {
			u := rune(units[i])
			text = appendUnit(text, u)
			if u >= 0xD800 && u < 0xDC00 && i+1 < len(units) && units[i+1] >= 0xDC00 && units[i+1] < 0xE000 {
				i++
				text = appendUnit(text, rune(units[i]))
				want = utf8.AppendRune(want, (u-0xD800)<<10+rune(units[i])-0xDC00+0x10000)
			} else if u >= 0xD800 && u < 0xE000 {
				want = append(want, 0xED, byte(0x80|u>>6&0x3F), byte(0x80|u&0x3F))
			} else {
				want = utf8.AppendRune(want, u)
			}
		}
		v, err := Parse(append(text, '"'))
		if err != nil || v.Text() != string(want) {
			t.Fatalf("%s decodes to %q, want %q, %v", v, v.Text(), want, err)
		}
	})
}

func appendUnit(b []byte, u rune) []byte {
	const hex = "0123456789ABCDEF"
	return append(b, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1769546683,"model":"deepseek-ai/DeepSeek-R1","system_fingerprint":"fp_454c494f52","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":null,"content":" the answer\n"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":10,"completion_tokens":955,"total_tokens":965,"completion_tokens_details":{"reasoning_tokens":420}}}`)
	b.Run("rawjson", func(b *testing.B) {
		b.SetBytes(int64(len(chunk)))
		b.ReportAllocs()
		for b.Loop() {
			v, err := Parse(chunk)
			if err != nil {
				b.Fatal(err)
			}
			n, _ := v.Get("usage", "completion_tokens_details", "reasoning_tokens").Int()
			for choice := range v.Get("choices").Elements() {
				delta := choice.Get("delta")
				if delta.Get("content").Text() != " the answer\n" || delta.Get("reasoning_content").Text() != "" || n != 420 {
					b.Fatal("wrong")
				}
			}
		}
	})
	b.Run("any", func(b *testing.B) {
		b.SetBytes(int64(len(chunk)))
		b.ReportAllocs()
		for b.Loop() {
			var v map[string]any
			if err := json.Unmarshal(chunk, &v); err != nil {
				b.Fatal(err)
			}
			n := v["usage"].(map[string]any)["completion_tokens_details"].(map[string]any)["reasoning_tokens"].(float64)
			for _, choice := range v["choices"].([]any) {
				delta := choice.(map[string]any)["delta"].(map[string]any)
				if text, _ := delta["content"].(string); text != " the answer\n" || n != 420 {
					b.Fatal("wrong")
				}
			}
		}
	})
}

func BenchmarkParseLongString(b *testing.B) {
	text := append(append([]byte(`{"encrypted_content":"`), bytes.Repeat([]byte("gAAAAABo"), 1<<17)...), `"}`...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendString(b *testing.B) {
	s := strings.Repeat("Some text with a \"quote\", a line\nand an é. ", 1000)
	var dst []byte
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendString(dst[:0], s)
	}
}
