package secrets

import (
	"slices"
	"strings"
)

// The names of secret values end in one of these, written without - and _.
var (
	keyEnds      = []string{"apikey", "accesskey", "privatekey", "encryptionkey", "signingkey", "authkey", "accountkey", "subscriptionkey", "secretkey", "secret", "token", "credential", "credentials"}
	passwordEnds = []string{"password", "passwd", "passphrase", "pwd", "pass"}
)

// terraformName is the prefix of the variables that have the token of a host.
const terraformName = "tf_token_"

// How far the text around a keyword is examined.
const (
	maxName  = 64
	maxScope = 12 // bytes between a name and its value
)

// matchAssignment examines a keyword that names a secret, such as in API_KEY=..., "password":
// "...", --token ... or <secret>...</secret>.
func (t *searchedText) matchAssignment(rule string, at, end int) {
	begin := at
	for begin > 0 && at-begin < maxName && token.has(t.text[begin-1]) {
		begin--
	}
	for n := 0; end < len(t.text) && n < maxName && token.has(t.text[end]); n++ {
		end++
	}
	if end < len(t.text) && token.has(t.text[end]) || strings.HasSuffix(t.text[:begin], maskBegin) {
		return
	}
	at, tight, ok := t.valueStart(begin, end)
	if !ok || at == len(t.text) {
		return
	}
	name := lowerASCII(t.text[begin:end])
	password := hasSuffixIgnoringSeparators(name, passwordEnds)
	if !password && !hasSuffixIgnoringSeparators(name, keyEnds) && !strings.HasPrefix(name, terraformName) {
		return
	}
	from, to, quoted := t.valueBounds(at)
	value := t.text[from:to]
	key := ruleForName(rule, name)
	if len(value) > maxToken || key == rule && isReference(value) || !quoted && t.isExpression(to, value, tight) {
		return
	}
	switch {
	case password && mayBePassword(value) && (quoted || isRandom(value) || tight && !isIdentifierWithoutDigits(value) || hasPunctuationAndMixed(value)):
		t.addSpan(rulePassword, from, to)
	case !password && isRandom(value) && !isExample(value) && !strings.ContainsAny(value, " \t"):
		t.addSpan(key, from, to)
	}
}

// hasPunctuationAndMixed reports whether a password has punctuation, and letters and digits or
// letters of both cases, which no identifier has.
func hasPunctuationAndMixed(s string) bool {
	sign := strings.ContainsFunc(s, func(r rune) bool { return r < 0x80 && !token.has(byte(r)) && r != '.' })
	return sign && isMixed(s)
}

// isIdentifierWithoutDigits reports whether a value may be an identifier in a program that has no
// digits: with digits it may be a secret.
func isIdentifierWithoutDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x80 && r != '_' && r != '.' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// hasSuffixIgnoringSeparators reports whether a name, without its - and _, ends in one of ends.
func hasSuffixIgnoringSeparators(name string, ends []string) bool {
	for _, end := range ends {
		at := len(name)
		for i := len(end) - 1; i >= 0; i-- {
			for at > 0 && (name[at-1] == '-' || name[at-1] == '_') {
				at--
			}
			if at == 0 || name[at-1] != end[i] {
				at = -1
				break
			}
			at--
		}
		if at >= 0 {
			return true
		}
	}
	return false
}

// ruleForName returns the rule of a value by its name, which is in small letters.
func ruleForName(otherwise, name string) string {
	switch {
	case strings.Contains(name, "aws") || hasSuffixIgnoringSeparators(name, []string{"secretaccesskey"}):
		return ruleAWSSecret
	case strings.HasPrefix(name, terraformName):
		return ruleTerraform
	case strings.Contains(name, "twilio"):
		return ruleTwilio
	case hasSuffixIgnoringSeparators(name, []string{"accountkey", "sharedaccesskey"}):
		return ruleAzure
	}
	return otherwise
}

// valueStart returns where the value of a name begins, which may be the end of the text. tight tells
// that no space separates them, as in NAME=VALUE, or one after a flag; ok is false when no value follows.
func (t *searchedText) valueStart(nameBegin, nameEnd int) (from int, tight, ok bool) {
	at := nameEnd
	skip := func(signs string) (n int) {
		from := at
		at = t.skip(at, signs)
		return at - from
	}
	if nameBegin >= 2 && t.text[nameBegin-1] == '-' || strings.HasPrefix(t.text[nameBegin:nameEnd], "--") { // a flag
		if skip(" ") == 1 {
			return at, true, true
		}
	}
	if nameBegin > 0 && t.text[nameBegin-1] == '<' && skip(">") == 1 {
		return at, true, true
	}
	skip("\"'`])")
	spaces := skip(" \t")
	signs := at
	skip(":=>(")
	switch sign := t.text[signs:at]; sign {
	case ":", "=", "=>", ":=", "==", "===":
	case "(":
		if at < len(t.text) && strings.IndexByte(quotes, t.text[at]) >= 0 {
			return at, false, true
		}
		return 0, false, false
	default:
		return 0, false, false
	}
	spaces += skip(" \t")
	return at, spaces == 0, true
}

// quotes are in the order of the sets of the bytes between them.
const quotes = "\"'`"

// valueBounds returns where the value at a position begins and ends, and whether it is in
// quotes. A value whose quotes are not closed is read as one without.
func (t *searchedText) valueBounds(at int) (from, to int, quoted bool) {
	if quote := strings.IndexByte(quotes, t.text[at]); quote >= 0 {
		to = t.runEnd(inDouble+set(quote), at+1)
		if to < len(t.text) && t.text[to] == t.text[at] {
			return at + 1, to, true
		}
		at++
	}
	to = t.runEnd(bare, at)
	for to > at && (t.text[to-1] == '.' || t.text[to-1] == ':') {
		to--
	}
	return at, to, false
}

// isExpression reports whether a value without quotes, which ends at end, is an expression of a program:
// a call, a member, an index.
func (t *searchedText) isExpression(end int, value string, tight bool) bool {
	if end < len(t.text) && strings.IndexByte("([{", t.text[end]) >= 0 {
		return true
	}
	if tight {
		return false
	}
	for i := 1; i+1 < len(value); i++ { // a name, a point and a name: config.token1
		if value[i] == '.' && !isDigit(value[i-1]) && !isDigit(value[i+1]) && strings.IndexByte("+/=@!#$%^&*", value[i+1]) < 0 {
			return true
		}
	}
	return false
}

// authSchemes are the authentication schemes of an Authorization header.
var authSchemes = []string{"bearer", "basic", "token", "apikey", "api-key", "key"}

// matchAuthorization examines an Authorization header, or the keyword Bearer alone.
func (t *searchedText) matchAuthorization(rule string, at, end int) {
	if !t.mayBeginSecret(at) {
		return
	}
	from, scheme := end, ""
	if t.text[at]|0x20 == 'a' {
		begin, _, ok := t.valueStart(at, end)
		if !ok || begin == len(t.text) {
			return
		}
		from, scheme = t.authScheme(begin)
	}
	to := t.runEnd(header, from)
	if to < len(t.text) && strings.IndexByte("([{<", t.text[to]) >= 0 {
		return
	}
	for to > from && t.text[to-1] == '.' {
		to--
	}
	value := t.text[from:to]
	if len(value) > maxToken || isExample(value) || isReference(value) {
		return
	}
	switch {
	case scheme == "basic" && isBasicCredentials(value), scheme != "" && scheme != "basic" && len(value) >= 8 && isMixed(value), isRandom(value):
		t.addSpan(rule, from, to)
	}
}

// authScheme returns the scheme of an Authorization header, empty when it has none, and where
// the credentials after it begin.
func (t *searchedText) authScheme(at int) (from int, scheme string) {
	if strings.IndexByte(quotes, t.text[at]) >= 0 {
		at++
	}
	to := t.runEnd(token, at)
	if to == len(t.text) || t.text[to] != ' ' || to-at > len("api-key") {
		return at, ""
	}
	if word := lowerASCII(t.text[at:to]); slices.Contains(authSchemes, word) {
		return to + 1, word
	}
	return at, ""
}
