package secrets

import (
	"math"
	"strings"
)

// isMixed reports whether a text has letters and digits, or letters of both cases.
func isMixed(s string) bool {
	letters, digits, small, capital := false, false, false, false
	for _, c := range []byte(s) {
		switch {
		case isDigit(c):
			digits = true
		case isLower(c):
			letters, small = true, true
		case isUpper(c):
			letters, capital = true, true
		}
	}
	return letters && digits || small && capital
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// What people write in place of a secret.
var examples = []string{
	"example", "xxxxxx", "placeholder", "redacted", "your_", "your-", "yourkey", "yourtoken", "yoursecret", "yourapi", "changeme", "change_me", "change-me",
	"replace_", "replace-", "insert_", "insert-", "dummy", "sample", "...", "***", "${", "$(", "{{", "todo", "not-a-", "not_a_", "fake", "goes_here", "goes-here",
}

// isExample reports whether a value is a placeholder for a secret. Of long random values
// hardly one in a million is taken for a placeholder.
func isExample(s string) bool {
	if countDistinctIgnoringCase(s) <= 4 {
		return true
	}
	folded := lowerASCII(s)
	for _, e := range examples {
		if strings.Contains(folded, e) && (len(e) > 4 || len(s) < 40 || strings.ContainsAny(e, "_-.*${")) {
			return true
		}
	}
	return false
}

// countDistinctIgnoringCase counts the different bytes of s, without regard to case.
func countDistinctIgnoringCase(s string) int {
	var seen [256]bool
	n := 0
	for _, c := range []byte(lowerASCII(s)) {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// The least properties of a random value.
const (
	minRandom  = 16  // bytes
	minEntropy = 3.0 // bits a byte, over the bytes it has
	minGroups  = 2   // places where digits begin
	minPart    = 10  // bytes without - _ . : between them
)

// isRandom reports whether a value looks randomly generated: letters and digits in turn,
// and not words with punctuation between them.
func isRandom(s string) bool {
	if len(s) < minRandom || entropy(s) < minEntropy {
		return false
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_.:", r) }) {
		if len(part) >= minPart && hasAlternatingDigits(part) {
			return true
		}
	}
	return false
}

// hasAlternatingDigits reports whether letters and digits alternate in a part of a value, or
// small letters and capitals around one group of digits.
func hasAlternatingDigits(part string) bool {
	groups, turns := 0, 0
	letters := isLower(part[0]) || isUpper(part[0])
	for i := 1; i < len(part); i++ {
		before, c := part[i-1], part[i]
		letters = letters || isLower(c) || isUpper(c)
		if isDigit(c) && !isDigit(before) {
			groups++
		}
		if isUpper(c) && isLower(before) {
			turns++
		}
	}
	return letters && (groups >= minGroups || groups == 1 && turns >= 3 && len(part) >= minRandom)
}

// entropy returns the Shannon entropy of s, in bits a byte.
func entropy(s string) (bits float64) {
	var counts [256]int
	for _, c := range []byte(s) {
		counts[c]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// Common placeholders for passwords, in small letters.
var noPasswords = map[string]bool{
	"password": true, "passwd": true, "pass": true, "pwd": true, "pw": true, "passphrase": true, "secret": true, "mysecret": true, "mypassword": true,
	"mypass": true, "test": true, "testpass": true, "testpassword": true, "testing": true, "admin": true, "root": true, "user": true, "username": true,
	"guest": true, "foo": true, "bar": true, "foobar": true, "abc": true, "abcd": true, "token": true, "key": true, "postgres": true, "mysql": true,
	"qwerty": true, "letmein": true, "string": true, "none": true, "null": true, "nil": true, "true": true, "false": true, "undefined": true,
	"newpassword": true, "oldpassword": true, "yourpassword": true, "userpassword": true, "dbpassword": true, "wrong": true, "wrongpassword": true,
	"invalid": true, "hidden": true, "masked": true, "default": true, "value": true, "sha": true, "md": true, "utf": true, "bcrypt": true, "argon": true,
	"x": true, "xx": true, "xxx": true, "p": true, "pass word": true, "validpassword": true, "strongpassword": true, "securepassword": true, "str": true, "int": true,
}

// mayBePassword reports whether a value may be a real password: it is no placeholder, and not
// letters alone.
func mayBePassword(s string) bool {
	if len(s) < 6 || len(s) > 256 || countDistinctIgnoringCase(s) < 4 || strings.ContainsAny(s, " \t") || isExample(s) {
		return false
	}
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, lowerASCII(s))
	return !noPasswords[letters] && letters != "" && s[0] != '+' && len(letters) < len(s)
}

// isReference reports whether a value refers to the place of a secret, such as a variable or a file.
func isReference(s string) bool {
	s = lowerASCII(s[:min(len(s), len("secretref:"))])
	for _, begin := range []string{"$", "%", "{", "<", "process.", "os.", "env.", "env:", "vault:", "arn:", "/", "./", "../", "~/", "http", "file:", "ref:", "secretref:", "@", maskBegin, "op://", "&", "*"} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return false
}
