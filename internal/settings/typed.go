package settings

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tract-vcs/tract/priority"
)

// value returns the canonical value of a setting. The name must be canonical. An unknown name, or
// a setting that has none of the types, is a bug and panics.
func (v Values) value(name string, types ...Type) string {
	if e, ok := v.set[name]; ok {
		return e.value
	}
	key, ok := lookup(name)
	if !ok || !slices.Contains(types, key.Type) {
		panic("settings: no setting " + name + " of type " + string(types[0]))
	}
	return key.Default
}

// Bool returns the value of a Bool.
func (v Values) Bool(name string) bool { return v.value(name, Bool) == "true" }

// Text returns the value of a Text, Choice, URL or JSON; empty when it has none.
func (v Values) Text(name string) string { return v.value(name, Text, Choice, URL, JSON) }

// Int returns the value of a Number; 0 when it has none.
func (v Values) Int(name string) int {
	n, _ := strconv.Atoi(v.value(name, Number))
	return n
}

// Float returns the value of a Fraction; nil when it has none.
func (v Values) Float(name string) *float64 {
	f, err := strconv.ParseFloat(v.value(name, Fraction), 64)
	if err != nil {
		return nil
	}
	return &f
}

// Duration returns the value of a Duration; 0 is none.
func (v Values) Duration(name string) time.Duration {
	d, _ := ParseDuration(v.value(name, Duration))
	return d
}

// Policy returns the policy that the settings give the compiler.
func (v Values) Policy() priority.Policy {
	strip, _ := priority.ParseStrip(v.Text("reasoning.strip_from_context"))
	return priority.Policy{Strip: strip, IncludeReasoning: v.Bool("reasoning.include_in_context")}
}

// Headers returns the HTTP headers to send with requests, by canonical name.
func (v Values) Headers() map[string]string {
	m := map[string]string{}
	for _, name := range v.fullNamesInFamily(headers, "") {
		m[strings.TrimPrefix(name, headers)] = v.set[name].value
	}
	return m
}
