package settings

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tract-vcs/tract/priority"
)

// The typed getters take canonical names. A name that is not in the table, or a
// getter that does not fit its type, is a mistake in the program and panics.

func (v Values) value(name string, types ...Type) string {
	if e, ok := v.set[name]; ok {
		return e.value
	}
	key, err := canonical(name)
	if err != nil || !slices.Contains(types, key.Type) {
		panic("settings: no setting " + name + " of type " + string(types[0]))
	}
	return key.Default
}

// canonical is Find for a canonical name, which mostly stands in the table as it is.
func canonical(name string) (Key, error) {
	if i := slices.IndexFunc(table, func(k Key) bool { return k.Name == name }); i >= 0 {
		return table[i], nil
	}
	return Find(name)
}

// Bool is the value of a Bool.
func (v Values) Bool(name string) bool { return v.value(name, Bool) == "true" }

// Text is the value of a Text, Choice, URL or JSON, or empty.
func (v Values) Text(name string) string { return v.value(name, Text, Choice, URL, JSON) }

// Int is the value of a Number, or 0.
func (v Values) Int(name string) int {
	n, _ := strconv.Atoi(v.value(name, Number))
	return n
}

// Float is the value of a Fraction, or nil.
func (v Values) Float(name string) *float64 {
	f, err := strconv.ParseFloat(v.value(name, Fraction), 64)
	if err != nil {
		return nil
	}
	return &f
}

// Duration is the value of a Duration; 0 is none.
func (v Values) Duration(name string) time.Duration {
	d, _ := duration(v.value(name, Duration))
	return d
}

// Strip is reasoning.strip_from_context.
func (v Values) Strip() priority.Strip {
	s, _ := priority.ParseStrip(v.Text("reasoning.strip_from_context"))
	return s
}

// IncludeReasoning is reasoning.include_in_context.
func (v Values) IncludeReasoning() bool { return v.Bool("reasoning.include_in_context") }

// Policy is what the settings say about every commit of a prompt.
func (v Values) Policy() priority.Policy {
	return priority.Policy{Strip: v.Strip(), IncludeReasoning: v.IncludeReasoning()}
}

// Headers is the HTTP headers to send with requests, by canonical name.
func (v Values) Headers() map[string]string {
	m := map[string]string{}
	for _, name := range v.members(headers, "") {
		m[strings.TrimPrefix(name, headers)] = v.set[name].value
	}
	return m
}
