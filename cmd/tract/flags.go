package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tract-vcs/tract/internal/suggest"
)

// badFlag says what is wrong with the options of a command line, and what would be right.
func badFlag(cmd *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		name := "--" + bad.GetFlag().Name
		if short := bad.GetFlag().Shorthand; short != "" {
			name = "-" + short + ", " + name
		}
		return usageError(cmd, "%s %q: %s", name, bad.GetValue(), wantedValue(bad))
	}
	var unknown *pflag.NotExistError
	ok := errors.As(err, &unknown)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return usageError(cmd, "%s", err)
	}
	given := unknown.GetSpecifiedName()
	if given == "version" {
		return withHint(usageError(cmd, "%s", err), "tract version")
	}
	search := suggest.To(given, (len(given)+2)/4)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			search.Try(f.Name, f.Name)
		}
	})
	if meant := search.Name(); meant != "" {
		return withHint(usageError(cmd, "%s", err), "did you mean --%s? See %s --help", meant, cmd.CommandPath())
	}
	return usageError(cmd, "%s", err)
}

// wantedValue is what a value should have been. The parsers of numbers and of yes and no talk of
// themselves, all others of that.
func wantedValue(bad *pflag.InvalidValueError) string {
	var number *strconv.NumError
	ok := errors.As(bad, &number)
	kind := bad.GetFlag().Value.Type()
	switch {
	case !ok:
		return bad.Unwrap().Error()
	case kind == "bool":
		return "want true or false"
	case errors.Is(number, strconv.ErrRange):
		return "that is out of range"
	case kind == "uint":
		return "want a number, 0 or more"
	}
	return "want a number"
}
