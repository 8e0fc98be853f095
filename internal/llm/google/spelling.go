package google

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// How names in snake_case are handled.
//
// Google's servers accept two spellings of a member's name: camelCase, which they send, and
// snake_case, which some clients send. The decoder of requests first renames the members from
// snake_case to camelCase, and stores the names that it renamed in the extra of the
// settings. The encoder renames these members back. Members inside tool data or a schema
// keep their names, because they are not names of the API. hasSnakeName avoids the
// work for requests without such names.

// extraSnakeCase is the member of the settings' extra that lists the names that the request had
// in snake_case; see [wire.ExtraForm].
const extraSnakeCase = "$snake_case"

// snakeNames maps names of the API in snake_case to camelCase.
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

// dataMembers are the members whose content the API does not define.
var dataMembers = []string{"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema"}

// renameMembers returns v with members renamed: names maps old names to new ones. It calls
// onRename with each old name that it replaces, and returns v itself when there is none.
func renameMembers(v rawjson.Value, names map[string]string, onRename func(name string)) rawjson.Value {
	changed := false
	switch v.Kind() {
	case rawjson.KindObject:
		var o rawjson.Object
		for key, member := range v.Members() {
			name := key
			if other, known := names[key]; known {
				name, changed = other, true
				onRename(key)
			}
			value := member
			if !slices.Contains(dataMembers, name) && !slices.Contains(dataMembers, key) {
				value = renameMembers(member, names, onRename)
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
			value := renameMembers(e, names, onRename)
			changed = changed || len(value) != len(e) || len(value) > 0 && &value[0] != &e[0]
			list.Add(value)
		}
		if changed {
			return list.Bytes()
		}
	}
	return v
}

// toCamelCase returns a request body with the names of the API in camelCase, and the names
// that it had in snake_case.
func toCamelCase(body rawjson.Value) (camel rawjson.Value, snake []string) {
	if !hasSnakeName(body) {
		return body, nil
	}
	var found []string
	body = renameMembers(body, snakeNames, func(name string) {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	})
	return body, found
}

// restoreSnakeCase returns a request body in which the names of snake, a list of names in
// snake_case, replace the same names in camelCase.
func restoreSnakeCase(body, snake rawjson.Value) rawjson.Value {
	names := map[string]string{}
	for name := range snake.Elements() {
		if camel := snakeNames[name.Text()]; camel != "" {
			names[camel] = name.Text()
		}
	}
	return renameMembers(body, names, func(string) {})
}

// hasSnakeName reports whether a text has one of snakeNames in quotes. It does not parse the
// text; it only looks at the word around each underscore.
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
