package content

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindReasoning is the reasoning of a model before it answers or calls a tool.
var KindReasoning = register(4, Traits{Name: "reasoning", Role: RoleAssistant, Level: priority.Skip, empty: Reasoning{}})

// Format is the form in which a provider sent reasoning.
type Format string

// The formats.
const (
	FormatParsed    Format = "parsed"     // a field of the message beside its content
	FormatRaw       Format = "raw"        // text that a person or a program marked as reasoning
	FormatThinkTags Format = "think_tags" // cut out of the content, between tags
	FormatAnthropic Format = "anthropic"  // a thinking block
	FormatResponses Format = "responses"  // a reasoning item
	FormatGemini    Format = "gemini"     // a thought part
	FormatBedrock   Format = "bedrock"    // reasoningContent
	FormatDetails   Format = "details"    // an entry of OpenRouter's reasoning_details
	FormatCohere    Format = "cohere"     // a thinking part of Cohere
	FormatMistral   Format = "mistral"    // a thinking chunk of Mistral
)

var formats = []Format{
	FormatParsed, FormatRaw, FormatThinkTags, FormatAnthropic, FormatResponses,
	FormatGemini, FormatBedrock, FormatDetails, FormatCohere, FormatMistral,
}

// ParseFormat reads the name of a format.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("reasoning format %q: want one of %v", name, formats)
}

// Reasoning is one block of reasoning. It may have text, a seal, both, or, where only
// its id is known, neither.
type Reasoning struct {
	Wire
	Format Format   // empty: not known
	Source string   // the wire field it came from
	Text   string   // empty when there are Parts
	Parts  []string // of a summary in several parts
	Open   string   // think_tags: the opening tag and the white space around it
	Close  string   // think_tags: likewise the closing one; empty when it never came
}

// Kind is KindReasoning.
func (r Reasoning) Kind() Kind { return KindReasoning }

// String returns the text, parts joined with a blank line. It is empty for reasoning
// that only its provider can read.
func (r Reasoning) String() string {
	if len(r.Parts) > 0 {
		return strings.Join(r.Parts, "\n\n")
	}
	return r.Text
}

func (r Reasoning) withEditedText(text string) Block {
	return Reasoning{Wire: r.afterEdit(), Format: FormatRaw, Source: r.Source, Text: text}
}

func (r Reasoning) withWire(w Wire) Block {
	r.Wire = w
	return r
}

func (r Reasoning) rewriteOutsideForm(by rewriter) Block {
	by.rewriteList(&r.Parts)
	by.rewrite(&r.Text)
	return r
}

func (r Reasoning) afterPurge(w Wire) Block {
	return Reasoning{Wire: w, Format: r.Format, Source: r.Source}
}

// The fields of the record of a [Reasoning].
const (
	fieldFormat = firstOfKind + iota
	fieldSource
	fieldReasoningText
	fieldReasoningParts
	fieldOpenTag
	fieldCloseTag
)

func (r Reasoning) fieldsOfKind(record *canonical.Record) Block {
	record.String(fieldFormat, (*string)(&r.Format))
	record.String(fieldSource, &r.Source)
	record.String(fieldReasoningText, &r.Text)
	record.Strings(fieldReasoningParts, &r.Parts)
	record.String(fieldOpenTag, &r.Open)
	record.String(fieldCloseTag, &r.Close)
	return r
}
