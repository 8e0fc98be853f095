package refs

import (
	"fmt"
	"regexp"
)

// ForkSuffix stands between the name of a branch and the number of a fork of it.
const ForkSuffix = "/fork-"

// forkNumber matches the end of a fork's name.
var forkNumber = regexp.MustCompile(ForkSuffix + `[0-9]{1,6}$`)

// ForkedFrom returns the name of the branch from which a fork with this name was made; any other
// name is returned unchanged.
func ForkedFrom(branch string) string { return forkNumber.ReplaceAllString(branch, "") }

// FreeName returns a name that is not taken: name, or name followed by the separator and the lowest
// free number from 2. It returns the error of taken.
func FreeName(name, separator string, taken func(name string) (bool, error)) (string, error) {
	for n, free := 1, name; ; {
		if is, err := taken(free); err != nil || !is {
			return free, err
		}
		n++
		free = fmt.Sprint(name, separator, n)
	}
}
