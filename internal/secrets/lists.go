package secrets

import "strings"

// skip returns the first position from at on that has none of some bytes.
func (t *searchedText) skip(at int, bytes string) int {
	for n := 0; at < len(t.text) && n < maxScope && strings.IndexByte(bytes, t.text[at]) >= 0; n++ {
		at++
	}
	return at
}

// matchCookieHeader examines a Cookie or a Set-Cookie header.
func (t *searchedText) matchCookieHeader(rule string, at, end int) {
	read := &t.read.cookies
	if at < *read || !t.mayBeginSecret(at) {
		return
	}
	if from, _, ok := t.valueStart(at, end); ok {
		*read = t.matchCookieList(rule, from)
	}
}

// attributes are the attribute names of a Set-Cookie header.
var attributes = " domain expires max-age partitioned path priority samesite version "

// matchCookieList examines the values of a list of cookies, and returns where the list ends.
func (t *searchedText) matchCookieList(rule string, at int) (end int) {
	for limit := at + maxToken; at < min(limit, len(t.text)); {
		at = t.skip(at, "; \t,[\"'`")
		to := t.runEnd(dotted, at)
		switch {
		case to == at || to == len(t.text):
			return to
		case t.text[to] != '=': // Secure, or other text
			if strings.IndexByte(";\"'`", t.text[to]) < 0 {
				return to
			}
			at = to
			continue
		}
		name := lowerASCII(t.text[at:to])
		from := t.skip(to+1, "\"")
		at = t.runEnd(cookie, from)
		switch value := t.text[from:at]; {
		case strings.Contains(attributes, " "+name+" "):
			for at < len(t.text) && strings.IndexByte(";\"'`\n", t.text[at]) < 0 { // a date has blanks
				at++
			}
		case len(value) >= 8 && len(value) <= maxToken && isMixed(value) && !isExample(value) && !isReference(value):
			t.addSpan(rule, from, at)
		}
	}
	return at
}

// maxCommand is how many bytes of a command line are examined.
const maxCommand = 4 << 10

// matchCurlCommand examines the options of a curl command, to the end of its line or to the next
// command, for users with passwords and for cookies.
func (t *searchedText) matchCurlCommand(_ string, at, end int) {
	read := &t.read.options
	if at < *read || at > 0 && alnum.has(t.text[at-1]) || end < len(t.text) && alnum.has(t.text[end]) {
		return
	}
	i := end
	for ; i < min(len(t.text), end+maxCommand); i++ {
		c := t.text[i]
		if c == '\n' && t.text[i-1] != '\\' || c == '|' {
			break
		}
		if c == '-' && strings.IndexByte(" \t\n\"'`", t.text[i-1]) >= 0 {
			t.matchCurlOption(i)
		}
	}
	*read = i
}

// matchCurlOption examines an option of curl.
func (t *searchedText) matchCurlOption(at int) {
	to := t.runEnd(token, at)
	name := t.text[at:to]
	switch name {
	case "-b":
		t.matchCookieList(ruleCookie, t.skip(to, quotes+" ,"))
		return
	case "--user", "--proxy-user":
	default: // -u, -sSu, -uada
		flags := strings.TrimLeft(name[1:], "#0123456GILNRSafgijknqsv")
		if flags == "" || flags[0]|0x20 != 'u' {
			return
		}
		to -= len(flags) - 1
	}
	if to < len(t.text) && strings.IndexByte(quotes, t.text[to]) >= 0 { // it is in quotes itself
		to++
	}
	if to = t.skip(to, " =,\t"); to < len(t.text) {
		if from, stop, _ := t.valueBounds(to); !strings.HasPrefix(t.text[from:stop], maskBegin) {
			t.matchUserOrPassword(ruleCurl, from, stop)
		}
	}
}

// matchNetrcEntry examines an entry of a .netrc file: a machine, a user and a password.
func (t *searchedText) matchNetrcEntry(rule string, at, end int) {
	if !t.mayBeginSecret(at) {
		return
	}
	from, to := at, at+strings.IndexByte(t.text[at:end]+" ", ' ')
	next := func() string {
		if from = t.skip(to, " \t\r\n\""); from == to {
			return ""
		}
		to = t.runEnd(field, from)
		return t.text[from:to]
	}
	host, login := "default", false
	if to == end {
		if host = next(); t.runEnd(dotted, from) != to {
			return
		}
	}
	for range 4 {
		name, value := next(), next()
		switch lowerASCII(name) {
		case "password":
			if (login && mayBePassword(value) || strings.Contains(host, ".") && mayBeURLPassword(value)) && !isReference(value) {
				t.addSpan(rule, from, to)
			}
		case "login", "user":
			login = true
		case "account", "port":
		default:
			return
		}
	}
}
