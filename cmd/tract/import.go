package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/importers"
)

type importOptions struct {
	as, format string
	dryRun     bool
}

func newImport(a *app) *cobra.Command {
	o := &importOptions{format: string(importers.Auto)}
	cmd := &cobra.Command{
		Use: "import FILE|DIR|-", Short: "Import conversations from other programs",
		Long: `Import conversations: message arrays and request bodies of OpenAI and Anthropic, one per
file or one per line, and session logs of Claude Code. The format is detected. For a
directory, every .json and .jsonl file is tried; at least one must contain a conversation.

Each session becomes a branch named after its id, or after the file. A session with forks,
compactions or subagents becomes several: NAME/fork-1, NAME/compact-1, NAME/agent-ID.
Reasoning keeps its seals, and blocks keep their times and origins. No block is pinned, and
only instructions in the source become instructions.

Importing a file again adds only its new messages. Damaged lines are skipped and reported,
and the exit code is then 1.`,
		Example: `  tract import ~/.claude/projects/my-project
  tract import session.jsonl --as fix-the-parser
  tract import --dry-run messages.json
  curl ... | tract import - --as from-the-web`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importAll(cmd, o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.as, "as", "", "name of the branch")
	formats := mapSlice(importers.Formats(), func(f importers.Format) string { return string(f) })
	a.choiceFlag(cmd, &o.format, "format", "format of the file: "+strings.Join(formats, ", "), formats...)
	f.BoolVar(&o.dryRun, "dry-run", false, "only report what would be imported")
	return cmd
}

type importJSON struct {
	Session string `json:"session"`
	Branch  string `json:"branch"`
	Commits int    `json:"commits"` // blocks that the source has
	Added   int    `json:"added"`   // of them, that were not there yet
	Source  string `json:"source"`
}

type importRun struct {
	app      *app
	repo     *tract.Repo
	o        *importOptions
	folder   bool
	imported []importJSON
	bytes    int64 // read so far
	total    int64 // in all files; 0: unknown
	step     func(done, total int64)

	failed int     // files
	errors []error // of them
}

func (a *app) importAll(cmd *cobra.Command, o *importOptions, path string) error {
	ctx := cmd.Context()
	if f := cmd.Flags(); f.Changed("branch") || f.Changed("from") {
		return usageError("import: --branch and --from do not apply, since each session becomes a branch of its own; use --as NAME")
	}
	if o.as != "" {
		if err := checkName("branch", o.as); err != nil {
			return err
		}
	}
	files, folder, err := logFiles(path)
	if err != nil {
		return err
	}
	repo, err := a.open(ctx, !o.dryRun)
	if err != nil {
		return err
	}
	m := &importRun{app: a, repo: repo, o: o, folder: folder}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			m.total += info.Size()
		}
	}
	step, end := a.startProgress("importing")
	m.step = step
	for _, file := range files {
		if err = m.importFile(ctx, file); err != nil && (!folder || ctx.Err() != nil) {
			break
		}
		if err != nil && !m.skipUnknownFormat(err) {
			m.failed++
			m.errors = append(m.errors, splitErrors(err)...)
		}
		err = nil
	}
	end()
	if err == nil && m.failed == 0 && len(m.imported) == 0 {
		return noMessagesError(path, folder, len(files))
	}
	switch bad := splitErrors(err); {
	case m.failed > 0:
		err = importFailure(append(m.errors, bad...), "import %s: %s not imported completely", path, count(m.failed, "file"))
	case len(bad) > 1:
		err = importFailure(bad, "import %s: the file was not imported completely", path)
	}
	if showErr := m.printResults(); err == nil {
		err = showErr
	}
	return m.addNoSpaceHint(err)
}

// logFiles returns the files that an argument names, and whether the argument is a folder.
func logFiles(path string) (files []string, folder bool, err error) {
	if path == "-" {
		return []string{path}, false, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, false, err
	}
	if files, err = logsIn(path); err == nil && len(files) == 0 {
		err = noMessagesError(path, true, 0)
	}
	return files, true, err
}

// logsIn returns the files of a folder that may have conversations, in order.
func logsIn(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.Type().IsRegular() && (strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".json")):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// skipUnknownFormat reports whether the error says that a file of a folder is not a conversation,
// and prints that it was skipped.
func (m *importRun) skipUnknownFormat(err error) (skipped bool) {
	if !isType[*importers.UnknownError](err) {
		return false
	}
	m.app.info("skipped %s", err)
	return true
}

func (m *importRun) importFile(ctx context.Context, path string) error {
	name, in := path, m.app.stdin(ctx)
	if path == "-" {
		name = "stdin"
	} else {
		f, _, err := openFile(ctx, path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	n := branchNamer{as: m.o.as, sessionByBranch: map[string]string{}}
	if path != "-" {
		n.stem = cleanName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	}
	if m.folder && n.as != "" {
		n.asIsPrefix = true
	}
	var bad error
	list, err := m.repo.Import(ctx, m.readMessages(name, io.TeeReader(in, m), &n, &bad), tract.ImportOptions{DryRun: m.o.dryRun})
	if err != nil && (bad == nil || !errors.Is(err, bad)) { // what is wrong with the file names it
		err = fmt.Errorf("%s: %w", name, err)
	}
	for _, b := range list {
		m.imported = append(m.imported, importJSON{n.sessionByBranch[b.Branch], b.Branch, b.Parts, b.Added, name})
	}
	return err
}

// readMessages yields the messages of a file with their branches, then its errors as one, also
// stored in bad.
func (m *importRun) readMessages(name string, in io.Reader, n *branchNamer, bad *error) iter.Seq2[tract.ImportedMessage, error] {
	return func(yield func(tract.ImportedMessage, error) bool) {
		var list []error
		for e, err := range importers.Read(name, in, importers.Format(m.o.format)) {
			if err != nil {
				list = append(list, err)
				continue
			}
			branch := n.assignBranch(&e)
			if branch == "" {
				list = append(list, withHint(fmt.Errorf("import %s: the conversation has no name", name), "--as NAME names the branch"))
				break
			}
			f := tract.ImportedMessage{Branch: branch, From: e.From, Origin: commit.Origin{
				Provider: e.Provider, Dialect: e.Dialect, Model: e.Model, ResponseID: e.ResponseID,
				Finish: e.Finish, Usage: e.Usage, Importer: e.Importer, Original: e.Original,
			}}
			if e.Compaction {
				f.Label.Text = "replaces the earlier conversation (compacted)"
			}
			f.Parts = make([]tract.ImportedPart, len(e.Parts))
			for i, p := range e.Parts {
				f.Parts[i] = tract.ImportedPart{ID: p.ID, Time: p.Time, Block: p.Block}
			}
			if !yield(f, nil) {
				return
			}
		}
		if *bad = errors.Join(list...); *bad != nil {
			yield(tract.ImportedMessage{}, *bad)
		}
	}
}

// branchNamer names the branches of the sessions in one file.
type branchNamer struct {
	as, stem        string
	asIsPrefix      bool              // as is the first part of all branch names
	first           string            // session whose branch is named as
	sessionByBranch map[string]string // by the name of their branch
}

// assignBranch returns the name of the branch for the conversation of a message, which is the same for
// all messages of the conversation, and remembers the session of that branch.
func (n *branchNamer) assignBranch(e *importers.Entry) (branch string) {
	id := e.Original["session"]
	own := cleanName(id)
	if own == "" {
		own = n.stem
		if e.Session != "" {
			own += "/" + e.Session
		}
	}
	if n.first == "" {
		n.first = "=" + e.Session
	}
	name := own
	switch {
	case n.as != "" && !n.asIsPrefix && n.first == "="+e.Session:
		name = n.as
	case n.as != "" && id == "" && !n.asIsPrefix:
		name = n.as + "/" + e.Session
	case n.as != "":
		name = n.as + "/" + own
	case strings.HasPrefix(own, "/"):
		return "" // from stdin
	}
	if e.Thread != "" && name != "" {
		name += "/" + e.Thread
	}
	n.sessionByBranch[name] = cmp.Or(id, e.Session, name)
	return name
}

// cleanName returns a valid branch name made from s, by replacing what a branch name cannot have.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ~^:?*[\\\"'`<>|/@", r) || !unicode.IsPrint(r) {
			return '-'
		}
		return r
	}, s)
	for strings.Contains(s, "..") {
		s = strings.ReplaceAll(s, "..", ".")
	}
	return strings.TrimRight(strings.TrimLeft(strings.TrimSuffix(s, ".lock"), ".-"), ".")
}

// Write counts the bytes that were read, for the progress bar.
func (m *importRun) Write(b []byte) (int, error) {
	m.bytes += int64(len(b))
	if m.step != nil {
		m.step(m.bytes, m.total)
	}
	return len(b), nil
}

func (m *importRun) printResults() error {
	did := "added"
	if m.o.dryRun {
		did = "would be added"
	}
	return m.app.emitRows(append([]importJSON{}, m.imported...), mapSlice(m.imported, func(d importJSON) []string {
		return []string{d.Branch, strconv.Itoa(d.Added) + " of " + count(d.Commits, "block") + " " + did, d.Source}
	}))
}

// noMessagesError returns the error for a file without messages, such as a log of Claude Code that
// has only session titles, or for a folder without conversations.
func noMessagesError(path string, folder bool, files int) error {
	if path == "-" {
		path = "stdin"
	}
	what, hint := "no messages found", "the messages of the session are in another log; importing the folder imports all its logs"
	switch {
	case folder && files == 0:
		what, hint = "no .json or .jsonl files in the folder", "name the folder of the logs, such as ~/.claude/projects, or a file"
	case folder:
		what = "no conversation in its " + count(files, "file")
		hint = "want message arrays, request bodies or session logs; --format sets the format if it is not detected"
	}
	return withHint(fmt.Errorf("import %s: %s", path, what), "%s", hint)
}

// addNoSpaceHint adds to an error about a full disk a hint with the number of messages that were
// imported.
func (m *importRun) addNoSpaceHint(err error) error {
	added := 0
	for _, d := range m.imported {
		added += d.Added
	}
	if added == 0 || m.o.dryRun || err == nil {
		return err
	}
	f := classify(err)
	if f.kind != kindNoSpace {
		return err
	}
	room, _, _ := strings.Cut(f.hint, ";") // the rest says that nothing was changed
	return withHint(err, "%s; %s are imported, and the next import continues from there", room, count(added, "block"))
}

func splitErrors(err error) []error {
	if list, is := err.(interface{ Unwrap() []error }); is {
		return list.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// importFailure returns the failure of an import that went on after the errors in list.
func importFailure(list []error, format string, args ...any) error {
	return &failure{
		code: codeNo, kind: "failed", errors: list, cause: fmt.Errorf(format, args...),
		hint: "see the errors above; everything else is imported: correct the files and import again",
	}
}
