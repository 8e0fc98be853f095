package settings

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

const sample = `# my settings
model = "claude-sonnet-4-5" # the good one

# how it thinks
[reasoning]
  effort = "high"   # costs
  includeInContext = true
summary = "none" # mine

[request]
extra = { top_k = 40, stop = ["a"] }

[request.headers]
X-Title = "demo"
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(path string) (map[string]string, error) {
	c, err := File{Path: path}.Read()
	if err != nil {
		return nil, err
	}
	return c.Set, nil
}

func TestRead(t *testing.T) {
	got, err := read(write(t, sample))
	want := map[string]string{
		"model": "claude-sonnet-4-5", "reasoning.effort": "high", "reasoning.include_in_context": "true", "reasoning.summary": "none",
		"request.extra": `{"stop":["a"],"top_k":40}`, "request.headers.X-Title": "demo",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	if _, err := read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestReadNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\n":                                  `line 1: setting "a"`,
		"\n[reasoning]\n\neffrt = \"low\"\n":       `line 4: setting "reasoning.effrt"`,
		"[reasoning]\neffort = 3\n":                `line 2: setting reasoning.effort "3": want none, minimal`,
		"reasoning = { enabled = 3 }\n":            "line 1: setting reasoning.enabled",
		"model = \"a\"\nMODEL = \"b\"\n":           "set twice",
		"model = \n":                               "line 1: toml:",
		"[reasoning]\nttl = 2026-01-01\n":          "line 2: setting reasoning.ttl",
		"[[reasoning]]\neffort = \"low\"\n":        "setting",
		"api_key = \"sk-abcdefghijklmnopqrstuvw\"": "line 1: setting \"api_key\": keys and passwords",
	} {
		_, err := read(write(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abcdef") {
			t.Errorf("%q: %v; want %q in it", text, err, want)
		}
	}
	if _, err := read(write(t, "# "+strings.Repeat("x", maxFile))); err == nil {
		t.Error("a huge file was read")
	}
}

func TestSetFileKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ name, value, old, new string }{
		{"model", "gpt-5", `"claude-sonnet-4-5" # the`, `'gpt-5' # the`},
		{"reasoning.effort", "low", `"high"   # costs`, `'low'   # costs`},
		{"reasoning.include_in_context", "off", "includeInContext = true", "includeInContext = false"},
		{"reasoning.summary", "concise", `"none" # mine`, `'concise' # mine`},
		{"reasoning.ttl", "7d", "# mine\n", "# mine\nttl = '7d'\n"},
		{"request.headers.X-Title", "new", `"demo"`, `'new'`},
		{"request.headers.x-run", "7", "\"demo\"\n", "\"demo\"\nX-Run = '7'\n"},
		{"temperature", "0.5", "# the good one\n", "# the good one\ntemperature = 0.5\n"},
		{"secrets.mask", "all", "X-Title = \"demo\"\n", "X-Title = \"demo\"\n\n[secrets]\nmask = 'all'\n"},
		{"request.extra", `{"a":1}`, `{ top_k = 40, stop = ["a"] }`, `'{"a":1}'`},
	} {
		path := write(t, sample)
		if _, err := (File{Path: path}).Set(c.name, c.value); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, _ := os.ReadFile(path)
		if want := strings.Replace(sample, c.old, c.new, 1); string(got) != want {
			t.Errorf("%s: wrote\n%s\nwant\n%s", c.name, got, want)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", c.name, info.Mode())
		}
	}
}

func TestSetFileInOddDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "[reasoning]\neffort = 'low'\n",
		"model = 'a'":                         "model = 'a'\n\n[reasoning]\neffort = 'low'\n",
		"reasoning.enabled = true\n":          "reasoning.enabled = true\nreasoning.effort = 'low'\n",
		"# c\r\n[reasoning]\r\n":              "# c\r\n[reasoning]\r\neffort = 'low'\r\n",
		"reasoning = { enabled = true } # c":  "reasoning = { effort = 'low', enabled = true } # c",
		"reasoning = {}":                      "reasoning = { effort = 'low'}",
		"reasoning = { effort = 'high' } # c": "reasoning = { effort = 'low' } # c",
		"reasoning.effort = \"\"\"\nhigh\"\"\" # c": "reasoning.effort = 'low' # c",
		"user.name = 'a # b' # c\n":                 "user.name = 'a # b' # c\n\n[reasoning]\neffort = 'low'\n",
		"reasoning.effort = 'h#h' # c\n":            "reasoning.effort = 'low' # c\n",

		// Another spelling of the setting does not stay, since the file would be refused.
		"[reasoning]\neffort = 'high'\n# c\nEffort = 'max'\n":                  "[reasoning]\neffort = 'low'\n# c\n",
		"[reasoning]\neffort = 'high'\n\n[Reasoning]\neffort = 'max' # c\n":    "[reasoning]\n\n[Reasoning]\neffort = 'low'\n",
		"reasoning = { effort = 'high', Effort = 'max', commit = true } # c\n": "reasoning = { effort = 'low', commit = true } # c\n",

		// A number that is not equal to itself is not a change.
		"a = [nan, { b = nan }]\n": "a = [nan, { b = nan }]\n\n[reasoning]\neffort = 'low'\n",
		"temperature = nan\n":      "temperature = nan\n\n[reasoning]\neffort = 'low'\n",
	} {
		path := write(t, text)
		if _, err := (File{Path: path}).Set("reasoning.effort", "low"); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%q: wrote %q, want %q", text, got, want)
		}
	}
	path := write(t, "request.extra = { a = 1, b = { c = 2 } } # c\n[Request.Extra]\na = 3\n")
	if _, err := (File{Path: path}).Set("request.extra", `{"d":4}`); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "[request]\nextra = '{\"d\":4}'\n" {
		t.Errorf("two spellings of an object: wrote %q", got)
	}
	if _, err := (File{Path: write(t, "not toml")}).Set("model", "a"); err == nil {
		t.Error("a file that is not TOML was changed")
	}
	head := "# about\n\n# of thinking\n[reasoning]\ncommit = false\n"
	path = write(t, head)
	if _, err := (File{Path: path}).Set("model", "a"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "# about\n\nmodel = 'a'\n\n# of thinking\n[reasoning]\ncommit = false\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestSetFileMakesFolderAndFollowsLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "config.toml")
	if value, err := (File{Path: path}).Set("reasoning.maxTokens", "8k"); err != nil || value != "8000" {
		t.Fatalf("%q, %v", value, err)
	}
	if info, _ := os.Stat(filepath.Dir(path)); info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode())
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if _, err := (File{Path: link}).Set("model", "a"); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link became a file")
	}
	if got, err := read(path); err != nil || got["model"] != "a" || got["reasoning.max_tokens"] != "8000" {
		t.Errorf("read %v, %v", got, err)
	}
	for _, e := range []func() error{
		func() error { _, err := File{Path: path}.Set("api_key", "x"); return err },
		func() error { _, err := File{Path: path}.Set("mode", "x"); return err },
		func() error { _, err := File{Path: path}.Set("reasoning.effort", "x"); return err },
	} {
		if e() == nil {
			t.Error("a bad setting was written")
		}
	}
}

func TestUnsetFile(t *testing.T) {
	path := write(t, sample+"\n[mistake]\nEffort = 1\n")
	for _, c := range []struct {
		name string
		was  bool
	}{
		{"reasoning.effort", true},
		{"reasoning.effort", false},
		{"reasoning.includeincontext", true},
		{"reasoning.summary", true},
		{"request.extra", true},
		{"mistake.effort", true},
		{"nothing", false},
	} {
		if was, err := (File{Path: path}).Unset(c.name); err != nil || was != c.was {
			t.Errorf("%s: %v, %v", c.name, was, err)
		}
	}
	want := "# my settings\nmodel = \"claude-sonnet-4-5\" # the good one\n\n# how it thinks\n[reasoning]\n\n[request]\n\n[request.headers]\nX-Title = \"demo\"\n\n[mistake]\n"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("left\n%s\nwant\n%s", got, want)
	}
	for text, want := range map[string]string{
		"reasoning = { effort = 'low', enabled = true } # c\n":            "reasoning = { enabled = true } # c\n",
		"reasoning = {enabled = true, effort = 'low'}\n":                  "reasoning = {enabled = true}\n",
		"[request.extra] # a\ntop_k = 4 # b\n[reasoning] # c\nttl = '1d'": "[reasoning] # c\nttl = '1d'",
		"# a\nrequest.extra.top_k = 4\nrequest.extra.a.b = 4\n# b\n":      "# a\n# b\n",
	} {
		path := write(t, text)
		for _, name := range []string{"reasoning.effort", "request.extra"} {
			if _, err := (File{Path: path}).Unset(name); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%q: left %q, want %q", text, got, want)
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	if was, err := (File{Path: missing}).Unset("model"); was || err != nil {
		t.Errorf("a missing file: %v, %v", was, err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("unset made a file")
	}
}

func TestManyWritersLeaveAWholeFile(t *testing.T) {
	path := write(t, "# kept\n")
	var wg sync.WaitGroup
	for _, name := range []string{"model", "provider", "user.name", "core.pager"} {
		wg.Go(func() {
			for range 20 {
				if _, err := (File{Path: path}).Set(name, name); err != nil && !strings.Contains(err.Error(), "others change it") {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := read(path)
	text, _ := os.ReadFile(path)
	if err != nil || len(got) == 0 || !strings.HasPrefix(string(text), "# kept\n") {
		t.Errorf("left %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestLoadLayers(t *testing.T) {
	s := Sources{
		Global: File{Path: write(t, "model = 'global'\nprovider = 'global'\n[user]\nname = 'global'\n[reasoning]\neffort = 'low'")},
		Repo:   File{Path: write(t, "model = 'repo'\nprovider = 'repo'\n")},
	}
	env := map[string]string{"TRACT_MODEL": "env", "TRACT_PROVIDER": "", "THINKING": "off", "REASONING_EFFORT": "high", "CLEAR_THINKING": "false", "TRACT_PAGER": "less"}
	s.Lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	v, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = v.Put("tool_choice", "none", Origin{Call, "--set"}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, item := range v.List() {
		if item.Origin.Layer != Default {
			got[item.Key.Name] = item.Value + " from " + item.Origin.String()
		}
	}
	want := map[string]string{
		"model": "env from TRACT_MODEL", "provider": "repo from repo " + s.Repo.Path, "user.name": "global from global " + s.Global.Path,
		"reasoning.enabled": "false from THINKING", "reasoning.effort": "high from REASONING_EFFORT", "tool_choice": "none from --set",
		"reasoning.strip_from_context": "none from CLEAR_THINKING", "reasoning.include_in_context": "true from CLEAR_THINKING", "core.pager": "less from TRACT_PAGER",
	}
	if !maps.Equal(got, want) {
		t.Errorf("loaded %v\nwant %v", got, want)
	}
	env = map[string]string{"TRACT_REASONING_EFFORT": "low", "REASONING_EFFORT": "high", "CLEAR_THINKING": "1"}
	if v, err = Load(Sources{Lookup: s.Lookup}); err != nil || v.Text("reasoning.effort") != "low" || v.Policy().Strip.String() != "all" {
		t.Errorf("loaded %v, %v", v.Changed(), err)
	}
	for name, value := range map[string]string{"TRACT_TEMPERATURE": "hot", "THINKING": "perhaps", "CLEAR_THINKING": "perhaps"} {
		env = map[string]string{name: value}
		if _, err := Load(Sources{Lookup: s.Lookup}); err == nil || !strings.HasPrefix(err.Error(), "environment variable "+name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestGlobalFile(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/x/tract/config.toml":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/tract/config.toml": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                             {},
	} {
		if got := GlobalFile(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

func FuzzSetText(f *testing.F) {
	for _, s := range []string{
		sample, "", "a.b = 1", "[[x]]\na=1", "reasoning = {effort='x', a={b=1}}", "\"reasoning\".'effort' = \"\"\"\nx\"\"\"", "[request.extra]\na=1\n",
		"[store.'/p']\nmodel='b'\n[store.'/p'.reasoning]\neffort='x'\n[store.'/P']\nmodel='c'", "store = {'/p' = {model='b'}}", "store.'/p'.model = 'b'",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = parseSettings(text, nil, true)
		_, _ = parseSettings(text, nil, false)
		for name, value := range map[string]string{"reasoning.effort": "low", "model": "a", "request.headers.X-A": "b"} {
			for _, section := range [][]string{nil, {storeTable, "/p"}} {
				key, err := Find(name)
				if err != nil {
					t.Fatal(err)
				}
				after, err := applyEdits(text, section, []edit{{name: name, set: true, key: key, value: value}})
				if err != nil {
					continue
				}
				was, err := valuesByName(text)
				if err != nil {
					t.Fatalf("%q was changed", text)
				}
				back, err := applyEdits(after, section, []edit{{name: name}})
				if err != nil {
					continue
				}
				delete(was, foldedKey(section, name))
				if is, err := valuesByName(back); err != nil || !reflect.DeepEqual(was, is) {
					t.Errorf("%q: set and unset of %s in %q gave %q, %v", text, name, section, back, err)
				}
			}
		}
	})
}
