package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/importers"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/safefile"
)

// The exit codes.
const (
	codeOK          = 0
	codeNo          = 1 // a negative answer, or a failed operation
	codeUsage       = 2
	codeNotFound    = 3
	codeBusy        = 4
	codeDamaged     = 5
	codeProvider    = 6
	codeInterrupted = 130
	codePipe        = 141 // the reader of the output has closed it; the code of shells for SIGPIPE
)

const exitCodeHelp = `
Exit codes: 0 success, 1 negative answer or failed operation, 2 usage, 3 not found or
ambiguous, 4 busy or moved, 5 damaged, 6 provider error, 130 interrupted.
`

// failure is an error with its exit code, its kind and a hint.
type failure struct {
	code    int
	kind    string // one word, for programs
	hint    string
	rescued string // ref under which a response is kept

	conflicts []any   // conflicts of a merge, as format.ConflictJSON returns them
	errors    []error // errors that the failure combines
	cause     error
	quiet     bool // print nothing
}

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

// usageError returns the error for a mistake on the command line. Its default hint names the help
// of the command.
func usageError(format string, args ...any) error {
	return &failure{code: codeUsage, kind: "usage", cause: fmt.Errorf(format, args...)}
}

// negativeAnswer returns the error for a negative answer: exit code 1 and no message.
func negativeAnswer() error {
	return &failure{code: codeNo, kind: "no", quiet: true, cause: errors.New("no")}
}

// withHint returns err with a hint, which replaces the hint of its kind.
func withHint(err error, hint string, args ...any) error {
	f := classify(err)
	f.hint = fmt.Sprintf(hint, args...)
	return f
}

// kinds maps errors to exit codes and hints. The first match counts.
var kinds = []struct {
	is   func(error) bool
	code int
	kind string
	hint string
}{
	{isBrokenPipe, codePipe, kindPipe, ""},
	{isOutputError, codeNo, "output", "the command is done, only its output is lost: see tract op log and tract status"},
	{isType[*objects.ConflictError], codeBusy, "moved", "see what changed in the meantime (tract log), then try again"},
	{isType[*tract.MovedError], codeBusy, "moved", "tract op log shows what changed in the meantime"},
	{isType[*tract.MisplacedError], codeBusy, "moved", ""},
	{isError(objects.ErrExists), codeNo, "exists", "choose another name"},
	{isType[*refs.AmbiguousError], codeNotFound, "ambiguous", "give more digits"},
	{isError(objects.ErrNotFound), codeNotFound, "not_found", ""},
	{isError(objects.ErrPurged), codeNotFound, "purged", "its content was purged for good; tract show says when and why"},
	{isError(objects.ErrBusy), codeBusy, "busy", "another process is using the store; try again, or see tract doctor"},
	{isError(objects.ErrCorrupt), codeDamaged, "damaged", "copy the store before anything else; tract fsck explains the damage, tract recover salvages what is intact"},
	{isError(objects.ErrFormat), codeDamaged, "format", "it may come from another version of tract (see tract version), or is not a store"},
	{isError(safefile.ErrNotRegular), codeNo, "unsafe", "move it away: tract reads regular files only"},
	{isError(objects.ErrUnsafe), codeNo, "unsafe", "name the target of a link, and make the files your own: chown, chmod -R go-w"},
	{isError(objects.ErrReadOnly), codeNo, "read_only", "the store is read-only here; copy it to a writable place"},
	{isError(objects.ErrLimit), codeNo, "limit", "split it, or keep it in a file and commit the file name"},
	{isError(llm.ErrNoKey), codeUsage, "no_key", ""},
	{isType[*providers.UnknownError], codeUsage, "no_provider", ""},
	{isType[*llm.APIError], codeProvider, "provider", ""},
	{isError(llm.ErrTimeout), codeProvider, "timeout", "the question is kept: tract generate asks it again"},
	{isError(llm.ErrTruncated), codeProvider, "truncated", "tract rescue list shows what was received"},
	{isError(llm.ErrProtocol), codeProvider, "protocol", "check the base URL and the dialect with tract generate --dry-run"},
	{isType[*llm.NetworkError], codeProvider, "network", "check that the provider is up and the base URL is right"},
	{isType[*tract.ResultError], codeNotFound, "not_found", "tract status lists pending tool calls"},
	{isType[*tract.KeyError], codeNo, "key", "use another --key to commit this too; tract show shows the commit with the key"},
	{isType[*tract.PendingError], codeNo, "pending", ""},
	{isType[*tract.ToolLoopError], codeNo, "open_turn", "let the model answer first: tract tool-result, then tract generate"},
	{isType[*tract.MergeConflictError], codeNo, "conflict", "resolve them with --ours, --theirs or --edit"},
	{isError(tract.ErrNotFastForward), codeNo, "diverged", ""},
	{isError(tract.ErrUnrelated), codeNo, "unrelated", ""},
	{isError(tract.ErrNoChange), codeNo, "no_change", "tract show lists its edits"},
	{isType[*tract.RuleError], codeNo, "rule", "tract check lists every rule and commit; --force sends it anyway"},
	{isType[*tract.BudgetError], codeNo, "spent", "raise reasoning.budget, start another conversation (tract chat --new), or omit --enforce; the question is kept"},
	{isError(settings.ErrNoHome), codeNo, "no_home", "set HOME or XDG_CONFIG_HOME"},
	{isType[*settings.ProfileError], codeUsage, "usage", "tract profile list shows profiles"},
	{isType[*priority.OverBudgetError], codeNo, "budget", "raise --budget, or unpin something: tract compile --explain shows what is pinned"},
	{isType[*tract.DivergedError], codeNo, "failed", "tract import --as NAME imports it to another branch"},
	{isType[*importers.UnknownError], codeNo, "failed", "want a message array, a request body or a session log; --format sets the format if it is not detected"},
	{isType[*importers.LineError], codeNo, "failed", "all readable lines are imported; correct this one and import again"},
	{isType[*compile.RangeError], codeNo, "range", "tract compile --explain lists the commits; choose another range"},
	{isError(tract.ErrEmpty), codeUsage, "empty", "give a TEXT, -F FILE, or - for stdin"},
	{isType[*settings.UnknownError], codeUsage, "setting", "tract config list --all lists the settings"},
	{isType[*settings.ValueError], codeUsage, "setting", "tract config list --all lists the settings"},
	{isType[*settings.SecretError], codeUsage, "secret", ""},
	{isError(context.Canceled), codeInterrupted, "interrupted", ""},
	{isError(context.DeadlineExceeded), codeBusy, "timeout", ""},
	{isError(syscall.EISDIR), codeNo, "folder", "this is a folder: name a file"},
	{isError(syscall.EMFILE), codeNo, "limit", "the process has too many open files: ulimit -n"},
	{isError(syscall.EFBIG), codeNo, kindNoSpace, "file size limit reached (ulimit -f); nothing was changed"},
	{isError(syscall.ENOSPC), codeNo, kindNoSpace, "free space on the disk; nothing was changed"},
	{isError(fs.ErrPermission), codeNo, "permission", "check who owns the file"},
	{isError(fs.ErrNotExist), codeNotFound, "not_found", "check the path"},
	{isError(syscall.ENOTDIR), codeNotFound, "not_found", "check the path: a part of it is not a folder"},
}

// Kinds that other code compares with.
const (
	kindPipe    = "pipe"
	kindNoSpace = "no_space"
)

// isOutputError reports whether the only failure is that the output could not be written.
func isOutputError(err error) bool {
	var e *fs.PathError
	ok := errors.As(err, &e)
	return ok && e.Op == "write" && (e.Path == os.Stdout.Name() || e.Path == os.Stderr.Name())
}

// isBrokenPipe reports whether the reader of the output has closed it.
func isBrokenPipe(err error) bool { return isOutputError(err) && errors.Is(err, syscall.EPIPE) }

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isType[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

// classify returns an error with the exit code, kind and hint for the terminal.
func classify(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		copied := *f
		copied.cause = err
		return &copied
	}
	f = &failure{code: codeNo, kind: "failed", cause: err}
	for _, k := range kinds {
		if k.is(err) {
			f.code, f.kind, f.hint = k.code, k.kind, k.hint
			f.quiet = k.kind == kindPipe
			break
		}
	}
	f.addDetails(err)
	if f.hint == "" && f.kind == "failed" {
		f.hint = "tract doctor checks the store, the settings and the terminal"
	}
	return f
}

// addDetails sets the hint and the JSON members from the fields of certain error types.
func (f *failure) addDetails(err error) {
	var unknown *refs.UnknownError
	var pending *tract.PendingError
	var moved *tract.ConflictError
	var misplaced *tract.MisplacedError
	var broken *tract.IncompleteError
	var api *llm.APIError
	var unsafe *safefile.Error
	var hinter interface{ Hint() string }
	switch {
	case errors.As(err, &unsafe):
		f.hint = "make it your own (chown, chmod go-w), or trust it as it is: tract config trust --folder " + shellQuote(unsafe.Folder)
	case errors.As(err, &moved):
		f.code, f.kind, f.rescued = codeBusy, "moved", moved.Rescued
		f.hint = "see what changed in the meantime (tract log), then try again"
		if moved.Rescued != "" {
			f.hint = movedBranchHint(moved.Rescued)
		}
	case errors.As(err, &misplaced):
		f.rescued, f.hint = misplaced.Rescued, movedBranchHint(misplaced.Rescued)
	case errors.As(err, &broken):
		f.rescued = broken.Rescued
		f.hint = "tract rescue show " + shellQuote(strings.TrimPrefix(broken.Rescued, refs.Rescued)) + " shows the received part; tract generate asks again"
	case errors.As(err, &pending):
		id := pending.Calls[0].CallID
		f.hint = toolResultCommand(id, "-F -") + ", or " + toolResultCommand(id, "--abandon")
	case errors.As(err, &unknown) && unknown.Nearest != "":
		f.hint = "did you mean " + shellQuote(unknown.Nearest) + "?"
	case errors.As(err, &unknown) && f.hint == "":
		f.hint = "tract branch lists branches, tract log shows commits"
	case errors.As(err, &api):
		f.hint = apiHint(api)
	case errors.As(err, &hinter) && hinter.Hint() != "":
		f.hint = hinter.Hint()
	}
}

// movedBranchHint returns the hint for committing a kept response whose branch has moved.
func movedBranchHint(rescued string) string {
	return "tract rescue take " + shellQuote(strings.TrimPrefix(rescued, refs.Rescued)) + " --branch NAME --new commits it where it was asked, on a new branch; --here at the end of the branch as it is now"
}

func apiHint(e *llm.APIError) string {
	switch {
	case e.Status == 401 || e.Status == 403:
		return "check that the key in the environment is for this provider"
	case e.Status == 404:
		return "check --model and --base-url"
	case e.Status == 429:
		return "the provider is limiting requests; the question is kept: tract generate asks it again"
	case e.Temporary() || e.Status == 0:
		return "the question is kept: tract generate asks it again"
	}
	return "tract generate --dry-run shows the request"
}

// report prints an error, with secrets masked, and returns its exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return codeOK
	}
	f := classify(err)
	if ctx.Err() != nil && f.rescued == "" {
		f.code, f.kind, f.hint = codeInterrupted, "interrupted", ""
	}
	if f.code == codeInterrupted && f.hint == "" {
		f.hint = "everything written so far is complete; run the command again to continue"
	}
	switch {
	case f.quiet:
	case a.json:
		e := format.ErrorJSON{
			Code: f.code, Kind: f.kind, Message: messageWithoutSecrets(f), Hint: f.hint, Rescued: f.rescued,
			Errors: mapSlice(f.errors, messageWithoutSecrets), Conflicts: f.conflicts,
		}
		_ = format.EncodeLine(a.errOut, map[string]format.ErrorJSON{"error": e}) // there is nowhere to say that this failed
	default:
		for _, err := range append(slices.Clip(f.errors), f) {
			fmt.Fprintf(a.errOut, "tract: error: %s\n", format.Line(messageWithoutSecrets(err)))
		}
		if f.hint != "" {
			fmt.Fprintf(a.errOut, "tract: hint: %s\n", format.Line(f.hint))
		}
	}
	return f.code
}

// messageWithoutSecrets returns the text of an error, without secrets.
func messageWithoutSecrets(err error) string {
	return strings.ReplaceAll(secrets.Mask(err.Error()), context.Canceled.Error(), "interrupted")
}
