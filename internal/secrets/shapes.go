package secrets

import (
	"encoding/base64"
	"strings"
)

// maxPEM is an upper bound of the bytes of a private key in PEM form.
const maxPEM = 20 << 10

// matchPrivateKey examines the start of a PEM block. A private key is masked to its end or, when it
// is cut off, as far as it goes.
func (t *searchedText) matchPrivateKey(rule string, at, end int) {
	const tail = "-----"
	label := t.text[end:min(end+40, len(t.text))]
	n := strings.Index(label, tail)
	if n < 0 || !strings.Contains(label[:n], "PRIVATE KEY") {
		return
	}
	body := end + n + len(tail)
	rest := t.text[body:min(body+maxPEM, len(t.text))]
	if next := strings.Index(rest, "-----BEGIN "); next >= 0 {
		rest = rest[:next]
	}
	stop := 0
	if last := strings.Index(rest, "-----END "); last >= 0 {
		if stop = last + len("-----END ") + n; stop+len(tail) <= len(rest) && rest[stop:stop+len(tail)] == tail {
			stop += len(tail)
		}
		stop = min(stop, len(rest))
		rest = rest[:last]
	} else {
		for stop < len(rest) && (b64.has(rest[stop]) || strings.IndexByte(" \t\r\n\"'+,:-", rest[stop]) >= 0) {
			stop++
		}
		rest = rest[:stop]
	}
	key := strings.Map(func(r rune) rune {
		if r < 0x80 && b64.has(byte(r)) {
			return r
		}
		return -1
	}, rest)
	if len(key) >= 24 && countDistinctIgnoringCase(key) > 8 && !strings.Contains(rest, "...") {
		t.addSpan(rule, at, body+stop)
	}
}

// matchAWSKeys examines the start of an access key id. A value near it that looks like the
// secret of that id is a secret too.
func (t *searchedText) matchAWSKeys(rule string, at, end int) {
	const size, near = 20, 120
	if !t.mayBeginSecret(at) || at+size > len(t.text) || t.text[at:end] != strings.ToUpper(t.text[at:end]) {
		return
	}
	stop := at + size
	if t.runEnd(upper, at) != stop || stop < len(t.text) && word.has(t.text[stop]) || isExample(t.text[at:stop]) {
		return
	}
	t.addSpan(rule, at, stop)
	const secret = 40
	for i := stop; i < min(stop+near, len(t.text)); i++ {
		if !b64.has(t.text[i]) {
			continue
		}
		to := t.runEnd(b64, i)
		if value := t.text[i:to]; len(value) == secret && isRandom(value) && isMixed(value) && !isExample(value) {
			t.addSpan(ruleAWSSecret, i, to)
			return
		}
		i = to
	}
}

// matchTerraformToken examines the middle of a token of Terraform: 14 letters and digits come
// before it, many after it.
func (t *searchedText) matchTerraformToken(rule string, at, end int) {
	const id, most = 14, 100
	begin, stop := at-id, t.runEnd(token, end)
	if begin < 0 || t.runEnd(alnum, begin) != at || !t.mayBeginSecret(begin) || stop-end < 40 || stop-end > most || !isMixed(t.text[end:stop]) {
		return
	}
	t.addSpan(rule, begin, stop)
}

// matchTelegramToken examines the middle of a token of a bot: digits, a colon, AA and more.
func (t *searchedText) matchTelegramToken(rule string, at, end int) {
	begin := at
	for begin > 0 && at-begin < 11 && isDigit(t.text[begin-1]) {
		begin--
	}
	stop := t.runEnd(token, at+1)
	if n := at - begin; n < 8 || n > 10 || stop-at-1 != 35 || t.text[at:end] != ":AA" || isExample(t.text[at+1:stop]) {
		return
	}
	t.addSpan(rule, begin, stop)
}

// matchJWT examines the possible start of a JSON web token: its header is a JSON object that
// names an algorithm.
func (t *searchedText) matchJWT(rule string, at, _ int) {
	if at > 0 && token.has(t.text[at-1]) && !t.mayBeginSecret(at) || t.text[at:at+3] != "eyJ" {
		return
	}
	const parts, shortest = 3, 8
	from, head := at, ""
	for part := range parts {
		to := t.runEnd(token, from)
		if to-from < shortest || to-from > maxToken {
			return
		}
		if part == 0 {
			head = t.text[from:to]
		}
		if from = to; part < parts-1 {
			if to >= len(t.text) || t.text[to] != '.' {
				return
			}
			from++
		}
	}
	decoded, err := base64.RawURLEncoding.DecodeString(head)
	if err == nil && strings.Contains(string(decoded), `"alg"`) {
		t.addSpan(rule, at, from)
	}
}

// maxUser is the most bytes of a user and a password in a URL.
const maxUser = 1 << 10

// matchURLCredentials examines the user and the password of a URL.
func (t *searchedText) matchURLCredentials(rule string, at, end int) {
	if at == 0 || !alnum.has(t.text[at-1]) {
		return
	}
	stop := t.runEnd(userinfo, end)
	if stop == len(t.text) || t.text[stop] != '@' || stop-end > maxUser {
		return
	}
	t.matchUserOrPassword(rule, end, stop)
}

// matchUserOrPassword examines a user with a password after a colon, or without a password: then the
// user may be the secret.
func (t *searchedText) matchUserOrPassword(rule string, from, stop int) {
	user, password, _ := strings.Cut(t.text[from:stop], ":")
	switch has := password != ""; {
	case !has && isRandom(user) && !isExample(user):
		t.addSpan(rule, from, from+len(user))
	case has && (password != user && mayBeURLPassword(password) || isRandom(password)) && !isReference(password):
		t.addSpan(rule, stop-len(password), stop)
	}
}

// mayBeURLPassword reports whether the password of a URL is no placeholder.
func mayBeURLPassword(s string) bool {
	letters := strings.TrimRight(lowerASCII(s), "0123456789!")
	return len(s) >= 4 && countDistinctIgnoringCase(s) >= 3 && !isExample(s) && !noPasswords[letters] && letters != ""
}

// isBasicCredentials reports whether a value is that of basic authorization: a user and a password
// in base64.
func isBasicCredentials(value string) bool {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(value)
	}
	_, password, has := strings.Cut(string(decoded), ":")
	return err == nil && has && !noPasswords[lowerASCII(password)]
}
