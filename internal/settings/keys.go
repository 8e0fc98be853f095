package settings

import (
	"net/textproto"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/suggest"
)

// Type is the type of the value of a setting.
type Type string

// The types. The canonical value of each is what Key.Parse gives.
const (
	Bool     Type = "bool"     // true or false
	Choice   Type = "choice"   // one of Key.Choices
	Number   Type = "number"   // decimal digits; 0 is no limit
	Fraction Type = "fraction" // a decimal fraction
	Duration Type = "duration" // such as 7d or 1h30m; none
	Text     Type = "text"     // one line
	URL      Type = "url"      // of http or https
	JSON     Type = "json"     // an object, without white space
)

// Key describes one setting.
type Key struct {
	Name    string // canonical, such as reasoning.include_in_context
	Type    Type
	Choices []string // of a Choice
	Default string   // canonical; empty: it has none
	Doc     string   // one line
	Safety  Safety   // whether a file that the user did not write may set it
	max     float64  // of a Fraction
	row     string   // of a setting of a family: the name of the family
	part    string   // of a setting of a family: the part of its name that the user chose
}

const headers = "request.headers."

// table has all settings, in the order in which they are listed.
var table = []Key{
	{Name: "model", Type: Text, Safety: Safe, Doc: "name of the model"},
	{Name: "provider", Type: Text, Doc: "a vendor, which determines dialect, address and key; or a dialect; or openai-compatible, with a base_url"},
	{Name: "base_url", Type: URL, Doc: "address of the server, instead of the provider's own"},
	{Name: "max_output_tokens", Type: Number, Safety: Safe, Doc: "maximum of tokens in an answer; 0 uses the provider's default"},
	{Name: "temperature", Type: Fraction, max: 2, Safety: Safe, Doc: "sampling temperature: 0 is the least random"},
	{Name: "tool_choice", Type: Text, Safety: Safe, Doc: "auto, none, required or the name of a tool"},
	{Name: headers + "NAME", Type: Text, Doc: "an HTTP header to send with requests"},
	{Name: "request.extra", Type: JSON, Doc: "members to add to the request body"},

	{Name: "reasoning.enabled", Type: Bool, Default: "true", Safety: Safe, Doc: "request reasoning; false turns it off, and reasoning that is sent anyway is kept"},
	{Name: "reasoning.include_in_context", Type: Bool, Default: "false", Safety: Safe, Doc: "send past reasoning in prompts, also outside open tool loops"},
	{Name: "reasoning.include_in_response", Type: Bool, Default: "true", Safety: Safe, Doc: "show reasoning in the terminal"},
	{Name: "reasoning.effort", Type: Choice, Choices: strings.Fields("none minimal low medium high xhigh max"), Safety: Safe, Doc: "reasoning effort, encoded as each dialect does"},
	{Name: "reasoning.summary", Type: Choice, Choices: strings.Fields("auto concise detailed none"), Default: "auto", Safety: Safe, Doc: "kind of summary to request from a dialect that summarizes reasoning"},
	{Name: "reasoning.max_tokens", Type: Number, Safety: Safe, Doc: "maximum of reasoning tokens in an answer; 0 uses the provider's default"},
	{Name: "reasoning.format", Type: Choice, Choices: strings.Fields("field native"), Default: "field", Safety: Safe, Doc: "form in which reasoning is sent to a dialect that accepts both"},
	{Name: "reasoning.strip_from_context", Type: Choice, Choices: strings.Fields("all all-but-last none"), Default: "none", Safety: Safe, Doc: "past reasoning that is never sent; applied before include_in_context"},
	{Name: "reasoning.commit", Type: Bool, Default: "true", Safety: Safe, Doc: "commit reasoning"},
	{Name: "reasoning.budget", Type: Number, Safety: Safe, Doc: "maximum of reasoning tokens in a session, with a warning at 80 %; 0 is no limit"},
	{Name: "reasoning.budgets.MODEL", Type: Number, Safety: Safe, Doc: "maximum of reasoning tokens in a session from models with this name; * matches anything"},
	{Name: "reasoning.ttl", Type: Duration, Default: "none", Doc: "age of the reasoning that `tract gc --prune` and `tract purge --reasoning` remove"},

	{Name: "secrets.mask", Type: Choice, Choices: strings.Fields("traces all off"), Default: "traces", Safety: Stricter, Doc: "where secrets are masked before they are stored: in reasoning and imports, everywhere, or nowhere"},
	{Name: "price.MODEL.input", Type: Fraction, max: maxPrice, Safety: Safe, Doc: "price of a million input tokens of models with this name; * matches anything"},
	{Name: "price.MODEL.output", Type: Fraction, max: maxPrice, Safety: Safe, Doc: "price of a million output tokens, reasoning included"},
	{Name: "price.MODEL.cached", Type: Fraction, max: maxPrice, Safety: Safe, Doc: "price of a million tokens read from a cache; without it, that of input"},
	{Name: "price.MODEL.cache_write", Type: Fraction, max: maxPrice, Safety: Safe, Doc: "price of a million tokens written to a cache; without it, that of input"},
	{Name: "user.name", Type: Text, Safety: Safe, Doc: "author of commits"},
	{Name: "core.pager", Type: Text, Doc: "program that shows long output"},
	{Name: "core.personal", Type: Bool, Default: "true", Doc: "use a personal store if no folder above has one"},
}

// Keys returns all settings. The part of a name that a person chooses is in capitals, such
// as request.headers.NAME.
func Keys() []Key { return slices.Clone(table) }

// Find returns the setting with a name in any accepted spelling. The error is an *[UnknownError],
// or a *[SecretError] if the name is that of a credential.
func Find(name string) (Key, error) {
	if k, ok := lookup(name); ok {
		return k, nil
	}
	if n := len(headers); len(name) >= n && strings.EqualFold(name[:n], headers) {
		return Key{}, checkHeaderName(name[n:], name)
	}
	if isSecretName(name) {
		return Key{}, &SecretError{Name: name}
	}
	return Key{}, &UnknownError{Name: name, Nearest: nearestName(name)}
}

// lookup is like Find, without an error. A canonical name is found without comparing spellings:
// each prompt reads a few settings.
func lookup(name string) (Key, bool) {
	if i := slices.IndexFunc(table, func(k Key) bool { return k.Name == name }); i >= 0 {
		if _, _, many := table[i].familyAffixes(); !many {
			return table[i], true
		}
	}
	folded := foldName(name)
	for _, k := range table {
		part, chosen := k.chosenPart(name)
		switch {
		case !chosen:
			if foldName(k.Name) == folded {
				return k, true
			}
		case k.Name == headers+"NAME":
			if checkHeaderName(part, name) == nil {
				return k.withPart(textproto.CanonicalMIMEHeaderKey(part)), true
			}
		case isValidModelName(part):
			return k.withPart(strings.ToLower(part)), true
		}
	}
	return Key{}, false
}

// checkHeaderName checks the name of an HTTP header. setting is the name of the whole setting.
func checkHeaderName(name, setting string) error {
	if isSecretHeader(name) {
		return &SecretError{Name: setting}
	}
	for _, r := range name {
		if r > '~' || !isAlnum(byte(r)) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return &ValueError{Key: headers + "NAME", Value: shortenForError(name), Want: "the name of an HTTP header, such as X-Title"}
		}
	}
	if name == "" {
		return &UnknownError{Name: setting, Nearest: headers + "NAME"}
	}
	return nil
}

// Variable returns the environment variable of the setting; empty for a setting whose name
// has a part that a person chooses.
func (k Key) Variable() string {
	if _, _, many := k.familyAffixes(); many {
		return ""
	}
	return "TRACT_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// maxName is longer, in bytes, than any name of a setting without its chosen part.
const maxName = 100

// nearestName returns the most similar name of a setting; empty if none is similar.
func nearestName(name string) string {
	if len(name) > maxName {
		return ""
	}
	given := foldName(name)
	search := suggest.NewSearch(given, 1+len(given)/4)
	for _, k := range table {
		full := foldName(k.Name)
		search.Add(full, k.Name)
		if !strings.Contains(given, ".") {
			search.Add(strings.ReplaceAll(full, ".", ""), k.Name)
			search.Add(full[strings.LastIndexByte(full, '.')+1:], k.Name)
		}
	}
	return search.Best()
}
