package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/objects"
)

type catFileOptions struct{ pretty, kind, size bool }

func newCatFile(a *app) *cobra.Command {
	o := &catFileOptions{}
	cmd := &cobra.Command{
		Use: "cat-file -p|-t|-s ID", Short: "Print an object of the store",
		Long: `Print an object of the store: its kind (-t), the size of its record (-s), its content in
readable form (-p) or, without a flag, the bytes of its record, with escapes on a
terminal.`,
		Example: `  tract cat-file -t HEAD
  tract cat-file -p 3fa2c1d
  tract cat-file 3fa2c1d | xxd`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.catFile(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.pretty, "pretty", "p", false, "print its content in readable form")
	f.BoolVarP(&o.kind, "type", "t", false, "print its kind")
	f.BoolVarP(&o.size, "size", "s", false, "print the size of its record in bytes")
	cmd.MarkFlagsMutuallyExclusive("pretty", "type", "size")
	return cmd
}

func (a *app) catFile(ctx context.Context, o *catFileOptions, rev string) error {
	r, err := a.newResolver(ctx, rev)
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
			"id": obj.ID, "kind": obj.Kind.String(), "size": len(obj.Data), "parents": append([]objects.ID{}, obj.Parents...), "links": append([]objects.ID{}, obj.Links...), "data": obj.Data,
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

// catPretty prints the content of an object or, if it has no content, its links and its record.
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
		p.Text(rawText(b))
	case objects.KindBody:
		b, err := requestbody.Read(ctx, a.repo.Store(), obj.ID)
		if err != nil {
			return err
		}
		p.Text(string(b.Data))
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
