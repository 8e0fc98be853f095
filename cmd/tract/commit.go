package main

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

type commitOptions struct {
	appendFlags
	kind, role, callID, name, path, edit string
}

func newCommit(a *app) *cobra.Command {
	o := &commitOptions{}
	cmd := &cobra.Command{
		Use: "commit [TEXT|-]", Short: "Commit a block of any kind",
		Long: `Commit a block of any kind. Most kinds have a shorter command: tract system, user,
assistant, reasoning add, tool-call and tool-result. --file commits an image or a file,
given as a path or a URL.`,
		Example: `  tract commit --kind note "The model mixes up the two dates here."
  tract commit --kind image --file sky.png
  tract commit --kind artifact -F report.md
  tract commit --kind tool-call --tool-call-id call_1 --name search '{"q":"sky"}'
  tract commit --edit :/blue "Why is the sky blue at noon?"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.commit(cmd.Context(), o, args) },
	}
	o.addFlags(a, cmd)
	f := cmd.Flags()
	f.StringVar(&o.kind, "kind", "user", "kind of block: "+strings.Join(kindNames(), ", "))
	f.StringVar(&o.role, "role", "", "role, if different from the default of the kind: system, user, assistant, tool, none")
	f.StringVar(&o.callID, "tool-call-id", "", "id of the tool call or of the call that is answered")
	f.StringVar(&o.name, "name", "", "name of the tool, the instruction, or the file")
	f.StringVar(&o.path, "file", "", "path or URL of an image or a file")
	f.StringVar(&o.edit, "edit", "", "replace the text of this commit in later prompts")
	a.completeFlag(cmd, "kind", completeWords(kindNames()...))
	a.completeFlag(cmd, "role", completeWords("system", "user", "assistant", "tool", "none"))
	a.completeFlag(cmd, "edit", a.completeRevisions)
	return cmd
}

func kindNames() []string { return mapSlice(content.Kinds(), content.Kind.String) }

// textKinds are the names of the kinds that need only a text.
func textKinds() []string {
	kinds := slices.DeleteFunc(content.Kinds(), func(k content.Kind) bool { return !k.Traits().Text })
	return mapSlice(kinds, content.Kind.String)
}

func (a *app) commit(ctx context.Context, o *commitOptions, args []string) error {
	if o.edit != "" {
		return a.editBlock(ctx, &editOptions{appendFlags: o.appendFlags}, o.edit, args)
	}
	opts := o.appendOptions(a)
	kind, err := content.ParseKind(o.kind)
	if err != nil {
		return usageError("--%s", err)
	}
	if o.role != "" {
		role, err := content.ParseRole(o.role)
		if err != nil {
			return usageError("--%s", err)
		}
		opts.Role = role
	}
	block, err := a.readBlock(ctx, o, kind, args)
	if err != nil {
		return err
	}
	return a.commitBlock(ctx, block, opts)
}

// readBlock reads the text or the file that the flags and args name, and returns the block.
func (a *app) readBlock(ctx context.Context, o *commitOptions, kind content.Kind, args []string) (content.Block, error) {
	if kind == content.KindImage || kind == content.KindFile {
		if o.path == "" || len(args) > 0 || o.file != "" {
			return nil, usageError("a block of kind %s is given with --file PATH, and has no text", kind)
		}
		return newMediaBlock(ctx, kind, o.path, o.name)
	}
	if o.path != "" {
		return nil, usageError("--file is for blocks of kind image and file; the text of a %s comes with -F", kind)
	}
	tool := kind == content.KindToolCall || kind == content.KindToolResult
	if tool && o.callID == "" {
		return nil, usageError("a block of kind %s needs --tool-call-id", kind)
	}
	if kind == content.KindToolCall && o.name == "" {
		return nil, usageError("a block of kind %s needs the --name of the tool", kind)
	}
	text, err := o.read(ctx, a, args, "")
	if err != nil {
		return nil, err
	}
	if kind.Traits().Text {
		return content.Text{Of: kind, Name: o.name, Text: text}, nil
	}
	switch kind {
	case content.KindToolCall:
		return content.ToolCall{CallID: o.callID, Name: o.name, Arguments: firstNonEmpty(text, "{}")}, nil
	case content.KindToolResult:
		return content.ToolResult{CallID: o.callID, Name: o.name, Text: text}, nil
	case content.KindReasoning:
		return content.Reasoning{Text: text, Format: content.FormatParsed}, nil
	case content.KindNative:
		if !json.Valid([]byte(text)) {
			return nil, usageError("a block of kind native is a provider's item in JSON, and the text is not JSON")
		}
		return content.Native{JSON: text}, nil
	}
	return nil, usageError("a block of kind %s cannot be made from a text: use the Go API", kind)
}

// newMediaBlock returns the block for an image or a file: with the bytes of the file at a path, or
// with a URL as it is.
func newMediaBlock(ctx context.Context, kind content.Kind, path, name string) (content.Block, error) {
	typeOf := func(path string) string {
		t, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";")
		return t
	}
	if strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return content.Media{Of: kind, URL: path, MediaType: typeOf(path), Name: name}, nil
	}
	data, err := readFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if data == "" {
		return nil, fmt.Errorf("%s %s: %w", kind, path, tract.ErrEmpty)
	}
	m := content.Media{Of: kind, MediaType: typeOf(path), Name: firstNonEmpty(name, filepath.Base(path)), Data: data}
	if m.MediaType == "" {
		m.MediaType, _, _ = strings.Cut(http.DetectContentType([]byte(data[:min(len(data), 512)])), ";")
	}
	return m, nil
}

// mediaKind returns the kind of block for an attachment.
func mediaKind(path string) content.Kind {
	if strings.HasPrefix(mime.TypeByExtension(strings.ToLower(filepath.Ext(path))), "image/") {
		return content.KindImage
	}
	return content.KindFile
}
