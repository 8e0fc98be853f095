package diff

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// script is spans as one string, such as " same"-"old"+"new".
func script(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		fmt.Fprintf(&b, "%c%q", " -+"[s.Op], s.Text)
	}
	return b.String()
}

// holds reports what spans between a and b do not keep to.
func holds(a, b string, spans []Span) error {
	var left, right strings.Builder
	for i, s := range spans {
		switch {
		case s.Text == "":
			return fmt.Errorf("span %d is empty", i)
		case s.Op > Add:
			return fmt.Errorf("span %d is a %s", i, s.Op)
		case i > 0 && spans[i-1].Op == s.Op:
			return fmt.Errorf("spans %d and %d are both %s", i-1, i, s.Op)
		case i > 0 && spans[i-1].Op == Add && s.Op == Remove:
			return fmt.Errorf("span %d adds before it removes", i-1)
		}
		if s.Op != Add {
			left.WriteString(s.Text)
		}
		if s.Op != Remove {
			right.WriteString(s.Text)
		}
	}
	if left.String() != a {
		return fmt.Errorf("A is %q, want %q", left.String(), a)
	}
	if right.String() != b {
		return fmt.Errorf("B is %q, want %q", right.String(), b)
	}
	return nil
}

func TestTextsCompared(t *testing.T) {
	for _, c := range []struct {
		name, a, b   string
		lines, words string
	}{
		{"nothing", "", "", "", ""},
		{"equal", "a\nb", "a\nb", ` "a\nb"`, ` "a\nb"`},
		{"from nothing", "", "a\n", `+"a\n"`, `+"a\n"`},
		{"to nothing", "a", "", `-"a"`, `-"a"`},
		{"a word", "I like tea.\n", "I like coffee.\n", `-"I like tea.\n"+"I like coffee.\n"`, ` "I like "-"tea"+"coffee" ".\n"`},
		{"a line between", "a\nb\n", "a\nx\nb\n", ` "a\n"+"x\n" "b\n"`, ` "a\n"+"x\n" "b\n"`},
		{"the end", "a\nb", "a\nb\n", ` "a\n"-"b"+"b\n"`, ` "a\nb"+"\n"`},
		{"a phrase", "the old grey cat sleeps", "the tiny black dog sleeps", `-"the old grey cat sleeps"+"the tiny black dog sleeps"`, ` "the "-"old grey cat"+"tiny black dog" " sleeps"`},
		{"scripts", "東京は晴れ", "東京は雨", `-"東京は晴れ"+"東京は雨"`, `-"東京は晴れ"+"東京は雨"`},
		{"bytes", "\xff\xfe", "\xff\x00", `-"\xff\xfe"+"\xff\x00"`, ` "\xff"-"\xfe"+"\x00"`},
		{"half a rune", "x \xe6\x9d\xb1", "x \xe6\x9d", `-"x 東"+"x \xe6\x9d"`, ` "x "-"東"+"\xe6\x9d"`},
		{"a blank and a last change", "a\na", "\r\n", `-"a\na"+"\r\n"`, `-"a"+"\r" "\n"-"a"`},
		{"crlf", "a\r\nb\r\n", "a\nb\r\n", `-"a\r\n"+"a\n" "b\r\n"`, ` "a"-"\r" "\nb\r\n"`},
	} {
		for _, words := range []bool{false, true} {
			want := c.lines
			if words {
				want = c.words
			}
			spans := Texts(c.a, c.b, TextOptions{Words: words, Timeout: time.Minute})
			if got := script(spans); got != want {
				t.Errorf("%s, words %v: %s\nwant %s", c.name, words, got, want)
			}
			if err := holds(c.a, c.b, spans); err != nil {
				t.Errorf("%s, words %v: %v", c.name, words, err)
			}
		}
	}
}

func TestNoByteIsLost(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "word", " ", "  ", "\n", "\r\n", "\t", "東", "é", "e\u0301", "\xff", "\xe6\x9d", "\ufffd", "\x00", "_", "1", ".", "\u2028", "\U0010ffff"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		a := text.Draw(t, "a")
		b := text.Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") {
			at := rapid.IntRange(0, len(a)).Draw(t, "at")
			b = a[:at] + b + a[at:]
		}
		spans := Texts(a, b, TextOptions{Words: rapid.Bool().Draw(t, "words")})
		if err := holds(a, b, spans); err != nil {
			t.Fatal(err)
		}
		if (len(spans) == 0) != (a == "" && b == "") || a == b && len(spans) > 1 {
			t.Fatalf("equal texts differ: %s", script(spans))
		}
	})
}

func TestHugeTexts(t *testing.T) {
	numbered := func(n int, end string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d%s\n", i, end)
		}
		return b.String()
	}
	lines := numbered(20_000, "")
	for _, c := range []struct {
		name, a, b string
		same       bool // much of it
	}{
		{"a line in the middle", lines, strings.Replace(lines, "line 9999\n", "another\n", 1), true},
		{"a line far from another", lines, strings.NewReplacer("line 7\n", "", "line 19000\n", "x\n").Replace(lines), true},
		{"every line", lines, numbered(20_000, "!"), false},
		{"one line", strings.Repeat("word ", 50_000), strings.Repeat("word ", 50_001), true},
		{"the same line again and again", strings.Repeat("x\n", 30_000), "y\n" + strings.Repeat("x\n", 20_000), true},
		{"too large to look at", strings.Repeat("a", maxCompared), "b", false},
	} {
		for _, words := range []bool{false, true} {
			spans := Texts(c.a, c.b, TextOptions{Words: words})
			if err := holds(c.a, c.b, spans); err != nil {
				t.Errorf("%s, words %v: %.200v", c.name, words, err)
			}
			same := 0
			for _, s := range spans {
				if s.Op == Same {
					same += len(s.Text)
				}
			}
			if c.same && (words || c.name != "one line") && same < len(c.a)/3 {
				t.Errorf("%s, words %v: %d of %d bytes are the same", c.name, words, same, len(c.a))
			}
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("a b\nc", "a c\nc\n", true)
	f.Add("\xff\n\xfe", "\n\xff", false)
	f.Add("the old grey cat", "a new grey dog", true)
	f.Fuzz(func(t *testing.T, a, b string, words bool) {
		if err := holds(a, b, Texts(a, b, TextOptions{Words: words})); err != nil {
			t.Fatalf("%q, %q: %v", a, b, err)
		}
	})
}
