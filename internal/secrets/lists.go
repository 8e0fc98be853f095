package secrets

import "strings"

// skip returns the first position from at on that has none of some bytes.
func (v *view) skip(at int, bytes string) int {
	for n := 0; at < len(v.text) && n < maxScope && strings.IndexByte(bytes, v.text[at]) >= 0; n++ {
		at++
	}
	return at
}

// matchCookieHeader examines a Cookie or a Set-Cookie header.
func (v *view) matchCookieHeader(rule string, at, end int) {
	read := &v.read.cookies
	if at < *read || !v.mayBeginSecret(at) {
		return
	}
	if from, _, ok := v.valueStart(at, end); ok {
		*read = v.matchCookieList(rule, from)
	}
}

// attributes are the attribute names of a Set-Cookie header.
var attributes = " domain expires max-age partitioned path priority samesite version "

// matchCookieList examines the values of a list of cookies, and returns where the list ends.
func (v *view) matchCookieList(rule string, at int) (end int) {
	for limit := at + maxToken; at < min(limit, len(v.text)); {
		at = v.skip(at, "; \t,[\"'`")
		to := v.runEnd(dotted, at)
		switch {
		case to == at || to == len(v.text):
			return to
		case v.text[to] != '=': // Secure, or other text
			if strings.IndexByte(";\"'`", v.text[to]) < 0 {
				return to
			}
			at = to
			continue
		}
		name := lowerASCII(v.text[at:to])
		from := v.skip(to+1, "\"")
		at = v.runEnd(cookie, from)
		switch value := v.text[from:at]; {
		case strings.Contains(attributes, " "+name+" "):
			for at < len(v.text) && strings.IndexByte(";\"'`\n", v.text[at]) < 0 { // a date has blanks
				at++
			}
		case len(value) >= 8 && len(value) <= maxToken && isMixed(value) && !isExample(value) && !isReference(value):
			v.addSpan(rule, from, at)
		}
	}
	return at
}

// maxCommand is how many bytes of a command line are examined.
const maxCommand = 4 << 10

// matchCurlCommand examines the options of a curl command, to the end of its line or to the next
// command, for users with passwords and for cookies.
func (v *view) matchCurlCommand(_ string, at, end int) {
	read := &v.read.options
	if at < *read || at > 0 && alnum.has(v.text[at-1]) || end < len(v.text) && alnum.has(v.text[end]) {
		return
	}
	i := end
	for ; i < min(len(v.text), end+maxCommand); i++ {
		c := v.text[i]
		if c == '\n' && v.text[i-1] != '\\' || c == '|' {
			break
		}
		if c == '-' && strings.IndexByte(" \t\n\"'`", v.text[i-1]) >= 0 {
			v.matchCurlOption(i)
		}
	}
	*read = i
}

// matchCurlOption examines an option of curl.
func (v *view) matchCurlOption(at int) {
	to := v.runEnd(token, at)
	name := v.text[at:to]
	switch name {
	case "-b":
		v.matchCookieList(ruleCookie, v.skip(to, quotes+" ,"))
		return
	case "--user", "--proxy-user":
	default: // -u, -sSu, -uada
		flags := strings.TrimLeft(name[1:], "#0123456GILNRSafgijknqsv")
		if flags == "" || flags[0]|0x20 != 'u' {
			return
		}
		to -= len(flags) - 1
	}
	if to < len(v.text) && strings.IndexByte(quotes, v.text[to]) >= 0 { // it is in quotes itself
		to++
	}
	if to = v.skip(to, " =,\t"); to < len(v.text) {
		if from, stop, _ := v.valueBounds(to); !strings.HasPrefix(v.text[from:stop], maskBegin) {
			v.matchUserOrPassword(ruleCurl, from, stop)
		}
	}
}

// matchNetrcEntry examines an entry of a .netrc file: a machine, a user and a password.
func (v *view) matchNetrcEntry(rule string, at, end int) {
	if !v.mayBeginSecret(at) {
		return
	}
	from, to := at, at+strings.IndexByte(v.text[at:end]+" ", ' ')
	next := func() string {
		if from = v.skip(to, " \t\r\n\""); from == to {
			return ""
		}
		to = v.runEnd(field, from)
		return v.text[from:to]
	}
	host, login := "default", false
	if to == end {
		if host = next(); v.runEnd(dotted, from) != to {
			return
		}
	}
	for range 4 {
		name, value := next(), next()
		switch lowerASCII(name) {
		case "password":
			if (login && mayBePassword(value) || strings.Contains(host, ".") && mayBeURLPassword(value)) && !isReference(value) {
				v.addSpan(rule, from, to)
			}
		case "login", "user":
			login = true
		case "account", "port":
		default:
			return
		}
	}
}
