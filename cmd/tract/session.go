package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
)

// session is an interactive conversation on a terminal.
type session struct {
	a           *app
	o           *chatOptions
	editor      *lineEditor
	attachments []content.Block // for the next message; it keeps them until it is committed
	shownTip    objects.ID      // tip for which printPromptSizeIfMoved printed last
	quit        bool
	turnContext context.Context //nolint:containedctx // of the operation of the last turn
}

// runSession runs an interactive conversation until the user leaves.
func (a *app) runSession(cmd *cobra.Command, o *chatOptions) error {
	in, ok := a.in.(*os.File)
	if !ok {
		return usageError("want a text")
	}
	// Ctrl-C cancels the context of one response, not that of the process.
	ctx := context.WithoutCancel(cmd.Context())
	cmd.SetContext(ctx)
	if _, _, err := a.clientAndOptions(ctx, &o.requestFlags); err != nil {
		return err
	}
	if err := a.selectBranch(cmd, o); err != nil {
		return err
	}
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	if err := a.commitInstruction(ctx, b, o.system); err != nil {
		return err
	}
	s := &session{a: a, o: o, turnContext: ctx, editor: newLineEditor(in, a.out)}
	for _, path := range o.attach {
		if err := s.attachFile(ctx, path); err != nil {
			return err
		}
	}
	a.inSession = true
	a.info("branch %s; /help lists commands, Ctrl-D quits", b.Name())
	if _, err := s.printPending(ctx, b); err != nil {
		a.report(ctx, err)
	}
	for !s.quit {
		name, err := a.branchOfFlagOrHead(ctx)
		if err != nil {
			return err
		}
		if err := s.printPromptSizeIfMoved(ctx, name); err != nil {
			a.report(ctx, err)
		}
		text, err := s.editor.read(format.Line(name) + "> ")
		if err == io.EOF {
			fmt.Fprintln(a.out)
			return nil
		}
		if err != nil {
			return err
		}
		a.damage = damageLog{}
		if err := a.damage.finalError(s.handle(ctx, text)); err != nil {
			a.report(ctx, err) // and go on
		}
	}
	return nil
}

// handle runs a session command or sends a message. All commits of one turn are one operation, so
// that one undo takes them back.
func (s *session) handle(ctx context.Context, text string) error {
	word, rest, _ := strings.Cut(text, " ")
	command := sessionCommand{name: "/chat", beginsTurn: true, run: (*session).send}
	at := slices.IndexFunc(sessionCommands(), func(c sessionCommand) bool { return c.name == word })
	switch {
	case at >= 0:
		command, rest = sessionCommands()[at], strings.TrimSpace(rest)
	case strings.HasPrefix(word, "/") && !strings.Contains(word[1:], "/") && !strings.Contains(word, "\n"):
		return withHint(fmt.Errorf("unknown command %s", word), "/help lists commands; to send a text that begins with /, put a space before it")
	case strings.TrimSpace(text) == "" && len(s.attachments) == 0:
		return nil
	default:
		rest = strings.TrimPrefix(text, " ")
	}
	if command.beginsTurn {
		s.turnContext = tract.AsOperation(ctx, command.name[1:])
	}
	return command.run(s, s.turnContext, rest)
}

// send sends a text with the attachments.
func (s *session) send(ctx context.Context, text string) error {
	blocks := slices.Clone(s.attachments)
	if text != "" {
		blocks = append(blocks, content.User(text))
	}
	return s.ask(ctx, blocks)
}

// ask commits a message, if there is one, and asks the model. Ctrl-C stops the response; the
// received part is kept.
func (s *session) ask(ctx context.Context, message []content.Block) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, opts, err := s.a.clientAndOptions(ctx, &s.o.requestFlags)
	if err != nil {
		return err
	}
	b, err := s.a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	committed, err := s.a.ask(ctx, &s.o.requestFlags, b, client, message, opts)
	if committed {
		s.attachments = nil
	}
	return err
}

type sessionCommand struct {
	name, args, about string
	beginsTurn        bool // the command begins a turn
	run               func(s *session, ctx context.Context, rest string) error
}

// sessionCommands returns the commands of a session, which begin with a slash.
func sessionCommands() []sessionCommand {
	return []sessionCommand{
		{"/thinking", "effort|clear [VALUE], on, off", "set reasoning: effort high, clear true; without a value, show it", false, (*session).thinking},
		{"/set", "KEY VALUE", "change a setting for this session", false, (*session).set},
		{"/profile", "list, save|load NAME", "save or load the settings of this session", false, (*session).profile},
		{"/edit", "", "write the text in $EDITOR", true, (*session).writeInEditorAndSend},
		{"/result", "ID [TEXT|-F FILE|--error TEXT|--abandon]", "answer a tool call; after the last one the model continues", false, (*session).result},
		{"/attach", "FILE|URL", "attach an image or a file to the next message", false, (*session).attachFile},
		{"/new", "[NAME]", "start an empty conversation", true, (*session).newConversation},
		{"/branch", "[NAME]", "switch to a branch, created here if missing; without a name, list branches", true, (*session).switchOrListBranches},
		{"/retry", "[MODEL]", "ask the last question again on a new branch", true, (*session).askLastQuestionOnNewBranch},
		{"/log", "", "show the last commits", false, (*session).log},
		{"/undo", "", "undo the last turn", true, (*session).undo},
		{"/help", "", "show this list", false, (*session).help},
		{"/quit", "", "quit", false, func(s *session, _ context.Context, _ string) error { s.quit = true; return nil }},
	}
}

func (s *session) undo(ctx context.Context, _ string) error {
	name, err := s.a.branchOfFlagOrHead(ctx)
	if err != nil {
		return err
	}
	return s.a.undoOrRedo(ctx, false, tract.UndoOptions{Branch: name})
}

func (s *session) help(context.Context, string) error {
	var rows [][]string
	for _, c := range sessionCommands() {
		rows = append(rows, []string{c.name + " " + c.args, c.about})
	}
	p := s.a.printer()
	p.Table(rows)
	p.Text("Alt-Enter starts a new line, Ctrl-C stops an answer, Ctrl-D quits.\n")
	return p.Err()
}

// thinking handles /thinking: it changes or shows the reasoning settings.
func (s *session) thinking(_ context.Context, rest string) error {
	word, value, _ := strings.Cut(rest, " ")
	value = strings.TrimSpace(value)
	switch {
	case rest == "":
		return s.showSettings("reasoning.enabled", "reasoning.effort", "reasoning.strip_from_context", "reasoning.include_in_context")
	case word == "effort" && value == "":
		return s.showSettings("reasoning.effort")
	case word == "clear" && value == "":
		return s.showSettings("reasoning.strip_from_context", "reasoning.include_in_context")
	case value == "" && (word == "on" || word == "off"):
		return s.setForSession(map[string]string{"reasoning.enabled": word})
	case word == "effort":
		return s.setForSession(map[string]string{"reasoning.effort": value})
	case word == "clear" && settings.ClearThinking(value) != nil:
		return s.setForSession(settings.ClearThinking(value))
	case word == "clear":
		return withHint(fmt.Errorf("/thinking clear %q: want true or false", value), "true sends no past reasoning, false sends all of it")
	}
	return withHint(fmt.Errorf("unknown command: /thinking %s", rest), "/thinking effort high, /thinking clear true, /thinking on, /thinking off")
}

func (s *session) set(_ context.Context, rest string) error {
	key, value, given := strings.Cut(rest, " ")
	if given {
		return s.setForSession(map[string]string{key: strings.TrimSpace(value)})
	}
	return s.showSettings(key)
}

// showSettings prints settings and where they were set.
func (s *session) showSettings(keys ...string) error {
	for _, key := range keys {
		item, err := s.a.loaded.Get(key)
		if err != nil {
			return err
		}
		s.a.info("%s is %s (%s)", item.Key.Name, firstNonEmpty(item.Value, "not set"), item.Origin)
	}
	return nil
}

// setForSession changes settings for this session, all or none.
func (s *session) setForSession(set map[string]string) error {
	v := *s.a.loaded
	var names []string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		k, err := settings.Find(key)
		if err != nil {
			return err
		}
		if err := checkProviderName(k, set[key]); err != nil {
			return err
		}
		if v, err = v.Put(key, set[key], settings.Origin{Layer: settings.Call, Name: "/set"}); err != nil {
			return err
		}
		names = append(names, k.Name)
	}
	s.a.loaded = &v
	for _, name := range names {
		item, err := v.Get(name)
		if err != nil {
			return err
		}
		s.a.info("%s is %s", name, firstNonEmpty(item.Value, "not set"))
	}
	return nil
}

func (s *session) writeInEditorAndSend(ctx context.Context, draft string) error {
	text, err := s.a.editText(ctx, draft)
	if err != nil || text == "" {
		return err
	}
	return s.send(ctx, text)
}

func (s *session) attachFile(ctx context.Context, path string) error {
	m, err := newMediaBlock(ctx, mediaKind(path), path, "")
	if err != nil {
		return err
	}
	s.attachments = append(s.attachments, m)
	s.a.info("%s is attached to the next message", format.Summary(m, 0))
	return nil
}

func (s *session) newConversation(ctx context.Context, rest string) error {
	return s.a.startConversation(ctx, conversationName(firstNonEmpty(rest, newNameDefault)))
}

// switchOrListBranches handles /branch: it switches to a branch or, without a name, lists the
// branches.
func (s *session) switchOrListBranches(ctx context.Context, name string) error {
	if name == "" {
		return s.a.listBranches(ctx, &branchOptions{sort: "name"}, nil)
	}
	return s.switchToOrCreate(ctx, name)
}

// switchToOrCreate switches to a branch. If it is missing, it begins at HEAD.
func (s *session) switchToOrCreate(ctx context.Context, name string) error {
	s.a.branch = ""
	if tip, err := s.a.repo.Branch(name).Tip(ctx); err != nil || !tip.IsZero() {
		if err != nil {
			return err
		}
		return s.a.switchToBranchOrCommit(ctx, name)
	}
	return s.a.switchToNew(ctx, name, "HEAD")
}

// askLastQuestionOnNewBranch asks the last question again on a new branch, to which the session switches.
// newModel, if it is not empty, becomes the model of the session.
func (s *session) askLastQuestionOnNewBranch(ctx context.Context, newModel string) error {
	question, err := s.lastUserCommit(ctx)
	if err != nil {
		return err
	}
	if newModel != "" {
		if err := s.setForSession(map[string]string{"model": newModel}); err != nil {
			return err
		}
	}
	branch := timestampedName("retry")
	if err := s.a.switchToNew(ctx, branch, question.String()); err != nil {
		return err
	}
	return s.ask(ctx, nil)
}

// lastUserCommit returns the id of the last commit of the last user message.
func (s *session) lastUserCommit(ctx context.Context) (objects.ID, error) {
	tip, err := s.a.resolve(ctx, "HEAD")
	if err != nil {
		return tip, err
	}
	for c, err := range commit.Walk(ctx, s.a.repo.Store(), tip, 0) {
		if err != nil {
			return tip, err
		}
		if c.Op == commit.Append && c.Role == content.RoleUser {
			return c.ID, nil
		}
	}
	return objects.ID{}, errors.New("/retry: the branch has no question")
}

func (s *session) log(ctx context.Context, _ string) error {
	return s.a.log(ctx, &logOptions{LogStyle: format.LogStyle{Oneline: true}, limit: 20}, nil)
}
