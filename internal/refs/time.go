package refs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
}

var timeUnits = map[string]time.Duration{
	"second": time.Second, "sec": time.Second, "s": time.Second,
	"minute": time.Minute, "min": time.Minute, "m": time.Minute,
	"hour": time.Hour, "h": time.Hour,
	"day": 24 * time.Hour, "d": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "w": 7 * 24 * time.Hour,
	"month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

// ParseTime parses a time as people write it: RFC 3339 or a part of it (in the time zone of
// now), now, today, yesterday, "2 hours ago", "3.days.ago", "90m".
func ParseTime(s string, now time.Time) (time.Time, error) {
	text := strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	switch strings.ToLower(text) {
	case "now":
		return now, nil
	case "today":
		y, m, d := now.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()), nil
	case "yesterday":
		return now.Add(-24 * time.Hour), nil
	}
	if d, ok := parseAgo(text); ok {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("time %q: want a date such as 2026-11-21 or 2026-11-21T10:00, yesterday, or 2 hours ago", s)
}

// parseAgo parses "2 hours ago", "2.hours.ago", "2 hours" and "2h".
func parseAgo(s string) (time.Duration, bool) {
	s = strings.ToLower(s)
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, true
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '.' })
	if len(words) == 3 && words[2] == "ago" {
		words = words[:2]
	}
	if len(words) == 1 {
		at := len(strings.TrimRight(words[0], "abcdefghijklmnopqrstuvwxyz"))
		words = []string{words[0][:at], words[0][at:]}
	}
	if len(words) != 2 {
		return 0, false
	}
	n, err := strconv.Atoi(words[0])
	unit, ok := timeUnits[words[1]]
	if !ok {
		unit, ok = timeUnits[strings.TrimSuffix(words[1], "s")]
	}
	if err != nil || !ok || n < 0 || n > 1e6 {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
