package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

type catFileOptions struct{ pretty, kind, size bool }

func newCatFile(a *app) *cobra.Command {
	o := &catFileOptions{}
	cmd := &cobra.Command{
		Use: "cat-file -p|-t|-s ID", Short: "Show an object of the store",
		Long: `Show an object of the store: its kind (-t), the bytes of its record (-s how many,
without a flag the bytes themselves, on a terminal with escapes), or what it says
(-p).`,
		Example: `  tract cat-file -t HEAD
  tract cat-file -p 3fa2c1d
  tract cat-file 3fa2c1d | xxd`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.catFile(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.pretty, "pretty", "p", false, "what it says")
	f.BoolVarP(&o.kind, "type", "t", false, "its kind")
	f.BoolVarP(&o.size, "size", "s", false, "the bytes of its record")
	cmd.MarkFlagsMutuallyExclusive("pretty", "type", "size")
	return cmd
}

func (a *app) catFile(ctx context.Context, o *catFileOptions, rev string) error {
	r, err := a.resolver(ctx, rev)
	if err != nil {
		return err
	}
	id, err := r.Object(ctx, rev)
	if err != nil {
		return err
	}
	obj, err := objects.Read(ctx, a.repo.Store(), id)
	if err != nil {
		return err
	}
	switch {
	case a.json:
		return format.Encode(a.out, map[string]any{
			"id": obj.ID, "kind": obj.Kind.String(), "size": len(obj.Data), "parents": orNone(obj.Parents), "links": orNone(obj.Links), "data": obj.Data,
		})
	case o.kind:
		_, err = fmt.Fprintln(a.out, obj.Kind)
	case o.size:
		_, err = fmt.Fprintln(a.out, len(obj.Data))
	case o.pretty:
		return a.catPretty(ctx, obj)
	case isTerminal(a.out):
		p := a.printer()
		p.Line(string(obj.Data))
		err = p.Err()
	default:
		_, err = a.out.Write(obj.Data)
	}
	return err
}

func orNone(ids []objects.ID) []objects.ID {
	if ids == nil {
		return []objects.ID{}
	}
	return ids
}

// catPretty says what an object holds. One that has no words of its own is shown
// by its edges and its record.
func (a *app) catPretty(ctx context.Context, obj objects.Object) error {
	p := a.printer()
	switch obj.Kind {
	case objects.KindCommit:
		return a.showCommit(ctx, obj.ID, false)
	case objects.KindContent, objects.KindList:
		b, err := commit.ReadContent(ctx, a.repo.Store(), obj.ID)
		if err != nil {
			return err
		}
		return writeRaw(textWriter{p}, b)
	case objects.KindLabel:
		l, err := commit.ParseLabel(obj)
		if err != nil {
			return err
		}
		p.Text(l.Text + "\n")
		for k, v := range l.Meta {
			p.Line(k + "=" + v)
		}
	default:
		for _, id := range obj.Parents {
			p.Text("parent " + id.String() + "\n")
		}
		for _, id := range obj.Links {
			p.Text("link " + id.String() + "\n")
		}
		p.Text(fmt.Sprintf("%s\n", obj.Data))
	}
	return p.Err()
}

// textWriter is a printer as a writer of stored text.
type textWriter struct{ p *format.Printer }

func (w textWriter) Write(b []byte) (int, error) {
	w.p.Text(string(b))
	return len(b), w.p.Err()
}

func newRevParse(a *app) *cobra.Command {
	short := false
	cmd := &cobra.Command{
		Use: "rev-parse REV...", Short: "Print the ids that revisions name",
		Long: `Print the ids that revisions name, one a line. A range prints its end and then
its begin after a ^, as git does.`,
		Example: `  tract rev-parse HEAD~2 main@{yesterday}
  tract rev-parse --short HEAD`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.resolver(cmd.Context(), args...)
			if err != nil {
				return err
			}
			lines := []string{}
			for _, rev := range args {
				from, to, err := r.Range(cmd.Context(), rev)
				if err != nil {
					return err
				}
				for _, line := range []struct {
					mark string
					id   objects.ID
				}{{"", to}, {"^", from}} {
					switch {
					case line.id.IsZero():
					case short:
						lines = append(lines, line.mark+line.id.Short())
					default:
						lines = append(lines, line.mark+line.id.String())
					}
				}
			}
			if a.json {
				return format.Encode(a.out, lines)
			}
			_, err = io.WriteString(a.out, strings.Join(lines, "\n")+"\n")
			return err
		},
		ValidArgsFunction: a.completeRevisions,
	}
	cmd.Flags().BoolVar(&short, "short", false, "print the first digits")
	return cmd
}

func newHashObject(a *app) *cobra.Command {
	o := &words{}
	kind := "user"
	cmd := &cobra.Command{
		Use: "hash-object [TEXT|-]", Short: "Print the id that a text would have as a block",
		Long: `Print the id of the content object that a text would become as a block of a
kind. Nothing is stored, and no store is needed.`,
		Example: `  tract hash-object "Hello"
  tract hash-object --kind system -F style.md`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := content.ParseKind(kind)
			if err != nil || !k.Traits().Text {
				return usage(cmd, "--kind %q: want a kind of text: %s", kind, strings.Join(textKinds(), ", "))
			}
			text, err := o.read(cmd.Context(), a, cmd, args, "")
			if err != nil {
				return err
			}
			id, err := commit.ContentID(content.Text{Of: k, Text: text})
			if err != nil {
				return err
			}
			if a.json {
				return format.Encode(a.out, map[string]any{"id": id, "kind": kind})
			}
			_, err = fmt.Fprintln(a.out, id)
			return err
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&kind, "kind", kind, "kind of block")
	return cmd
}
