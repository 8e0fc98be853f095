package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/internal/suggest"
)

// choiceValue is a flag value that must be one of a list.
type choiceValue struct {
	value   *string
	allowed []string
}

func (c *choiceValue) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c *choiceValue) Type() string { return "string" }

func (c *choiceValue) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("want %s", orList(c.allowed))
	}
	*c.value = value
	return nil
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// choiceFlag adds a flag whose value is one of list, and its completion. *to has the default.
func (a *app) choiceFlag(cmd *cobra.Command, to *string, name, help string, list ...string) {
	cmd.Flags().Var(&choiceValue{to, list}, name, help)
	a.completeFlag(cmd, name, completeWords(list...))
}

// settingFlag is a flag that sets a setting for one command, as --set does.
type settingFlag struct {
	value     *string
	name, key string
}

// addSettingOverrideFlag adds a flag that overrides a setting for one command.
func (a *app) addSettingOverrideFlag(cmd *cobra.Command, to *string, flagName, short, settingKey, help string) {
	cmd.Flags().StringVarP(to, flagName, short, "", help)
	a.settingFlags = append(a.settingFlags, settingFlag{to, flagName, settingKey})
}

// limit is a flag value with a count; 0 is no limit.
type limit int

func (l *limit) String() string { return strconv.Itoa(int(*l)) }

func (l *limit) Type() string { return "int" }

func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("want a number, 0 or more")
	}
	*l = limit(n)
	return nil
}

func limitFlag(cmd *cobra.Command, to *int, help string) {
	cmd.Flags().VarP((*limit)(to), "max-count", "n", help)
}

// timeFlag adds a flag with a time, such as yesterday.
func timeFlag(cmd *cobra.Command, to *time.Time, name, help string) {
	cmd.Flags().Func(name, help, func(text string) (err error) {
		*to, err = refs.ParseTime(text, time.Now())
		return err
	})
}

// patternFlag adds a flag with a regular expression in which ^ and $ match at line ends, as in
// git.
func patternFlag(cmd *cobra.Command, to **regexp.Regexp, name, help string) {
	cmd.Flags().Func(name, help, func(text string) (err error) {
		if _, err = regexp.Compile(text); err == nil { // without what is added, for the error
			*to, err = regexp.Compile("(?m)" + text)
		}
		return err
	})
}

// flagError returns the usage error for a flag, with a suggestion for an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		name := "--" + bad.GetFlag().Name
		if short := bad.GetFlag().Shorthand; short != "" {
			name = "-" + short + ", " + name
		}
		return usageError("%s %q: %s", name, bad.GetValue(), wantedValue(bad))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return usageError("%s", err)
	}
	given := unknown.GetSpecifiedName()
	if given == "version" {
		return withHint(usageError("%s", err), "tract version")
	}
	search := suggest.NewSearch(given, (len(given)+2)/4)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			search.Add(f.Name, f.Name)
		}
	})
	if meant := search.Best(); meant != "" {
		return withHint(usageError("%s", err), "did you mean --%s? See %s --help", meant, cmd.CommandPath())
	}
	return usageError("%s", err)
}

// wantedValue returns a flag's description of what it expects, without repeating the given value.
func wantedValue(bad *pflag.InvalidValueError) string {
	var number *strconv.NumError
	isNumber := errors.As(bad, &number)
	switch kind := bad.GetFlag().Value.Type(); {
	case isNumber && kind == "bool":
		return "want true or false"
	case isNumber && errors.Is(number, strconv.ErrRange):
		return "out of range"
	case isNumber && kind == "uint":
		return "want a number, 0 or more"
	case isNumber:
		return "want a number"
	}
	text := bad.Unwrap().Error()
	if _, after, ok := strings.Cut(text, strconv.Quote(bad.GetValue())+": "); ok {
		return after
	}
	return text
}

// parseAge parses the age in a flag: a time as settings have it, such as 14d, or one as Go writes it,
// such as 1.5h.
func parseAge(text string) (time.Duration, bool) {
	if d, ok := settings.ParseDuration(strings.ToLower(text)); ok {
		return d, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
