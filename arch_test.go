package tract_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floors says what each package of the module may import of the others: only
// what stands below it. A package that is not here may not exist. Package paths
// are without the module's; "" is the facade.
var floors = map[string][]string{
	// 0: who goes in, and why | which name was meant | locks on files | files of folders that are not trusted | bytes under their hash
	"internal/canonical": {},
	"priority":           {},
	"internal/suggest":   {},
	"internal/filelock":  {},
	"safefile":           {},
	"objects":            {"internal/canonical", "safefile"},

	// 1: words of a conversation, and what is to be kept out of them | engines
	"content":                      {"internal/canonical", "priority"},
	"internal/compression":         {},
	"internal/idtable":             {"objects"},
	"internal/pack":                {"objects"},
	"objects/postgres":             {"internal/compression", "internal/idtable", "internal/pack", "objects"},
	"objects/objectstest":          {"objects"},
	"internal/faulttest":           {},
	"internal/secrets":             {},
	"internal/secrets/secretstest": {},

	// 1: the embedded engine and its parts
	"objects/bolt": {
		"internal/canonical", "internal/compression", "internal/filelock", "internal/pack", "objects", "safefile",
		"objects/bolt/internal/checksum", "objects/bolt/internal/journal", "objects/bolt/internal/memtable", "objects/bolt/internal/page",
	},
	"objects/bolt/internal/checksum": {},
	"objects/bolt/internal/page":     {"objects"},
	"objects/bolt/internal/journal":  {"internal/canonical", "objects", "objects/bolt/internal/checksum"},
	"objects/bolt/internal/memtable": {"objects/bolt/internal/journal"},

	// 2: neutral talk with models | the chain
	"internal/llm/rawjson": {},
	"llm":                  {"content", "internal/llm/rawjson"},
	// what the dialects share: bodies cut into JSON texts, think tags, the seam | one package per wire family
	"internal/llm/framing":             {"llm", "internal/llm/rawjson"},
	"internal/llm/framing/framingtest": {},
	"internal/llm/thinktags":           {},
	"internal/llm/wire":                {"content", "llm", "internal/llm/framing", "internal/llm/rawjson"},
	"internal/llm/openai":              {"content", "llm", "internal/llm/rawjson", "internal/llm/thinktags", "internal/llm/wire"},
	"internal/llm/anthropic":           {"content", "llm", "internal/llm/rawjson", "internal/llm/wire"},
	"internal/llm/google":              {"content", "llm", "internal/llm/rawjson", "internal/llm/wire"},
	"internal/llm/bedrock":             {"content", "llm", "internal/llm/anthropic", "internal/llm/rawjson", "internal/llm/wire"}, // Claude on Bedrock
	"internal/llm/cohere":              {"content", "llm", "internal/llm/openai", "internal/llm/rawjson", "internal/llm/wire"},    // messages of users and tools
	"internal/llm/ollama":              {"content", "llm", "internal/llm/rawjson", "internal/llm/thinktags", "internal/llm/wire"},
	"commit":                           {"internal/canonical", "content", "objects", "priority"},
	"internal/settings":                {"internal/suggest", "priority", "safefile", "internal/secrets"},

	// 3: model dialects | the prompt | names people type
	"llm/providers": {
		"content", "llm", "internal/llm/anthropic", "internal/llm/bedrock", "internal/llm/cohere", "internal/llm/google", "internal/llm/ollama", "internal/llm/openai",
		"internal/llm/rawjson", "internal/llm/wire", "internal/suggest", "internal/secrets",
	},
	"llm/llmtest":   {"content", "llm", "internal/llm/rawjson"},
	"compile":       {"internal/canonical", "commit", "content", "objects", "priority"},
	"internal/refs": {"commit", "content", "internal/suggest", "objects"},

	// 4: two prompts compared | what other programs kept | walks over all histories | a whole conversation compared with a history
	"internal/history":   {"commit", "compile", "content", "llm", "objects", "internal/refs", "internal/secrets"},
	"internal/reconcile": {"content", "internal/llm/rawjson", "objects"},
	"diff":               {"commit", "compile", "content", "objects"},
	"internal/importers": {"content", "llm", "llm/providers", "internal/llm/rawjson"},

	// 5: the facade
	"": {"commit", "compile", "content", "diff", "internal/history", "internal/reconcile", "llm", "objects", "objects/bolt", "priority", "internal/refs", "safefile", "internal/secrets", "internal/settings"},

	// 6: questions about a history | upkeep of stores
	"inspect":  {"", "commit", "compile", "content", "diff", "internal/history", "llm", "objects", "priority", "internal/refs"},
	"maintain": {"", "commit", "compile", "content", "internal/filelock", "internal/history", "internal/idtable", "objects", "priority", "internal/refs", "safefile", "internal/secrets"},

	// 7: results for people and programs
	"format": {"", "commit", "compile", "content", "diff", "inspect", "llm", "internal/llm/rawjson", "maintain", "objects", "priority", "internal/refs", "internal/settings"},

	// 8: what goes over the wire is committed | flags, exit codes, hints
	"internal/proxy": {"llm/providers"},
	"recorder":       {"", "commit", "content", "internal/compression", "internal/history", "internal/reconcile", "llm", "llm/providers", "internal/llm/rawjson", "objects", "internal/refs", "internal/secrets"},
	"cmd/tract": {
		"", "commit", "compile", "content", "diff", "format", "internal/importers", "inspect", "llm", "llm/llmtest", "llm/providers", "internal/llm/rawjson",
		"internal/suggest", "maintain", "objects", "objects/postgres", "priority", "internal/refs", "safefile", "internal/secrets", "internal/settings",
	},
}

// owners says which package imports an outside module: exactly one.
var owners = map[string]string{
	"github.com/zeebo/blake3":              "objects",
	"golang.org/x/text":                    "objects",
	"golang.org/x/sys":                     "objects/bolt",
	"google.golang.org/protobuf":           "internal/canonical", // in tests
	"go.etcd.io/bbolt":                     "objects/bolt",
	"github.com/jackc/pgx/v5":              "objects/postgres",
	"github.com/klauspost/compress":        "internal/compression",
	"github.com/andybalholm/brotli":        "recorder",
	"github.com/anishathalye/porcupine":    "objects/bolt", // in tests
	"github.com/pelletier/go-toml/v2":      "internal/settings",
	"github.com/sergi/go-diff":             "diff",
	"github.com/fatih/color":               "format",
	"github.com/clipperhouse/displaywidth": "format",
	"github.com/spf13/cobra":               "cmd/tract",
	"github.com/spf13/pflag":               "cmd/tract",
	"golang.org/x/term":                    "cmd/tract",
	"github.com/rogpeppe/go-internal":      "cmd/tract", // in tests
}

// nested says which folders are modules of their own, so that the program's go.mod
// is free of what they need, and which modules that is.
var nested = map[string][]string{
	"bench":            {"github.com/mattn/go-sqlite3"},
	"recorder/sdktest": {"github.com/openai/openai-go/v3", "github.com/anthropics/anthropic-sdk-go"},
}

// everywhere is the modules that tests of any package may import.
var everywhere = []string{"pgregory.net/rapid"}

type goPackage struct {
	ImportPath, Dir           string
	Imports                   []string
	TestImports, XTestImports []string
	Module                    struct{ Path string }
}

func list(t *testing.T) (module string, packages []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,Module", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		module, packages = p.Module.Path, append(packages, p)
	}
	return module, packages
}

func TestFloors(t *testing.T) {
	module, packages := list(t)
	for _, p := range packages {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		below, known := floors[name]
		if !known {
			t.Errorf("package %q stands on no floor: put it into the table, or elsewhere", name)
			continue
		}
		for _, imported := range p.Imports {
			if rest, ours := strings.CutPrefix(imported, module); ours {
				if rest = strings.TrimPrefix(rest, "/"); !slices.Contains(below, rest) {
					t.Errorf("%q imports %q, which does not stand below it", name, rest)
				}
			}
		}
	}
}

func TestEveryOutsideModuleHasOneOwner(t *testing.T) {
	module, packages := list(t)
	for _, p := range packages {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || imported == module || strings.HasPrefix(imported, module+"/") {
				continue
			}
			outside := func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }
			if slices.ContainsFunc(everywhere, outside) && !slices.Contains(p.Imports, imported) {
				continue
			}
			owned := false
			for m, owner := range owners {
				owned = owned || outside(m) && owner == name
			}
			if !owned {
				t.Errorf("%q imports %q, which it does not own", name, imported)
			}
		}
	}
}

func TestNestedModulesKeepWhatTheyNeedToThemselves(t *testing.T) {
	ours, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" && path != "go.mod" {
			found = append(found, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(nested)); !slices.Equal(found, want) {
		t.Errorf("modules of their own: %q, want %q: put new ones into the table", found, want)
	}
	for _, folder := range found {
		theirs, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, needed := range nested[folder] {
			if !strings.Contains(string(theirs), needed) || strings.Contains(string(ours), needed) {
				t.Errorf("%s is there to need %s, and the program is not to", folder, needed)
			}
		}
	}
}

// TestLowRoomsKnowNoMachine keeps what belongs to a program out of the library:
// the environment, the terminal, the home directory, and, where it has no
// business, the network.
func TestLowRoomsKnowNoMachine(t *testing.T) {
	module, packages := list(t)
	forbidden := map[string][]string{
		"os.Getenv(": {"cmd/tract"}, "os.LookupEnv(": {"cmd/tract"}, "os.UserHomeDir(": {"cmd/tract"},
		"os.Stdout": {"cmd/tract"}, "os.Stderr": {"cmd/tract"}, "os.Exit(": {"cmd/tract"},
		`"net/http"`: {
			"cmd/tract", "internal/proxy", "llm/providers", "llm/llmtest", "recorder",
			"internal/llm/anthropic", "internal/llm/bedrock", "internal/llm/google", "internal/llm/openai", "internal/llm/wire", // headers
		},
	}
	for _, p := range packages {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for what, allowed := range forbidden {
				if strings.Contains(string(code), what) && !slices.Contains(allowed, name) {
					t.Errorf("%s uses %s", file, what)
				}
			}
		}
	}
}
