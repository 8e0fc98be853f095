package settings

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/secrets"
)

const (
	maxText     = 64 << 10    // most bytes of one value
	maxNumber   = 1 << 40     // greatest number
	maxDuration = 36500 * day // longest duration: a hundred years
)

// Parse returns the canonical form of a value in any accepted spelling. The error is a
// *[ValueError], or a *[SecretError] if the value looks like a credential.
func (k Key) Parse(value string) (string, error) {
	text := strings.TrimSpace(value)
	if len(secrets.Find(text)) > 0 {
		return "", &SecretError{Name: k.Name}
	}
	canonical, ok := "", false
	if len(text) <= maxText {
		canonical, ok = k.parse(text)
	}
	if ok {
		return canonical, nil
	}
	if k.Type == URL && strings.Contains(text, "@") {
		return "", &SecretError{Name: k.Name} // the value is not for errors
	}
	return "", &ValueError{Key: k.Name, Value: shortenForError(text), Want: k.Want()}
}

// shortenForError cuts a text that is too long for an error.
func shortenForError(s string) string {
	if len(s) <= 80 {
		return s
	}
	return s[:80] + "…"
}

func (k Key) parse(text string) (canonical string, ok bool) {
	switch k.Type {
	case Bool:
		return parseBool(text)
	case Choice:
		return k.parseChoice(text)
	case Number:
		return parseNumber(text)
	case Fraction:
		return parseFraction(text, k.max)
	case Duration:
		return parseDuration(text)
	case URL:
		return parseURL(text)
	case JSON:
		return parseObject(text)
	}
	return text, text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Want describes the values that the setting may have.
func (k Key) Want() string {
	switch k.Type {
	case Bool:
		return "true or false"
	case Choice:
		last := len(k.Choices) - 1
		return strings.Join(k.Choices[:last], ", ") + " or " + k.Choices[last]
	case Number:
		return "a whole number such as 8000 or 8k"
	case Fraction:
		return "a number from 0 to " + strconv.FormatFloat(k.max, 'g', -1, 64)
	case Duration:
		return "a time such as 7d or 12h, or none"
	case URL:
		return "an http or https address without a user or a password"
	case JSON:
		return "a JSON object"
	}
	return "one line of text"
}

func parseBool(text string) (canonical string, ok bool) {
	switch strings.ToLower(text) {
	case "true", "on", "yes", "1":
		return "true", true
	case "false", "off", "no", "0":
		return "false", true
	}
	return "", false
}

// parseChoice parses one of the choices. A false boolean, such as "no", selects the choice none or
// off.
func (k Key) parseChoice(text string) (canonical string, ok bool) {
	folded := foldName(text)
	for _, c := range k.Choices {
		if foldName(c) == folded {
			return c, true
		}
	}
	if no, ok := parseBool(text); ok && no == "false" {
		for _, c := range k.Choices {
			if c == "none" || c == "off" {
				return c, true
			}
		}
	}
	return "", false
}

func parseNumber(text string) (canonical string, ok bool) {
	digits := strings.ToLower(strings.NewReplacer("_", "", ",", "").Replace(text))
	if digits == "none" || digits == "off" {
		return "0", true
	}
	scale := 1.0
	if n, ok := strings.CutSuffix(digits, "k"); ok {
		digits, scale = n, 1e3
	} else if n, ok := strings.CutSuffix(digits, "m"); ok {
		digits, scale = n, 1e6
	}
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return "", false
	}
	f, err := strconv.ParseFloat(digits, 64)
	if f = math.Round(f*scale*1e6) / 1e6; err != nil || f > maxNumber || f != math.Trunc(f) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

func parseFraction(text string, most float64) (canonical string, ok bool) {
	digits, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= most) || strings.ContainsAny(digits, "xXpP_") {
		return "", false
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

// day is not a unit of package time.
const day = 24 * time.Hour

// units are the units of a duration.
var units = map[byte]time.Duration{'w': 7 * day, 'd': day, 'h': time.Hour, 'm': time.Minute, 's': time.Second}

func parseDuration(text string) (canonical string, ok bool) {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	if text == "none" || text == "off" {
		return "none", true
	}
	d, ok := ParseDuration(text)
	if !ok {
		return "", false
	}
	if d == 0 {
		return "none", true
	}
	var b strings.Builder
	for _, unit := range []byte("dhms") { // days are clearer than weeks
		if n := d / units[unit]; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + string(unit))
			d -= n * units[unit]
		}
	}
	return b.String(), true
}

// ParseDuration parses a time such as 7d, 1h30m or 0, and reports whether it is one. The
// units are w, d, h, m and s.
func ParseDuration(text string) (time.Duration, bool) {
	if text == "0" {
		return 0, true
	}
	sum := time.Duration(0)
	for rest := text; rest != ""; {
		at := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:at])
		if err != nil || at == len(rest) || n > 1e9 {
			return 0, false
		}
		unit := units[rest[at]]
		if unit == 0 || time.Duration(n) > maxDuration/unit {
			return 0, false
		}
		sum, rest = sum+time.Duration(n)*unit, rest[at+1:]
		if sum > maxDuration {
			return 0, false
		}
	}
	return sum, text != ""
}

func parseURL(text string) (canonical string, ok bool) {
	u, err := url.Parse(text)
	ok = err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
	return text, ok && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func parseObject(text string) (canonical string, ok bool) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil || !utf8.ValidString(text) {
		return "", false
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return "", false
	}
	return b.String(), true
}
