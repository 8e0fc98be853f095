package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return v
}

func TestParseAccepts(t *testing.T) {
	for _, c := range []struct{ text, value string }{
		{"null", "null"},
		{" \t\r\n true \n\n   ", "true"},
		{"\xEF\xBB\xBF {} ", "{}"},
		{`[ 1 , 2 ]`, `[ 1 , 2 ]`},
		{`{"a":{"b":[{}]},"a":""}`, `{"a":{"b":[{}]},"a":""}`},
		{"-0.0e+00", "-0.0e+00"},
		{"123456789012345678901234567890", "123456789012345678901234567890"},
		{"\"\xff\xed\xa0\x80\x7f\"", "\"\xff\xed\xa0\x80\x7f\""},
		{`"\ud800\"\\\/\b\f\n\r\t\uDBff"`, `"\ud800\"\\\/\b\f\n\r\t\uDBff"`},
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)},
	} {
		if v := parse(t, c.text); string(v) != c.value {
			t.Errorf("Parse(%q) = %q, want %q", c.text, v, c.value)
		}
	}
}

func TestParseDoesNotCopy(t *testing.T) {
	b := []byte(` {"a":1} `)
	v, err := Parse(b)
	if err != nil || &v[0] != &b[1] || cap(v) != len(v) {
		t.Fatalf("Parse gives %q (capacity %d), %v", v, cap(v), err)
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, MaxDepth)
	for _, c := range []struct {
		text      string
		offset    int
		truncated bool
	}{
		{"", 0, true},
		{" \n", 2, true},
		{"\xEF\xBB\xBF", 3, true},
		{"\xEF\xBB", 0, false},
		{"{} x", 3, false},
		{"{}\x00", 2, false},
		{"tru", 3, true},
		{"trux", 3, false},
		{"nulll", 4, false},
		{"NaN", 0, false},
		{"-", 1, true},
		{"01", 1, false},
		{"+1", 0, false},
		{".5", 0, false},
		{"1.", 2, true},
		{"1.e3", 2, false},
		{"1e", 2, true},
		{"1e+x", 3, false},
		{`"abc`, 4, true},
		{`"a` + "\n" + `"`, 2, false},
		{`"a` + "\x00" + `b"`, 2, false},
		{`"\`, 2, true},
		{`"\x"`, 2, false},
		{`"\u12`, 5, true},
		{`"\u12g4"`, 5, false},
		{`"12345678` + "\x1f" + `"`, 9, false},
		{"[1,]", 3, false},
		{"[1 2]", 3, false},
		{"[1", 2, true},
		{"[", 1, true},
		{"{,}", 1, false},
		{`{"a"}`, 4, false},
		{`{"a":1,}`, 7, false},
		{`{"a":}`, 5, false},
		{`{"a":1`, 6, true},
		{`{1:2}`, 1, false},
		{"]", 0, false},
		{"[}", 1, false},
		{deep + "{}" + strings.Repeat("}", MaxDepth), len(deep), false},
	} {
		v, err := Parse([]byte(c.text))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || v != nil {
			t.Errorf("Parse(%q) = %q, %v; want a syntax error", c.text, v, err)
			continue
		}
		if syntax.Offset != c.offset || syntax.Truncated != c.truncated {
			t.Errorf("Parse(%q): %v (truncated: %t), want offset %d, truncated %t", c.text, err, syntax.Truncated, c.offset, c.truncated)
		}
	}
}

func TestParseStopsEarlyInDeepText(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		if _, err := Parse([]byte(strings.Repeat(open, 1_000_000))); err == nil || !strings.Contains(err.Error(), "256") {
			t.Errorf("a million %q: %v", open, err)
		}
	}
}

func TestGet(t *testing.T) {
	v := parse(t, `{"a": {"b" : [1,"x"], "b":{"c":"deep"}}, "s":"text","\u0061b":2,"n":null,"":3,"q\"":4}`)
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, string(v)},
		{[]string{"a", "b"}, `{"c":"deep"}`},
		{[]string{"a", "b", "c"}, `"deep"`},
		{[]string{"ab"}, "2"},
		{[]string{"n"}, "null"},
		{[]string{""}, "3"},
		{[]string{`q"`}, "4"},
		{[]string{"s", "x"}, ""},
		{[]string{"x"}, ""},
		{[]string{"x", "y"}, ""},
		{[]string{"a", "b", "c", "d"}, ""},
	} {
		if got := v.Get(c.path...); string(got) != c.want || (c.want == "") != (got == nil) {
			t.Errorf("Get(%q) = %q, want %q", c.path, got, c.want)
		}
	}
}

func TestKind(t *testing.T) {
	for text, want := range map[string]Kind{
		"": KindAbsent, "x": KindAbsent, " 1": KindAbsent, "null": KindNull, "true": KindBool, "false": KindBool,
		"1": KindNumber, "-1": KindNumber, `""`: KindString, "[]": KindArray, "{}": KindObject,
	} {
		if got := Value(text).Kind(); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if s := KindObject.String() + Kind(9).String(); s != "objectkind(9)" {
		t.Errorf("names: %s", s)
	}
}

func TestMembersAndElements(t *testing.T) {
	var got []string
	for key, val := range parse(t, `{"b" :1, "a":[{}] ,"b":"\u0041"}`).Members() {
		got = append(got, key+"="+string(val))
	}
	if want := []string{"b=1", "a=[{}]", `b="\u0041"`}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	list := parse(t, `[ 1 ,[2,"]"], {"x":"}"},null]`)
	got = got[:0]
	for val := range list.Elements() {
		got = append(got, string(val))
	}
	want := []string{"1", `[2,"]"]`, `{"x":"}"}`, "null"}
	if !slices.Equal(got, want) {
		t.Errorf("elements %q, want %q", got, want)
	}
	for i := range want {
		if string(list.At(i)) != want[i] {
			t.Errorf("At(%d) = %q", i, list.At(i))
		}
	}
	if list.At(-1) != nil || list.At(4) != nil || Value("{}").At(0) != nil {
		t.Error("At outside the array is not nil")
	}
	for range Value("[1,2]").Members() {
		t.Error("an array has members")
	}
	for range Value(`{"a":1}`).Elements() {
		t.Error("an object has elements")
	}
	for range list.Elements() {
		break
	}
	for range Value(`{"a":1,"b":2}`).Members() {
		break
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		`""`:                      "",
		`"plain"`:                 "plain",
		`"a\"\\\/\b\f\n\r\tz"`:    "a\"\\/\b\f\n\r\tz",
		`"\u00e9\u20AC"`:          "\u00e9\u20ac",
		`"\ud83d\ude00!"`:         "\U0001F600!",
		`"\ud800"`:                "\xed\xa0\x80",
		`"\udfff\ud800"`:          "\xed\xbf\xbf\xed\xa0\x80",
		`"\ud83d\ud83d\ude00"`:    "\xed\xa0\xbd\U0001F600",
		`"\ud83d\n"`:              "\xed\xa0\xbd\n",
		"\"\xff\\n\xed\xa0\x80\"": "\xff\n\xed\xa0\x80",
		`"\u0000"`:                "\x00",
		`12`:                      "",
		``:                        "",
		`"`:                       "",
		`"cut`:                    "cut",
		`"cut\`:                   `cut\`,
		`"cut\"`:                  `cut\`,
		`"\u12`:                   `\u12`,
		`"\q\u00zz"`:              `\q\u00zz`,
		`"\ud83d\u00`:             "\xed\xa0\xbd\\u00",
	} {
		if got := Value(text).Text(); got != want {
			t.Errorf("Text(%s) = %q, want %q", text, got, want)
		}
	}
}

func TestIntAndBool(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "12": "12", "12.0": "12", "1.2e1": "12", "120E-1": "12", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": "", "9223372036854775807.0": "9223372036854775807",
		"-9223372036854775809.0": "", "1e19": "", "1e18": "1000000000000000000", "1.5": "", "1e-1": "", "0e999": "0", "1e99999999999999999999": "",
		`"1"`: "", "null": "", "": "", "-": "", "1x": "", "1e": "", "1.2.3": "", "--1": "", "1_0": "",
	} {
		n, ok := Value(text).Int()
		if ok != (want != "") || ok && big.NewInt(n).String() != want {
			t.Errorf("Int(%s) = %d, %t; want %q", text, n, ok, want)
		}
	}
	if !Value("true").Bool() || Value("false").Bool() || Value(`"true"`).Bool() || Value(nil).Bool() {
		t.Error("Bool is wrong")
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                           `""`,
		"a\"\\/\b\f\n\r\t":           `"a\"\\/\b\f\n\r\t"`,
		"\x00\x1f\x7f":               "\"\\u0000\\u001f\x7f\"",
		"<b>&\u2028\u2029\U0001F600": "\"<b>&\u2028\u2029\U0001F600\"",
		"\xed\xa0\x80":               "\"\ufffd\"",
		"\xed\xa0\xbd\xed\xb8\x80":   "\"\ufffd\ufffd\"",
		"a\xffb\xfe\xfd":             "\"a\ufffdb\ufffd\ufffd\"",
		"\xe2\x82":                   "\"\ufffd\"",
		"\xe2\x82x":                  "\"\ufffdx\"",
		"\xf0\x9f\x98":               "\"\ufffd\"",
		"\xf0\x9f":                   "\"\ufffd\"",
		"\xf0\x80\x80\x80":           "\"\ufffd\ufffd\ufffd\ufffd\"",
		"\xf4\x90\x80\x80":           "\"\ufffd\ufffd\ufffd\ufffd\"",
		"\xf4\x8f\xbf":               "\"\ufffd\"",
		"\xe0\x80\x80":               "\"\ufffd\ufffd\ufffd\"",
		"\xe0\xa0":                   "\"\ufffd\"",
		"\xed\x9f":                   "\"\ufffd\"",
		"\xed\xa0":                   "\"\ufffd\ufffd\"",
		"\xc3":                       "\"\ufffd\"",
		"\xc0\xaf\"":                 "\"\ufffd\ufffd\\\"\"",
		"\ufffd":                     "\"\ufffd\"",
	} {
		if got := string(AppendString(nil, s)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
		if got := Value(AppendString(nil, s)).Text() == s; got != Clean(s) {
			t.Errorf("Clean(%q) is %t, but text kept: %t", s, Clean(s), got)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"null", "null", true},
		{"null", "", false},
		{"true", "false", false},
		{`{"a":1,"b":[ 2 ,3]}`, `{ "b" :[2,3], "a":1}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`{"a":1,"a":2}`, `{"a":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1,2]`, `[1]`, false},
		{`[]`, `{}`, false},
		{`"\u0041/"`, `"A\/"`, true},
		{`"\ud800"`, `"\ufffd"`, false},
		{`"\ud800"`, "\"\xed\xa0\x80\"", true},
		{"\"\xff\"", "\"\xfe\"", false},
		{"1", "1.0", true},
		{"10e-1", "1", true},
		{"100", "1E+2", true},
		{"0", "-0.0e5", true},
		{"9007199254740993", "9007199254740992", false},
		{"0.1", "0.10000000000000000000001", false},
		{"1e400", "10e399", true},
		{"1e99999999999", "1e99999999999", true},
		{"1e99999999999", "10e99999999998", false},
		{"1", "-1", false},
	} {
		if Equal(Value(c.a), Value(c.b)) != c.want || Equal(Value(c.b), Value(c.a)) != c.want {
			t.Errorf("Equal(%s, %s) is %t", c.a, c.b, !c.want)
		}
	}
	deep := strings.Repeat("[", 100_000)
	if Equal(Value(deep+"1"), Value(deep+"2")) {
		t.Error("deep garbage is equal")
	}
}

func TestCompactAndWithout(t *testing.T) {
	v := parse(t, "{ \"a b\" : [ 1 , \" x \\\" \" ] ,\n\t\"c\":{ } }")
	if got, want := string(Compact(v)), `{"a b":[1," x \" "],"c":{}}`; got != want {
		t.Errorf("Compact = %s, want %s", got, want)
	}
	if c := Compact(v); &Compact(c)[0] != &c[0] {
		t.Error("Compact copies what is compact")
	}
	o := Value(`{"a":1, "\u0062":[ 2 ],"c":"\ud800","a":3}`)
	for _, c := range []struct {
		keys []string
		want string
	}{
		{nil, string(o)},
		{[]string{"x"}, string(o)},
		{[]string{"a"}, `{"\u0062":[ 2 ],"c":"\ud800"}`},
		{[]string{"b", "c"}, `{"a":1,"a":3}`},
		{[]string{"c", "b", "a"}, `{}`},
	} {
		if got := Without(o, c.keys...); string(got) != c.want {
			t.Errorf("Without(%q) = %s, want %s", c.keys, got, c.want)
		}
	}
	if got := Without(Value("[1]"), "a"); string(got) != "[1]" {
		t.Errorf("Without of an array = %s", got)
	}
}

func TestObject(t *testing.T) {
	var o Object
	if got := string(o.Bytes()); got != "{}" {
		t.Errorf("empty object %s", got)
	}
	o.Set("absent", nil)
	o.SetString("s", "<\xff>")
	o.SetInt("n", -5)
	o.SetBool("b", true)
	o.Set("v", Value(`[ 1]`))
	_ = o.Bytes()
	o.SetString("s", "again")
	o.SetInt("\xff", 1)
	o.SetInt("\xff", 2)
	if got, want := string(o.Bytes()), "{\"n\":-5,\"b\":true,\"v\":[ 1],\"s\":\"again\",\"\ufffd\":2}"; got != want {
		t.Errorf("object %s, want %s", got, want)
	}
	o.Merge(Value(`{"n":0, "\u006e":1,"x\ud800": 1,"y":"a","y":"\u0062"}`))
	o.Merge(Value(`[]`))
	if got, want := string(o.Bytes()), "{\"n\":-5,\"b\":true,\"v\":[ 1],\"s\":\"again\",\"\ufffd\":2,\"x\\ud800\":1,\"y\":\"\\u0062\"}"; got != want {
		t.Errorf("merged %s, want %s", got, want)
	}
	var one Object
	one.SetInt("a", 1)
	one.SetInt("a", 2)
	if got := string(one.Bytes()); got != `{"a":2}` {
		t.Errorf("one member set twice: %s", got)
	}
	var many Object
	for range 2 {
		for i := range 100 {
			many.SetInt("k"+string(rune('A'+i)), int64(i))
		}
	}
	if n := len(lastMembers(many.Bytes())); n != 100 || !json.Valid(many.Bytes()) {
		t.Errorf("%d members: %s", n, many.Bytes())
	}
}

func TestArray(t *testing.T) {
	var a Array
	if got := string(a.Bytes()); got != "[]" {
		t.Errorf("empty array %s", got)
	}
	a.Add(nil)
	a.Add(Value("{}"))
	_ = a.Bytes()
	a.AddString("x\n")
	if got := string(a.Bytes()); got != `[{},"x\n"]` {
		t.Errorf("array %s", got)
	}
}

// TestRecordedJSON walks over all recorded JSON responses of the shared corpus.
func TestRecordedJSON(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(shared, "wire"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		v, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		files++
		again := rebuild(v)
		if !Equal(v, again) || !bytes.Equal(again, Compact(v)) {
			t.Errorf("%s: rebuilt from its parts it is another value", path)
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// rebuild takes v apart and puts it together again.
func rebuild(v Value) Value {
	switch v.Kind() {
	case KindObject:
		var o Object
		for key, val := range v.Members() {
			o.Set(key, rebuild(val))
		}
		return o.Bytes()
	case KindArray:
		var a Array
		for val := range v.Elements() {
			a.Add(rebuild(val))
		}
		return a.Bytes()
	default:
		return v
	}
}

// TestParseFirst: what follows the first value is given back as it is.
func TestParseFirst(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"a":1}{"b":2}`:    {`{"a":1}`, `{"b":2}`},
		` [1] , x `:         {`[1]`, `, x `},
		"\xEF\xBB\xBF{} \n": {`{}`, ``},
		`17 words`:          {`17`, `words`},
	} {
		v, rest, err := ParseFirst([]byte(text))
		if err != nil || string(v) != want[0] || string(rest) != want[1] {
			t.Errorf("%q: %s, then %q, %v", text, v, rest, err)
		}
	}
	if v, rest, err := ParseFirst([]byte(`{"a":`)); v != nil || rest != nil || err == nil {
		t.Errorf("%s, %s, %v", v, rest, err)
	}
}
