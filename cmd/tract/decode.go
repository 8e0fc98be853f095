package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

type decodeOptions struct {
	api, provider, model, stream string
	replay                       bool
}

func newDecode(a *app) *cobra.Command {
	o := &decodeOptions{}
	cmd := &cobra.Command{
		Use: "decode FILE|-", Short: "Decode one provider response into blocks",
		Long: `Decode one provider response, JSON or a stream, and show its blocks: the reasoning with
its seals, the text, the tool calls and the usage. No store is needed. --replay prints the
messages that represent the response in the next request.`,
		Example: `  tract decode --api messages answer.sse
  curl -N ... | tract decode --api chat --json -
  tract decode --provider openrouter --replay answer.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.decode(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.api, "api", "", "wire format: "+strings.Join(providers.Dialects(), ", ")+" (default: detected)")
	f.StringVar(&o.provider, "provider", "", "provider of the response; an unknown one gets the common behavior of its API")
	f.StringVar(&o.model, "model", "", "model that wrote the response; stored with its seals")
	a.choiceFlag(cmd, &o.stream, "stream", "yes: a stream, no: one JSON text (default: detected)", "yes", "no")
	f.BoolVar(&o.replay, "replay", false, "print the messages that represent the response in the next request")
	a.completeFlag(cmd, "api", completeWords(providers.Dialects()...))
	a.completeFlag(cmd, "provider", completeWords(providers.Names()...))
	return cmd
}

func (a *app) decode(ctx context.Context, o *decodeOptions, name string) error {
	framing := map[string]llm.Framing{"": llm.FramingAuto, "yes": llm.FramingStream, "no": llm.FramingJSON}[o.stream]
	if _, known := providers.FindDialect(o.api); o.api != "" && !known {
		return usageError("--api %q: want one of %s", o.api, strings.Join(providers.Dialects(), ", "))
	}
	body := a.stdin(ctx)
	if name != "-" {
		f, _, err := openFile(ctx, name)
		if err != nil {
			return err
		}
		defer f.Close()
		body = f
	}
	api, body, err := o.chooseDialect(body)
	if err != nil {
		return err
	}
	events := providers.Decode(api, o.provider, o.model, body, framing)
	if o.replay {
		r, err := llm.Collect(events, nil)
		return a.printReplayForm(o, api, r, err)
	}
	if a.json {
		r, err := collectWithUnfinishedCalls(events)
		if errors.Is(err, llm.ErrProtocol) && r == nil {
			return withDecodeHint(err)
		}
		return format.Encode(a.out, format.DecodeJSON(api, r, err))
	}
	return a.printDecoded(events)
}

// collectWithUnfinishedCalls reads a response, including the tool calls in which it broke off.
func collectWithUnfinishedCalls(events iter.Seq2[llm.Event, error]) (*llm.Response, error) {
	var a llm.Accumulator
	r, err := llm.Collect(events, a.Add)
	if r != nil {
		for _, call := range a.UnfinishedCalls() {
			r.Blocks = append(r.Blocks, call)
		}
	}
	return r, err
}

// chooseDialect returns the requested wire format, the one detected in the body, or that of the
// provider.
func (o *decodeOptions) chooseDialect(body io.Reader) (dialect string, wholeBody io.Reader, err error) {
	if name, known := providers.FindDialect(o.api); known {
		return name, body, nil
	}
	begin := make([]byte, 4096)
	n, err := io.ReadFull(body, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", nil, err
	}
	begin = begin[:n]
	body = io.MultiReader(bytes.NewReader(begin), body)
	plain := bytes.Join(bytes.Fields(begin), nil)
	for _, d := range dialectSigns {
		if bytes.Contains(plain, []byte(d.sign)) {
			return d.dialect, body, nil
		}
	}
	if p, known := providers.Lookup(o.provider); known {
		return p.Dialect, body, nil
	}
	return "chat", body, nil
}

// dialectSigns are strings, without white space, that identify the dialect of a response; the
// first match counts.
var dialectSigns = []struct{ sign, dialect string }{
	{`"choices":[`, "chat"},
	{`"type":"response.`, "responses"},
	{`"object":"response"`, "responses"},
	{`"type":"message_start"`, "messages"},
	{`"type":"message","role":"assistant"`, "messages"},
	{`"type":"content_block_`, "messages"},
	{`"candidates":[`, "gemini"},
	{`"usageMetadata":`, "gemini"},
	{`"object":"interaction"`, "interactions"},
	{`"event_type":"interaction.`, "interactions"},
	{`{"bytes":"`, "invoke"},
	{`:event-type`, "converse"},
	{`"stopReason":`, "converse"},
	{`"contentBlockDelta":`, "converse"},
	{`"messageStart":`, "converse"},
	{`"type":"message-start"`, "cohere"},
	{`"finish_reason":"COMPLETE"`, "cohere"},
	{`"billed_units":`, "cohere"},
	{`"done":`, "ollama"},
	{`"type":"message"`, "messages"},
}

// withDecodeHint gives an unreadable response a hint.
func withDecodeHint(err error) error {
	if errors.Is(err, llm.ErrProtocol) {
		return withHint(err, "want the body of one response; --api and --stream set its format if it is not detected")
	}
	return err
}

// printReplayForm prints the JSON in which a request sends the decoded response back to its provider.
func (a *app) printReplayForm(o *decodeOptions, api string, r *llm.Response, err error) error {
	if r == nil {
		return withDecodeHint(err)
	}
	part, replayErr := providers.Replay(api, o.provider, firstNonEmpty(o.model, r.Model), r.Blocks)
	if replayErr != nil {
		return replayErr
	}
	if part == nil {
		part = []byte("null")
	}
	if writeErr := a.writeTerminalSafeJSON(append(part, '\n')); writeErr != nil {
		return writeErr
	}
	return err
}

// printDecoded shows a response as generate would.
func (a *app) printDecoded(events iter.Seq2[llm.Event, error]) error {
	p := a.screen.printerWithShadedReasoning(a.out)
	live := format.NewLive(p, p)
	r, err := llm.Collect(events, live.Event)
	if r != nil {
		live.Close(r.Usage, "the provider")
	}
	if err != nil {
		return withDecodeHint(err)
	}
	if u := r.Usage; !u.IsZero() {
		p.Text(p.Dim(usageLine(r.Usage)) + "\n")
	}
	return p.Err()
}
