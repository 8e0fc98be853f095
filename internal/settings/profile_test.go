package settings

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAProfileRestoresWhatItKept saves settings, changes them all, and loads them
// again: what the profile kept is back, what it did not name is at its default,
// and what no profile keeps has not moved.
func TestAProfileRestoresWhatItKept(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.toml")
	file, err := File{Path: config}.Profile("deep-think")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{
		"model": "claude-sonnet-4-5", "reasoning.effort": "high", "reasoning.strip_from_context": "all-but-last",
		"reasoning.budget": "20000", "reasoning.budgets.o3*": "500", "temperature": "0.7",
		"request.extra": `{"top_k":40}`, "request.headers.X-Title": "demo", "reasoning.commit": "false",
	}
	var v Values
	for name, value := range kept {
		if v, err = v.With(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"user.name": "Ada", "secrets.mask": "off", "price.o3.input": "2"} {
		if v, err = v.With(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.WriteProfile(v.Profile()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the profile's mode is %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(config, []byte("# mine\nmodel = \"other\" # for now\nmax_output_tokens = 9\n[user]\nname = \"Ada\"\n[reasoning]\neffort = \"low\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	profile, err := read(file.Path)
	if err != nil || !maps.Equal(profile, kept) {
		t.Fatalf("the profile reads %v, %v", profile, err)
	}
	if err := (File{Path: config}).LoadProfile(profile); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(kept)
	want["user.name"] = "Ada"
	if got, err := read(config); err != nil || !maps.Equal(got, want) {
		t.Errorf("the file says %v, %v\nwant %v", got, err, want)
	}
	if text, _ := os.ReadFile(config); !strings.Contains(string(text), "# mine") || !strings.Contains(string(text), "# for now") {
		t.Errorf("comments are gone: %s", text)
	}
	live, err := Values{}.With("max_output_tokens", "9")
	if err != nil {
		t.Fatal(err)
	}
	if live, err = live.WithProfile(profile, Origin{Layer: Call}); err != nil || !maps.Equal(live.Changed(), kept) {
		t.Errorf("loaded into values: %v, %v", live.Changed(), err)
	}
	if files, err := (File{Path: config}).Profiles(); err != nil || len(files) != 1 || files[0].ProfileName() != "deep-think" {
		t.Errorf("profiles are %v, %v", files, err)
	}
}

func TestNamesOfProfilesStayInTheirFolder(t *testing.T) {
	for _, name := range []string{"", "..", "../x", "a/b", `a\b`, ".hidden", "-x", "a b", "ü", strings.Repeat("a", 65)} {
		if file, err := (File{Path: "/c/config.toml"}).Profile(name); !errors.As(err, new(*ProfileError)) {
			t.Errorf("%q: %q, %v", name, file.Path, err)
		}
	}
}

func TestModelsHavePricesAndBudgets(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, []byte("[price.gpt-4.1]\ninput = 2\noutput = 8\ncached = 0.5\n[price.'gpt-*']\ninput = 1\n[reasoning.budgets]\n'o3*' = '5k'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"price.GPT-4.1.Output": "9", "price.claude-*.cacheWrite": "3.75", "price.claude-*.input": "3", "reasoning.budgets.R1": "7"} {
		if _, err := (File{Path: config}).Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	v, err := Load(Sources{Repo: File{Path: config}})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]Price{
		"gpt-4.1": {2, 9, 0.5, 2}, "gpt-5": {1, 0, 1, 1}, "Claude-Opus-4": {3, 0, 3, 3.75},
	} {
		if got, ok := v.Price(model); !ok || got != want {
			t.Errorf("price of %s is %v, %v, want %v", model, got, ok, want)
		}
	}
	if p, ok := v.Price("o3"); ok {
		t.Errorf("o3 has the price %v", p)
	}
	if got := v.Budgets(); !maps.Equal(got, map[string]int{"o3*": 5000, "r1": 7}) {
		t.Errorf("budgets are %v", got)
	}
	for _, name := range []string{"price", "price.input", "price..input", "price.m", "price.m.total", "reasoning.budgets", "reasoning.budgets."} {
		if k, err := Find(name); !errors.As(err, new(*UnknownError)) {
			t.Errorf("%s is %v, %v", name, k.Name, err)
		}
	}
}

func TestPatternsOfModels(t *testing.T) {
	for _, c := range []struct {
		pattern, model string
		want           bool
	}{
		{"*", "", true},
		{"o3", "O3", true},
		{"o3", "o3-mini", false},
		{"o3*", "o3-mini", true},
		{"*/claude*-4-*", "anthropic/claude-sonnet-4-5", true},
		{"claude*5", "claude-5-sonnet", false},
		{"a*a", "a", false},
		{"a**b", "axb", true},
	} {
		if got := Match(c.pattern, c.model); got != c.want {
			t.Errorf("%s fits %s: %v", c.pattern, c.model, got)
		}
	}
}
