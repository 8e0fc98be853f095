package tract_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages of the module, the lowest layer first, and what each may import
// of the others: only packages of lower layers. A package must be in the list to exist.
// Paths are without that of the module; "" is the root package.
var layers = map[string][]string{
	// 0: encoding, rules of priority, similar names, file locks, files of untrusted folders, objects
	"internal/canonical": {},
	"priority":           {},
	"internal/demo":      {},
	"internal/suggest":   {},
	"internal/filelock":  {},
	"internal/hugepage":  {},
	"internal/lru":       {},
	"internal/spool":     {"internal/filelock"},
	"safefile":           {},
	"objects":            {"internal/canonical", "safefile"},

	// 1: blocks, secrets, and what the engines share
	"content":                      {"internal/canonical", "priority"},
	"internal/compression":         {},
	"internal/contentcoding":       {"internal/compression"},
	"internal/pack":                {"internal/hugepage", "objects"},
	"internal/postgrestest":        {},
	"objects/postgres":             {"internal/compression", "internal/pack", "objects"},
	"objects/objectstest":          {"objects"},
	"internal/faulttest":           {},
	"internal/secrets":             {},
	"internal/secrets/secretstest": {},

	// 1: the embedded engine and its parts
	"objects/bolt": {
		"internal/canonical", "internal/compression", "internal/filelock", "internal/hugepage", "internal/pack", "objects", "safefile",
		"objects/bolt/internal/check", "objects/bolt/internal/checksum", "objects/bolt/internal/index",
		"objects/bolt/internal/journal", "objects/bolt/internal/memtable", "objects/bolt/internal/page", "objects/bolt/internal/salvage",
	},
	"objects/bolt/internal/check":    {"objects/bolt/internal/page"},
	"objects/bolt/internal/salvage":  {"objects/bolt/internal/journal", "objects/bolt/internal/page"},
	"objects/bolt/internal/checksum": {},
	"objects/bolt/internal/page":     {"internal/hugepage", "objects"},
	"objects/bolt/internal/index":    {"internal/canonical", "objects/bolt/internal/checksum"},
	"objects/bolt/internal/journal":  {"internal/canonical", "objects", "objects/bolt/internal/checksum"},
	"objects/bolt/internal/memtable": {"objects/bolt/internal/journal"},

	// 2: requests to models, commits, settings
	"internal/llm/rawjson": {},
	"llm":                  {"content", "internal/llm/rawjson"},
	// 2: what the dialects share, and a package for each wire family
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

	// 3: providers, prompts, revisions
	"llm/providers": {
		"content", "llm", "internal/llm/anthropic", "internal/llm/bedrock", "internal/llm/cohere", "internal/llm/google", "internal/llm/ollama", "internal/llm/openai",
		"internal/llm/rawjson", "internal/llm/wire", "internal/suggest", "internal/secrets",
	},
	"llm/llmtest":   {"content", "llm", "internal/llm/rawjson"},
	"compile":       {"internal/canonical", "internal/hugepage", "internal/lru", "commit", "content", "objects", "priority"},
	"internal/refs": {"commit", "content", "internal/suggest", "objects"},

	// 4: walks and writes of histories, comparisons, bodies of requests, logs of other programs
	"internal/history":     {"commit", "compile", "content", "llm", "objects", "internal/refs", "internal/secrets"},
	"internal/reconcile":   {"content", "internal/llm/rawjson", "objects"},
	"internal/requestbody": {"compile", "internal/canonical", "internal/compression", "internal/lru", "objects", "internal/refs"},
	"diff":                 {"commit", "compile", "content", "objects"},
	"internal/importers":   {"content", "llm", "llm/providers", "internal/llm/rawjson", "internal/refs"},

	// 5: conversations
	"": {"commit", "compile", "content", "diff", "internal/history", "internal/reconcile", "internal/requestbody", "llm", "objects", "objects/bolt", "priority", "internal/refs", "safefile", "internal/secrets", "internal/settings"},

	// 6: questions about histories, upkeep of stores
	"inspect":  {"", "commit", "compile", "content", "diff", "internal/history", "llm", "objects", "priority", "internal/refs", "internal/requestbody"},
	"maintain": {"", "commit", "compile", "content", "internal/filelock", "internal/history", "objects", "priority", "internal/refs", "internal/requestbody", "safefile", "internal/secrets", "internal/spool"},

	// 7: printing
	"format": {"", "commit", "compile", "content", "diff", "inspect", "llm", "internal/llm/rawjson", "maintain", "objects", "priority", "internal/refs", "internal/settings"},

	// 8: recording, the program
	"internal/proxy":        {"llm/providers"},
	"recorder":              {"", "commit", "compile", "content", "internal/contentcoding", "internal/history", "internal/lru", "internal/reconcile", "llm", "llm/providers", "internal/llm/rawjson", "objects", "internal/refs", "internal/requestbody", "internal/secrets", "internal/spool"},
	"internal/fakeprovider": {"internal/contentcoding"},
	"cmd/tract": {
		"", "commit", "compile", "content", "diff", "format", "internal/importers", "internal/demo", "inspect", "internal/proxy", "llm", "llm/providers", "internal/llm/rawjson",
		"internal/suggest", "maintain", "objects", "objects/postgres", "priority", "recorder", "internal/refs", "internal/requestbody", "safefile", "internal/secrets", "internal/settings",
	},
}

// owners lists the outside modules, and the one package that imports each.
var owners = map[string]string{
	"github.com/zeebo/blake3":              "objects",
	"golang.org/x/text":                    "objects",
	"golang.org/x/sys":                     "objects/bolt",
	"google.golang.org/protobuf":           "internal/canonical", // in tests
	"go.etcd.io/bbolt":                     "objects/bolt",
	"github.com/jackc/pgx/v5":              "objects/postgres",
	"github.com/klauspost/compress":        "internal/compression",
	"github.com/andybalholm/brotli":        "internal/contentcoding",
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

// subjects are packages that do not import one another: what one needs of another comes as a
// parameter from the caller. Only format imports others, because it prints their results.
var subjects = []string{"inspect", "maintain", "recorder", "format", "internal/importers", "internal/proxy"}

// nested lists the modules below this one, what each may import of this module, and the
// outside modules that it exists for, which this module must not need.
var nested = map[string]struct{ imports, needs []string }{
	"bench": {
		imports: []string{"", "commit", "content", "internal/postgrestest", "internal/proxy", "llm", "llm/providers", "maintain", "objects", "objects/postgres", "recorder"},
		needs:   []string{"github.com/mattn/go-sqlite3"},
	},
	"recorder/sdktest": {
		imports: []string{"", "content", "llm", "llm/llmtest", "llm/providers", "recorder"},
		needs:   []string{"github.com/openai/openai-go/v3", "github.com/anthropics/anthropic-sdk-go"},
	},
}

// everywhere lists the outside modules that tests of any package may import.
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

func TestLayers(t *testing.T) {
	module, packages := list(t)
	for _, p := range packages {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, known := layers[name]
		if !known {
			t.Errorf("package %q is in no layer: add it to the table in arch_test.go", name)
			continue
		}
		for _, imported := range ofModule(module, p.Imports) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%q imports %q, which the table in arch_test.go does not allow", name, imported)
			}
		}
	}
	for _, subject := range subjects {
		for _, other := range subjects {
			if subject != "format" && slices.Contains(layers[subject], other) {
				t.Errorf("the table allows %q to import %q: these subjects must not depend on one another", subject, other)
			}
		}
	}
}

// ofModule returns the import paths of a module, without its own path.
func ofModule(module string, imports []string) (paths []string) {
	for _, imported := range imports {
		if rest, ours := strings.CutPrefix(imported, module); ours && (rest == "" || rest[0] == '/') {
			paths = append(paths, strings.TrimPrefix(rest, "/"))
		}
	}
	return paths
}

// TestLintersHoldTheSameLayers compares the rules of depguard, which editors show, with the
// table.
func TestLintersHoldTheSameLayers(t *testing.T) {
	config, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(config), "    depguard:\n")
	covered := map[string]bool{}
	for _, rule := range strings.Split(rules, "list-mode: strict")[1:] {
		_, path, _ := strings.Cut(rule, `"${base-path}/`)
		path, _, found := strings.Cut(path, `*.go"`)
		if path = strings.TrimSuffix(path, "/"); !found || strings.Contains(path, "*") {
			continue // a rule for several packages
		}
		covered[path] = true
		for line := range strings.Lines(rule) {
			imported, ours := strings.CutPrefix(strings.TrimSpace(line), "- github.com/tract-vcs/tract")
			imported, whole := strings.CutSuffix(strings.TrimPrefix(imported, "/"), "$")
			if ours && whole && !slices.Contains(layers[path], imported) {
				t.Errorf(".golangci.yml allows %q to import %q, and arch_test.go does not", path, imported)
			}
		}
		for _, allowed := range layers[path] {
			if line := strings.TrimSuffix("github.com/tract-vcs/tract/"+allowed, "/"); !strings.Contains(rule, "- "+line+"$\n") && !strings.Contains(rule, "- github.com/tract-vcs/tract/"+path+"/internal\n") {
				t.Errorf("arch_test.go allows %q to import %q, and .golangci.yml does not", path, allowed)
			}
		}
	}
	if len(covered) < len(layers)/2 {
		t.Errorf("only %d rules were found", len(covered))
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

func TestNestedModules(t *testing.T) {
	ours, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range tree(t, "go.mod") {
		folder := filepath.ToSlash(filepath.Dir(path))
		if folder == "." {
			continue
		}
		module, known := nested[folder]
		if !known {
			t.Errorf("module %s is not in the table in arch_test.go", folder)
		}
		for _, needed := range module.needs {
			if !strings.Contains(text, needed) || strings.Contains(string(ours), needed) {
				t.Errorf("%s must need %s, and this module must not", folder, needed)
			}
		}
		for file, code := range tree(t, ".go") {
			if !strings.HasPrefix(filepath.ToSlash(file), folder+"/") {
				continue
			}
			for _, m := range regexp.MustCompile(`"github\.com/tract-vcs/tract/?([^"\s]*)"`).FindAllStringSubmatch(code, -1) {
				if imported := m[1]; !slices.Contains(module.imports, imported) && imported != strings.TrimPrefix(folder, "/") && !strings.HasPrefix(imported, folder) {
					t.Errorf("%s imports %q, which the table in arch_test.go does not allow", file, imported)
				}
			}
		}
	}
}

// TestLibraryUsesNoEnvironmentOrTerminal keeps what belongs to a program out of the library:
// the environment, the terminal, the home directory, and the network, except where a
// package is about it.
func TestLibraryUsesNoEnvironmentOrTerminal(t *testing.T) {
	module, packages := list(t)
	forbidden := map[string][]string{
		"os.Getenv(":    {"cmd/tract", "internal/faulttest"}, // only tests import faulttest
		"os.LookupEnv(": {"cmd/tract"}, "os.UserHomeDir(": {"cmd/tract"},
		"os.Stdout": {"cmd/tract"}, "os.Stderr": {"cmd/tract"}, "os.Exit(": {"cmd/tract"},
		`"net/http"`: {
			"cmd/tract", "internal/demo", "internal/fakeprovider", "internal/proxy", "llm/providers", "llm/llmtest", "recorder",
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
