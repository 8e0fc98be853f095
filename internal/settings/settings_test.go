package settings

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/priority"
)

// TestDefaultsOfTheModel holds the table of design/model.md.
func TestDefaultsOfTheModel(t *testing.T) {
	want := map[string]string{
		"reasoning.enabled": "true", "reasoning.include_in_context": "false", "reasoning.include_in_response": "true",
		"reasoning.effort": "", "reasoning.summary": "auto", "reasoning.max_tokens": "",
		"reasoning.format": "field", "reasoning.strip_from_context": "none", "reasoning.commit": "true",
		"reasoning.budget": "", "reasoning.ttl": "none", "secrets.mask": "traces",
		"model": "", "provider": "", "base_url": "", "max_output_tokens": "", "temperature": "", "tool_choice": "",
		"request.headers.NAME": "", "request.extra": "", "core.pager": "", "core.personal": "true", "user.name": "",
		"reasoning.budgets.MODEL": "", "price.MODEL.input": "", "price.MODEL.output": "", "price.MODEL.cached": "", "price.MODEL.cache_write": "",
	}
	got := map[string]string{}
	for _, k := range Keys() {
		got[k.Name] = k.Default
		if k.Doc == "" || strings.HasSuffix(k.Doc, ".") || strings.Contains(k.Doc, "\n") {
			t.Errorf("%s: doc %q", k.Name, k.Doc)
		}
		if k.Default != "" {
			if c, err := k.Parse(k.Default); err != nil || c != k.Default {
				t.Errorf("%s: its default %q parses to %q, %v", k.Name, k.Default, c, err)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("defaults are %v\nwant %v", got, want)
	}
}

func TestNamesAndValuesAreForgiving(t *testing.T) {
	for _, c := range []struct{ name, value, key, want string }{
		{"reasoning.includeInContext", "on", "reasoning.include_in_context", "true"},
		{"Reasoning.Include-In-Context", "No", "reasoning.include_in_context", "false"},
		{"reasoning.stripFromContext", "allButLast", "reasoning.strip_from_context", "all-but-last"},
		{"reasoning.strip_from_context", "ALL_BUT_LAST", "reasoning.strip_from_context", "all-but-last"},
		{"reasoning.strip_from_context", "off", "reasoning.strip_from_context", "none"},
		{"secrets.mask", "false", "secrets.mask", "off"},
		{"reasoning.effort", "XHigh", "reasoning.effort", "xhigh"},
		{"reasoning.maxTokens", "8k", "reasoning.max_tokens", "8000"},
		{"reasoning.max_tokens", "1.5M", "reasoning.max_tokens", "1500000"},
		{"reasoning.max_tokens", "32_000", "reasoning.max_tokens", "32000"},
		{"reasoning.max_tokens", "none", "reasoning.max_tokens", "0"},
		{"temperature", "90 %", "temperature", "0.9"},
		{"reasoning.ttl", "7d", "reasoning.ttl", "7d"},
		{"reasoning.ttl", "2w 36h", "reasoning.ttl", "15d12h"},
		{"reasoning.ttl", "0", "reasoning.ttl", "none"},
		{"max_output_tokens", "80k", "max_output_tokens", "80000"},
		{"max_output_tokens", "off", "max_output_tokens", "0"},
		{"temperature", "0.70", "temperature", "0.7"},
		{"reasoning.budgets.b", "1", "reasoning.budgets.b", "1"},
		{"baseURL", "http://localhost:11434/v1", "base_url", "http://localhost:11434/v1"},
		{"request.headers.x-title", "demo", "request.headers.X-Title", "demo"},
		{"request.extra", ` {"top_k": 40} `, "request.extra", `{"top_k":40}`},
	} {
		v, err := Values{}.With(c.name, c.value)
		if got := v.Changed(); err != nil || len(got) != 1 || got[c.key] != c.want {
			t.Errorf("%s = %s: %v, %v; want %s = %s", c.name, c.value, got, err, c.key, c.want)
		}
	}
}

func TestUnknownNamesAreRefusedWithTheNearest(t *testing.T) {
	for name, nearest := range map[string]string{
		"reasoning.includeInContxt": "reasoning.include_in_context",
		"resoning.effort":           "reasoning.effort",
		"effort":                    "reasoning.effort",
		"reasoning_effort":          "reasoning.effort",
		"modle":                     "model",
		"pager":                     "core.pager",
		"request.headers.":          "request.headers.NAME",
		"qwertzuiop":                "",
		"":                          "",
	} {
		_, err := Values{}.With(name, "x")
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest != nearest || unknown.Hint() == "" {
			t.Errorf("%q: %v, nearest %+v; want %q", name, err, unknown, nearest)
		}
	}
}

func TestBadValuesSayWhatIsAllowed(t *testing.T) {
	for _, c := range [][2]string{
		{"reasoning.enabled", "maybe"},
		{"reasoning.effort", "turbo"},
		{"reasoning.max_tokens", "-1"},
		{"reasoning.max_tokens", "1.5"},
		{"reasoning.max_tokens", ""},
		{"reasoning.max_tokens", "k"},
		{"reasoning.max_tokens", "99999999999999999999"},
		{"temperature", "2.1"},
		{"temperature", "NaN"},
		{"temperature", "0x1p0"},
		{"reasoning.ttl", "7"},
		{"reasoning.ttl", "7y"},
		{"reasoning.ttl", "99999999999999w"},
		{"base_url", "ftp://x"},
		{"base_url", "localhost:80"},
		{"model", ""},
		{"model", "a\nb"},
		{"model", "a\x1b[31mb"},
		{"model", "\xff"},
		{"request.extra", "[1]"},
		{"request.extra", "null"},
		{"request.headers.A B", "x"},
		{"user.name", strings.Repeat("x", 1<<17)},
	} {
		_, err := Values{}.With(c[0], c[1])
		var bad *ValueError
		if !errors.As(err, &bad) || bad.Want == "" || len(err.Error()) > 300 {
			t.Errorf("%s = %q: %v", c[0], c[1], err)
		}
	}
}

func TestKeysAreNeverSettings(t *testing.T) {
	const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
	for _, c := range [][2]string{
		{"api_key", "x"},
		{"openai.apiKey", secret},
		{"anthropic_token", secret},
		{"request.headers.Authorization", "Bearer abc"},
		{"request.headers.x-goog-api-key", "abc"},
		{"request.headers.Cookie", "abc"},
		{"model", secret},
		{"request.headers.X-Title", "Bearer " + secret},
		{"request.extra", `{"k":"` + secret + `"}`},
		{"base_url", "https://user:hunter2@example.com/v1"},
		{"base_url", "https://example.com/v1?k=" + secret},
	} {
		_, err := Values{}.With(c[0], c[1])
		var e *SecretError
		if !errors.As(err, &e) || !strings.Contains(e.Hint(), "_API_KEY") {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		for _, leak := range []string{secret, "hunter2", "abc"} {
			if strings.Contains(err.Error()+e.Hint(), leak) {
				t.Errorf("%s: the error shows the key: %v", c[0], err)
			}
		}
	}
	if _, err := (Values{}).With("reasoning.max_tokens", "10"); err != nil {
		t.Errorf("tokens that are counted are no keys: %v", err)
	}
}

// TestEachNameOfAKey has each name that a key is known by, alone and in longer ones, as a
// setting and as a header.
func TestEachNameOfAKey(t *testing.T) {
	for _, name := range []string{
		"api_key", "access-key", "privateKey", "secret_key", "token", "secret", "password", "passwd", "authorization", "credential", "credentials", "bearer",
	} {
		for _, name := range []string{name, "x." + name, "my_" + name, "request.headers.X-" + name} {
			var e *SecretError
			if _, err := (Values{}).With(name, "x"); !errors.As(err, &e) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"key", "keys", "auth", "request.headers.X-Signing-Key", "request.headers.X-Auth", "request.headers.Set-Cookie2"} {
		var e *SecretError
		if _, err := (Values{}).With(name, "x"); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTypedGetters(t *testing.T) {
	var v Values
	if !v.Bool("reasoning.enabled") || v.Int("reasoning.max_tokens") != 0 || v.Float("temperature") != nil ||
		v.Duration("reasoning.ttl") != 0 ||
		v.Text("model") != "" || v.Policy() != (priority.Policy{}) || len(v.Headers()) != 0 || len(v.Changed()) != 0 {
		t.Error("the zero Values does not have the defaults")
	}
	for name, value := range map[string]string{
		"reasoning.max_tokens": "16k", "temperature": "0", "reasoning.ttl": "1d12h", "model": "m",
		"reasoning.strip_from_context": "all-but-last", "reasoning.include_in_context": "yes", "request.headers.a": "b",
	} {
		before := v.Changed()
		next, err := v.With(name, value)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(before, v.Changed()) {
			t.Errorf("With changed the values it was called on")
		}
		v = next
	}
	if v.Int("reasoning.max_tokens") != 16000 || *v.Float("temperature") != 0 || v.Duration("reasoning.ttl") != 36*time.Hour ||
		v.Text("model") != "m" || v.Headers()["A"] != "b" ||
		v.Policy() != (priority.Policy{Strip: priority.StripAllButLast, IncludeReasoning: true}) {
		t.Errorf("values are %v", v.Changed())
	}
	defer func() {
		if recover() == nil {
			t.Error("a getter of a setting that is not there does not panic")
		}
	}()
	v.Bool("reasoning.enable")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "true", "8k", "1.5M", "7d", "2w3d", "all-but-last", "a,b", "http://h", `{"a":1}`, "90%", "1e3", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, k := range Keys() {
			c, err := k.Parse(value)
			if err != nil {
				continue
			}
			if again, err := k.Parse(c); err != nil && c != "" || again != c {
				t.Errorf("%s: %q parses to %q and that to %q, %v", k.Name, value, c, again, err)
			}
		}
	})
}
