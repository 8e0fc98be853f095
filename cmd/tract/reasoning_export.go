package main

import (
	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

func newReasoningExport(a *app) *cobra.Command {
	o, as := &reasoningFlags{}, "jsonl"
	cmd := &cobra.Command{
		Use: "export [REV]", Short: "Write reasoning for other programs",
		Long: `Write reasoning for other programs, newest first: one JSON value per line, as
tract reasoning list --jsonl does, or as OpenTelemetry spans in OTLP/JSON, one response
per line, with the gen_ai attributes, which are still in development. Seals are named,
not included.`,
		Example: `  tract reasoning export > reasoning.jsonl
  tract reasoning export --format otel --since 7d > spans.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := a.walkReasoning(cmd.Context(), o, args, as == "jsonl")
			switch {
			case err != nil:
				return err
			case as == "jsonl":
				err = writeList(a, true, w.Seq2, format.ReasoningJSON)
			default:
				err = a.writeSpans(w)
			}
			return w.damage.result(err)
		},
	}
	o.register(a, cmd)
	a.choiceFlag(cmd, &as, "format", "jsonl, or otel for OpenTelemetry", "jsonl", "otel")
	return cmd
}

// writeSpans writes a span for each response.
func (a *app) writeSpans(w *reasoningWalk) error {
	var response []format.Reasoning // of one response, oldest first
	flush := func() error {
		if len(response) == 0 {
			return nil
		}
		return format.EncodeLine(a.out, format.SpanJSON(response))
	}
	var origin objects.ID
	for t, err := range w.Seq2 {
		if err != nil {
			return err
		}
		if len(response) > 0 && (t.Commit.OriginID != origin || origin.IsZero()) {
			if err := flush(); err != nil {
				return err
			}
			response = nil
		}
		origin, response = t.Commit.OriginID, append([]format.Reasoning{t}, response...)
	}
	return flush()
}
