package secrets

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/secrets/secretstest"
)

var maskForm = regexp.MustCompile(`^\[masked:[a-z-]+:[0-9a-f]{4}\]$`)

// TestKnownFormatsAreMasked plants secrets of every known form, made by chance, and
// looks for anything that is left of them, and for anything else that is gone.
func TestKnownFormatsAreMasked(t *testing.T) {
	rules := map[string]bool{}
	for seed := range uint64(100) {
		for _, p := range secretstest.Plant(seed) {
			rules[p.Rule] = true
			masked := Mask(p.Text())
			mask := strings.TrimSuffix(strings.TrimPrefix(masked, p.Before), p.After)
			if !maskForm.MatchString(mask) || !strings.HasPrefix(mask, maskBegin+p.Rule+":") {
				t.Errorf("%s: %q became %q", p.Rule, p.Text(), masked)
			}
		}
	}
	for _, r := range Rules() {
		if !rules[r.Name] {
			t.Errorf("nothing is planted for rule %s", r.Name)
		}
	}
	if n := len(secretstest.Plant(0)); n < 30 {
		t.Errorf("%d secrets are planted, want at least 30", n)
	}
}

// TestEscapedSecretsAreFound puts every secret into JSON, and that into JSON, as a
// call in an answer in a log is.
func TestEscapedSecretsAreFound(t *testing.T) {
	slashes := strings.NewReplacer("/", `\/`, "=", `\u003d`, "+", `\u002B`)
	for _, p := range secretstest.Plant(7) {
		text := p.Text()
		for depth := 1; depth <= maxDepth; depth++ {
			b, err := json.Marshal(map[string]string{"said": text})
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
			if depth == 1 {
				text = slashes.Replace(text)
			}
			masked := Mask(text)
			if !json.Valid([]byte(masked)) {
				t.Errorf("%s, %d deep: %q is no JSON any more", p.Rule, depth, masked)
			}
			said := masked
			for range depth {
				var v map[string]string
				if err := json.Unmarshal([]byte(said), &v); err != nil {
					t.Fatalf("%s, %d deep: %v in %q", p.Rule, depth, err, masked)
				}
				said = v["said"]
			}
			if want := Mask(p.Text()); said != want {
				t.Errorf("%s, %d deep: %q, want %q", p.Rule, depth, said, want)
			}
		}
	}
}

// TestSecretsBetweenStrings has secrets that a program builds from several strings,
// and names and values that are two strings: JSON stays what it was around them.
func TestSecretsBetweenStrings(t *testing.T) {
	for text, want := range map[string]string{
		`{"password": "hunter2-xyz", "n": 1}`: `{"password": "[masked:password:5e88]", "n": 1}`,
		`["-----BEGIN EC PRIVATE KEY-----","MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49","-----END EC PRIVATE KEY-----", 7]`: `["[m]","[m]","[m]", 7]`,
		`{"signature": "sk-ant-api03-Zk3jR8sWq0pL5xYv2bNm", "token": 12345678901234567890}`:                                                       `{"signature": "sk-ant-api03-Zk3jR8sWq0pL5xYv2bNm", "token": 12345678901234567890}`,
		`{"sk-ant-api03-Zk3jR8sWq0pL5xYv2bNm": true}`:                                                                                             `{"[m]": true}`,
	} {
		masked := Mask(text)
		short := regexp.MustCompile(`\[masked:(private-key|anthropic):[0-9a-f]{4}\]`).ReplaceAllString(masked, "[m]")
		if short != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, masked, want)
		}
	}
}

// TestExamplesAreNoSecrets has what people write where a secret would be, and what
// only looks like one.
func TestExamplesAreNoSecrets(t *testing.T) {
	for _, text := range []string{
		"OPENAI_API_KEY=sk-...", "sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "export ANTHROPIC_API_KEY=YOUR_KEY", "api_key: YOUR_API_KEY_GOES_HERE_1234",
		"Authorization: Bearer ${TOKEN}", "Authorization: Bearer $OPENAI_API_KEY", "Authorization: Bearer <token>", `headers["Authorization"] = "Bearer " + token`,
		"aws_access_key_id = AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"password = os.environ['DB_PASSWORD1']", "password: process.env.DB_PASSWORD_2", "password = getpass.getpass()", "token := parseToken(request2)",
		"postgres://postgres:postgres@localhost:5432/app", "postgres://user:password@localhost/db", "https://user:pass@example.com", "mongodb://<user>:<password>@host",
		"max_tokens: 4096", `"input_tokens": 123456789012345678`, "token_count=1234567890abcdef1234", "secret_name: my-service-secret-v2-prod1", "token=us-east-1a-production-2",
		"the password is secret", "password: string;", `password: "password123"`, "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "task-sk-list-of-things-to-do-in-the-morning-and-at-noon", "Authorization: required", "basic authorization: see below",
		`"PWD="+dir+"/x1"`, "git@github.com:ada/tract.git", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "key=9f86d081884c7d659a2feaa0c55ad015",
		"commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "eyJub3QiOiJhIHRva2VuIn0.eyJub3QiOiJhIHRva2VuIn0.eyJub3QiOiJhIHRva2VuIn0", "db_password=db_password, key_password=self.key_password",
		"[masked:password:1a2b]", "password=[masked:password:1a2b]", "x-api-key: [masked:api-key:1a2b]", "https://u:[masked:url-password:00ff]@h/",
	} {
		for _, f := range Find(text) {
			t.Errorf("%q: %s takes %q for a secret", text, f.Rule, text[f.Start:f.End])
		}
	}
}

// TestFindingsSayWhere looks at the place, the line and the excerpt.
func TestFindingsSayWhere(t *testing.T) {
	key := "sk-ant-api03-Zk3jR8sWq0pL5xYv2bNm"
	list := Find("first\n\n\texport A=" + key + " # of ada\nlast: postgres://a:s3cr3tpw@h")
	if len(list) != 2 {
		t.Fatalf("%d findings: %+v", len(list), list)
	}
	mask := Mask(key)
	want := []Finding{
		{"anthropic", 17, 17 + len(key), 3, "export A=" + mask + " # of ada"},
		{"url-password", 79, 87, 4, "last: postgres://a:" + list[1].Excerpt[19:len(list[1].Excerpt)-2] + "@h"},
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%+v\nwant %+v", list[i], want[i])
		}
	}
}

// TestMasksTellKeysApartAndNothingElse: a key has a mask of its own, a short password
// has that of its rule.
func TestMasksTellKeysApartAndNothingElse(t *testing.T) {
	a, b := secretstest.Plant(1), secretstest.Plant(2)
	for i := range a {
		same := Mask(a[i].Text()) == Mask(b[i].Text())
		if short := len(a[i].Secret) < minDigest; short != same {
			t.Errorf("%s: two secrets of %d bytes have the same mask: %v", a[i].Rule, len(a[i].Secret), same)
		}
	}
}

// TestLongTexts has secrets at every part of texts that are looked at in windows, and
// texts made to be slow: were the time not in proportion to them, this would not end.
func TestLongTexts(t *testing.T) {
	key := "ghp_" + strings.Repeat("aB3dE6", 6)
	for _, at := range []int{0, window - overlap/2 - 20, window - 20, window - overlap - 1, 2*window - overlap} {
		text := strings.Repeat("x ", at/2) + key + strings.Repeat(" y", window)
		if list := Find(text); len(list) != 1 || text[list[0].Start:list[0].End] != key {
			t.Errorf("key at %d: %+v", at, list)
		}
	}
	for _, slow := range []string{
		"sk-", "sk-ant-", "password=", "password", "secret_", "token: \"", "eyJ", "-eyJ", "://", "://a:", "-----BEGIN PRIVATE KEY-----", "AKIA", `\`, `\\n`, `\u005c`,
		"authorization: bearer ", "\"", ":AA", "hf_.", "api_key=api_key", "a1b2c3d4",
	} {
		Mask(strings.Repeat(slow, (2<<20)/len(slow)))
		Mask(strings.Repeat(strings.Repeat(slow, (256<<10)/len(slow))+"\n", 8)) // each lane is in a run of its own
	}
}

// FuzzMask: a masked text has no secret that is found, JSON stays JSON, and findings
// lie in the text in order.
func FuzzMask(f *testing.F) {
	for _, p := range secretstest.Plant(3) {
		f.Add(p.Text())
		b, _ := json.Marshal(map[string]any{"password": p.Text(), "list": []string{p.Secret}})
		f.Add(string(b))
	}
	f.Add(`["password=\u005ca1b2c3d4", "\ud800sk-proj-", "\\"]`)
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, found := range Find(text) {
			if found.Start < at || found.End <= found.Start || found.End > len(text) {
				t.Fatalf("%+v after %d of %d bytes", found, at, len(text))
			}
			at = found.End
		}
		masked := Mask(text)
		if json.Valid([]byte(text)) && !json.Valid([]byte(masked)) {
			t.Fatalf("%q is no JSON any more: %q", text, masked)
		}
		if again := Mask(masked); again != masked {
			t.Fatalf("%q was masked twice: %q", masked, again)
		}
	})
}

// TestRealLogs counts what is taken for a secret in real sessions, which have been
// looked through by people: less than one in 100 KB.
func TestRealLogs(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	size, found := 0, 0
	err := filepath.WalkDir(filepath.Join(shared, "sessions"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(b)
		for _, f := range Find(string(b)) {
			found++
			t.Logf("%s:%d: %s: %s", path, f.Line, f.Rule, f.Excerpt)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d findings in %d bytes", found, size)
	if found > size/(100<<10) {
		t.Errorf("%d findings in %d KB: want at most one in 100 KB", found, size>>10)
	}
}

func ExampleMask() {
	fmt.Println(Mask("git clone https://ada:tr0ub4dor@git.example.org/x"))
	// Output: git clone https://ada:[masked:url-password:8770]@git.example.org/x
}

// BenchmarkMask masks 2 KB of prose and program that hold no secret.
func BenchmarkMask(b *testing.B) {
	text := strings.Repeat("The quick brown fox asks the task runner: is it a secret? He said \"yes\".\nfunc main() { return token }\n", 30)[:2048]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Mask(text)
	}
}

// TestWordsAtEveryPlace: of a long text four parts are looked at at once. A word is found
// wherever it stands, also across the end of a part, once.
func TestWordsAtEveryPlace(t *testing.T) {
	for n := range 12 {
		word, stops := "bearer token_key"[:4+n], 0
		a := newAnchors([]anchor{{word: word, look: func(*view, int, int) { stops++ }}})
		for _, size := range []int{minLane, minLane + 3, 2*minLane + 1} {
			for at := range size - len(word) + 1 {
				stops = 0
				a.scan(&view{text: strings.Repeat(" ", at) + word + strings.Repeat(" ", size-at-len(word))})
				if stops != 1 {
					t.Fatalf("%q at %d of %d bytes is found %d times", word, at, size, stops)
				}
			}
		}
	}
}

// TestWordsFitTheTable: a class or a state too many would be taken for another one.
func TestWordsFitTheTable(t *testing.T) {
	a := automaton()
	if classes, states := int(slices.Max(a.class[:]))+1, len(a.found); classes > 1<<classBits || states > len(a.next)>>classBits {
		t.Errorf("%d classes of bytes, %d states", classes, states)
	}
}
