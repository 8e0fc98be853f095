package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/safefile"
)

// inFolder makes the file of settings of a store's folder, and the user's own.
func inFolder(t *testing.T, folder, own string) (repo, global File) {
	t.Helper()
	global = File{Path: filepath.Join(t.TempDir(), "tract", "config.toml")}
	repo = File{Path: filepath.Join(t.TempDir(), ".tract", "config.toml"), Folder: true, Trust: TrustBeside(global.Path)}
	for f, text := range map[File]string{repo: folder, global: own} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o700), os.WriteFile(f.Path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return repo, global
}

func mustLoad(t *testing.T, repo, global File, env map[string]string) Values {
	t.Helper()
	v, err := Load(Sources{Global: global, Repo: repo, Lookup: func(name string) (string, bool) { value, ok := env[name]; return value, ok }})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ignoredNames(v Values) (names []string) {
	for _, i := range v.Ignored() {
		names = append(names, i.Key.Name)
	}
	return names
}

// TestEverySettingIsSafeOrNot is the list to think about when a setting is added: one
// that nobody thought about is not safe.
func TestEverySettingIsSafeOrNot(t *testing.T) {
	unsafe := map[string]string{
		"provider": "host", "base_url": "host", "request.headers.NAME": "credential", "request.extra": "may name hosts",
		"core.pager": "program", "core.personal": "of the user", "reasoning.ttl": "deletes",
	}
	for _, k := range Keys() {
		want := Safe
		if _, ok := unsafe[k.Name]; ok {
			want = Unsafe
		} else if k.Name == "secrets.mask" {
			want = Stricter
		}
		if k.Safety != want {
			t.Errorf("%s has safety %d, want %d", k.Name, k.Safety, want)
		}
	}
	for _, name := range []string{"provider", "Base-URL", "core.pager", "request.headers.x", "request.headers.", "author", "nothing", "api_key", "", "alias.log"} {
		if key, _ := lookup(name); key.Safety != Unsafe {
			t.Errorf("%q is safe", name)
		}
	}
}

func TestAFolderSetsOnlyWhatIsSafe(t *testing.T) {
	repo, global := inFolder(t, `
model = "of the folder"
provider = "evil"
BaseURL = "http://evil.example"
author = "eve"
nothing = 1
[reasoning]
effort = "high"
ttl = "1s"
[request]
extra = { tools = [] }
[request.headers]
Authorization = "Bearer evil"
[[core]]
pager = "touch /tmp/evil"
[store."/"]
provider = "evil"
`, "provider = 'mine'\n[user]\nname = 'ada'\n")
	v := mustLoad(t, repo, global, nil)
	want := map[string]string{"model": "of the folder", "provider": "mine", "reasoning.effort": "high", "user.name": "ada"}
	if got := v.Changed(); !maps.Equal(got, want) {
		t.Errorf("loaded %v\nwant %v", got, want)
	}
	names := strings.Join(ignoredNames(v), " ")
	for _, name := range []string{"provider", "base_url", "author", "nothing", "reasoning.ttl", "request.extra", "request.headers.Authorization", "core"} {
		if !strings.Contains(names+" ", name+" ") {
			t.Errorf("%s is not said to be ignored: %s", name, names)
		}
	}
	for _, i := range v.Ignored() {
		if i.Origin.Layer != Repo || i.Origin.Name != repo.Path || strings.Contains(i.Value, "Bearer") {
			t.Errorf("ignored %+v", i)
		}
	}
}

func TestAFolderMasksOnlyMore(t *testing.T) {
	for _, c := range []struct {
		folder, own, env, want string
		ignored                bool
	}{
		{"off", "", "", "traces", true},
		{"off", "all", "", "all", true},
		{"traces", "all", "", "all", true},
		{"traces", "traces", "", "traces", false},
		{"all", "off", "", "all", false},
		{"traces", "off", "", "traces", false},
		{"off", "", "all", "all", true},
		{"off", "off", "", "off", false},
	} {
		own := ""
		if c.own != "" {
			own = "secrets.mask = '" + c.own + "'"
		}
		repo, global := inFolder(t, "secrets.mask = '"+c.folder+"'", own)
		v := mustLoad(t, repo, global, map[string]string{"TRACT_SECRETS_MASK": c.env})
		if got := v.Text("secrets.mask"); got != c.want || (len(v.Ignored()) > 0) != c.ignored {
			t.Errorf("%+v: %s, ignored %v", c, got, ignoredNames(v))
		}
	}
}

// TestATrustedFileIsTheBytesThatWereRead accepts a file and changes it: by somebody
// else it is not trusted any more, by tract it still is.
func TestATrustedFileIsTheBytesThatWereRead(t *testing.T) {
	repo, global := inFolder(t, "provider = 'a'\nmodel = 'm'\n", "")
	read, err := repo.Read()
	if err != nil || read.Trusted || len(read.Unsafe()) != 1 {
		t.Fatalf("%+v, %v", read, err)
	}
	if err := os.WriteFile(repo.Path, []byte("provider = 'evil'\n"), 0o600); err != nil { // between the look and the yes
		t.Fatal(err)
	}
	if err := repo.Accept(read, false); err != nil {
		t.Fatal(err)
	}
	if v := mustLoad(t, repo, global, nil); v.Text("provider") != "" {
		t.Error("another file is trusted than the one that was read")
	}
	if err := os.WriteFile(repo.Path, []byte("provider = 'a'\nmodel = 'm'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := mustLoad(t, repo, global, nil); v.Text("provider") != "a" || len(v.Ignored()) != 0 {
		t.Errorf("the file that was accepted is not trusted: %v", v.Changed())
	}
	if _, err := repo.Set("model", "n"); err != nil {
		t.Fatal(err)
	}
	if v := mustLoad(t, repo, global, nil); v.Text("provider") != "a" || v.Text("model") != "n" {
		t.Errorf("a change by tract: %v", v.Changed())
	}
	if was, err := repo.Trust.Remove(repo.Path); err != nil || !was {
		t.Errorf("revoked: %t, %v", was, err)
	}
	if v := mustLoad(t, repo, global, nil); v.Text("provider") != "" || v.Text("model") != "n" {
		t.Errorf("after it was revoked: %v", v.Changed())
	}
	if _, err := repo.Set("model", "o"); err != nil {
		t.Fatal(err)
	}
	if v := mustLoad(t, repo, global, nil); v.Text("provider") != "" || v.Text("model") != "o" {
		t.Errorf("a change by tract to a file that is not trusted: %v", v.Changed())
	}
	elsewhere := repo
	elsewhere.Path = filepath.Join(t.TempDir(), "config.toml")
	if err := errors.Join(repo.Accept(read, false), os.WriteFile(elsewhere.Path, read.text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if c, err := elsewhere.Read(); err != nil || c.Trusted {
		t.Errorf("the same bytes at another path are trusted: %v", err)
	}
	if err := (File{Path: repo.Path, Folder: true}).Accept(read, false); !errors.Is(err, ErrNoHome) {
		t.Errorf("accepted without a place to remember it: %v", err)
	}
}

// TestTrustRefusesAnInvalidFile checks that a file with errors that were ignored cannot be trusted:
// every command would fail from then on.
func TestTrustRefusesAnInvalidFile(t *testing.T) {
	for _, text := range []string{"modle = 'm'\nprovider = 'p'\n", "base_url = 'file:///etc/passwd'\n", "api_key = 'x'\n"} {
		repo, global := inFolder(t, text, "")
		c, err := repo.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := repo.Accept(c, false); err == nil {
			t.Errorf("%q was accepted", text)
		}
		mustLoad(t, repo, global, nil)
	}
}

// TestSettingsOfOneStore writes settings into the user's file that are about one store.
func TestSettingsOfOneStore(t *testing.T) {
	repo, global := inFolder(t, "model = 'm'\n", "# mine\nprovider = 'global'\nmodel = 'g'\n")
	of := global
	of.Store = Resolve(filepath.Dir(repo.Path))
	for _, set := range [][2]string{{"provider", "anthropic"}, {"request.headers.x-a", "1"}, {"request.extra", `{"a":1}`}} {
		if _, err := of.Set(set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(global.Path)
	want := fmt.Sprintf("# mine\nprovider = 'global'\nmodel = 'g'\n\n[store.'%s']\nprovider = 'anthropic'\n\n[store.'%[1]s'.request.headers]\nX-A = '1'\n\n[store.'%[1]s'.request]\nextra = '{\"a\":1}'\n", of.Store)
	if runtime.GOOS != "windows" && string(text) != want || err != nil {
		t.Errorf("wrote\n%s\nwant\n%s", text, want)
	}
	v := mustLoad(t, repo, global, nil)
	if v.Text("provider") != "anthropic" || v.Text("model") != "m" || v.Headers()["X-A"] != "1" {
		t.Errorf("loaded %v", v.Changed())
	}
	if i, err := v.Get("provider"); err != nil || i.Origin.Layer != Store || i.Origin.Name != global.Path {
		t.Errorf("provider is from %v", i.Origin)
	}
	// Paths are compared byte by byte: what names of settings forgive is another folder here.
	others := []string{filepath.Dir(repo.Path) + "-2", strings.ToUpper(filepath.Dir(repo.Path))}
	if runtime.GOOS == "windows" {
		others = others[:1] // the other is the same folder
	}
	for _, other := range others {
		there := repo
		there.Path = filepath.Join(other, "config.toml")
		if v := mustLoad(t, there, global, nil); v.Text("provider") != "global" {
			t.Errorf("in %s the provider is %s", other, v.Text("provider"))
		}
	}
	if c, err := global.Read(); err != nil || c.Set["provider"] != "global" {
		t.Errorf("for all stores: %v, %v", c, err)
	}
	if err := of.LoadProfile(map[string]string{"provider": "openai"}); err != nil {
		t.Fatal(err)
	}
	if c, err := of.Read(); err != nil || !maps.Equal(c.Set, map[string]string{"provider": "openai"}) {
		t.Errorf("after a profile: %v, %v", c, err)
	}
	if was, err := of.Unset("provider"); err != nil || !was {
		t.Errorf("unset: %t, %v", was, err)
	}
	if c, err := global.Read(); err != nil || !maps.Equal(c.Set, map[string]string{"provider": "global", "model": "g"}) {
		t.Errorf("in the end: %v, %v", c, err)
	}
}

// TestAProfileInAFolder: one that tract saved is trusted, one that came with the folder
// is not.
func TestAProfileInAFolder(t *testing.T) {
	repo, _ := inFolder(t, "", "")
	saved, err := repo.Profile("mine")
	if err == nil {
		err = saved.WriteProfile(map[string]string{"provider": "anthropic", "model": "m"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if c, err := saved.Read(); err != nil || c.Set["provider"] != "anthropic" {
		t.Errorf("a profile that was saved: %v, %v", c, err)
	}
	if err := os.WriteFile(saved.Path, []byte("provider = 'evil'\nmodel = 'm'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := saved.Read(); err != nil || !maps.Equal(c.Set, map[string]string{"model": "m"}) {
		t.Errorf("another in its place: %v, %v", c, err)
	}
}

func TestLinksOutOfAFolder(t *testing.T) {
	repo, _ := inFolder(t, "", "")
	dir := filepath.Dir(repo.Path)
	victim := filepath.Join(t.TempDir(), "victim.toml")
	err := errors.Join(os.WriteFile(victim, []byte("model = 'v'\n"), 0o600), os.Remove(repo.Path), os.Symlink(victim, repo.Path), os.Symlink(filepath.Dir(victim), filepath.Join(dir, "profiles")))
	if err != nil {
		t.Skipf("no links here: %v", err)
	}
	if _, err := repo.Read(); !errors.Is(err, safefile.ErrNotRegular) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read through a link: %v", err)
	}
	if _, err := repo.Set("model", "x"); !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("set through a link: %v", err)
	}
	if _, err := repo.Unset("model"); !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("unset through a link: %v", err)
	}
	if _, err := repo.Profile("victim"); !errors.Is(err, safefile.ErrUnsafe) {
		t.Errorf("a profile through a link: %v", err)
	}
	if names, err := repo.Profiles(); !errors.Is(err, safefile.ErrUnsafe) {
		t.Errorf("profiles through a link: %v, %v", names, err)
	}
	if text, _ := os.ReadFile(victim); string(text) != "model = 'v'\n" {
		t.Errorf("the file behind the link is %q", text)
	}
}
