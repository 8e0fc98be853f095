package google

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Google's servers take the names of members in two spellings: camelCase, which they
// send, and snake_case, which some clients send. A request in snake_case is decoded in
// camelCase; the names that it spelled the other way are in the extra of the settings,
// and encoding spells them so again. Members that hold data of a tool or a schema keep
// their names.

// extraSnakeCase is the member of the extra of the settings that lists the names which
// a request spelled in snake_case, see [wire.ExtraForm].
const extraSnakeCase = "$snake_case"

// snakeNames maps the names of the format in snake_case to camelCase.
var snakeNames = func() map[string]string {
	names := map[string]string{}
	for camel := range strings.FieldsSeq(`
		systemInstruction generationConfig safetySettings toolConfig cachedContent
		functionCall functionResponse inlineData fileData thoughtSignature executableCode codeExecutionResult videoMetadata mediaResolution
		mimeType fileUri displayName toolCall toolResponse toolType partialArgs willContinue
		functionDeclarations parametersJsonSchema responseJsonSchema googleSearch googleSearchRetrieval codeExecution urlContext googleMaps
		computerUse fileSearch functionCallingConfig allowedFunctionNames retrievalConfig
		maxOutputTokens stopSequences responseMimeType responseSchema responseModalities candidateCount topP topK presencePenalty
		frequencyPenalty responseLogprobs thinkingConfig includeThoughts thinkingBudget thinkingLevel speechConfig imageConfig`) {
		var snake strings.Builder
		for _, c := range camel {
			if c >= 'A' && c <= 'Z' {
				snake.WriteByte('_')
				c += 'a' - 'A'
			}
			snake.WriteRune(c)
		}
		names[snake.String()] = camel
	}
	return names
}()

// dataMembers are the members whose content is not the format's own.
var dataMembers = []string{"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema"}

// renamed returns v with the names of members replaced by those in names. It returns v
// itself when no name is replaced. used is told each name that is.
func renamed(v rawjson.Value, names map[string]string, used func(name string)) rawjson.Value {
	changed := false
	switch v.Kind() {
	case rawjson.KindObject:
		var o rawjson.Object
		for key, member := range v.Members() {
			name := key
			if other, known := names[key]; known {
				name, changed = other, true
				used(key)
			}
			value := member
			if !slices.Contains(dataMembers, name) && !slices.Contains(dataMembers, key) {
				value = renamed(member, names, used)
			}
			changed = changed || len(value) != len(member) || len(value) > 0 && &value[0] != &member[0]
			o.Set(name, value)
		}
		if changed {
			return o.Bytes()
		}
	case rawjson.KindArray:
		var list rawjson.Array
		for e := range v.Elements() {
			value := renamed(e, names, used)
			changed = changed || len(value) != len(e) || len(value) > 0 && &value[0] != &e[0]
			list.Add(value)
		}
		if changed {
			return list.Bytes()
		}
	}
	return v
}

// inCamelCase returns a request body with the names of the format in camelCase, and the
// names that were spelled in snake_case.
func inCamelCase(body rawjson.Value) (rawjson.Value, []string) {
	if !hasSnakeName(body) {
		return body, nil
	}
	var found []string
	body = renamed(body, snakeNames, func(name string) {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	})
	return body, found
}

// inSnakeCase returns a request body with the names in list, which are in snake_case,
// spelled so.
func inSnakeCase(body, list rawjson.Value) rawjson.Value {
	names := map[string]string{}
	for name := range list.Elements() {
		if camel := snakeNames[name.Text()]; camel != "" {
			names[camel] = name.Text()
		}
	}
	return renamed(body, names, func(string) {})
}

// hasSnakeName reports whether a text has one of snakeNames in quotes. It looks at the
// words around each underscore, and does not parse.
func hasSnakeName(text []byte) bool {
	isName := func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' }
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '_')
		if n < 0 {
			return false
		}
		from, to := at+n, at+n+1
		for from > at && isName(text[from-1]) {
			from--
		}
		for to < len(text) && isName(text[to]) {
			to++
		}
		quoted := from > 0 && text[from-1] == '"' && to < len(text) && text[to] == '"'
		if quoted && snakeNames[string(text[from:to])] != "" {
			return true
		}
		at = to
	}
}
