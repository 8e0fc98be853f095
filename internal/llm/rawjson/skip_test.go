package rawjson

import "testing"

// TestSkipString compares with a walk over the bytes, for every text of nine bytes
// that can make a difference, wherever the string begins.
func TestSkipString(t *testing.T) {
	const bytes = `"\a`
	var b [9]byte
	for n := range 19683 { // 3^9
		for i := range b {
			b[i], n = bytes[n%len(bytes)], n/len(bytes)
		}
		for i := range b {
			if b[i] != '"' {
				continue
			}
			want := i + 1
			for want < len(b) && b[want] != '"' {
				if b[want] == '\\' {
					want++
				}
				want++
			}
			if want = min(want+1, len(b)); skipString(b[:], i) != want {
				t.Fatalf("the string at %d of %q ends before %d, want %d", i, b, skipString(b[:], i), want)
			}
		}
	}
}
