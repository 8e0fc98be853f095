package secrets

import (
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/secrets/secretstest"
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
	if n := len(secretstest.Plant(0)); n <= 40 {
		t.Errorf("%d secrets are planted, want more than 40", n)
	}
}

// TestEscapedSecretsAreFound puts every secret into JSON, and that into JSON, as a
// call in an answer in a log is.
func TestEscapedSecretsAreFound(t *testing.T) {
	slashes := strings.NewReplacer("/", `\/`, "=", `\u003d`, "+", `\u002B`)
	for _, p := range secretstest.Plant(7) {
		text := p.Text()
		for depth := 1; depth <= 3; depth++ {
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

// TestOtherSpellingsAreFound spells every secret as URLs, pages and programs do, as a whole
// and in part, and each of that in JSON.
func TestOtherSpellingsAreFound(t *testing.T) {
	each := func(format string) func(string) string {
		return func(text string) string {
			var b strings.Builder
			for _, c := range []byte(text) {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	path := func(s string) string { plain, _ := url.PathUnescape(s); return plain }
	quoted := func(s string) (plain string) {
		if err := json.Unmarshal([]byte(`"`+s+`"`), &plain); err != nil {
			t.Errorf("%v in %s", err, s)
		}
		return plain
	}
	for name, as := range map[string]struct{ spell, read func(string) string }{
		"percent": {escape, path}, "all percent": {each("%%%02x"), path}, "capitals": {each("%%%02X"), path},
		"page": {html.EscapeString, html.UnescapeString}, "decimal": {each("&#%d;"), html.UnescapeString}, "hex": {each("&#x%X;"), html.UnescapeString},
		"JSON": {each(`\u%04x`), quoted}, "program": {each(`\x%02x`), func(s string) string { return quoted(strings.ReplaceAll(s, `\x`, `\u00`)) }},
		"URL in a page": {func(s string) string { return each("&#%03d;")(escape(s)) }, func(s string) string { return path(html.UnescapeString(s)) }},
	} {
		for _, p := range secretstest.Plant(11) {
			want := Mask(p.Text())
			text := as.spell(p.Text())
			if got := as.read(Mask(text)); got != want {
				t.Errorf("%s, %s: %q, want %q", p.Rule, name, got, want)
			}
			b, _ := json.Marshal(text)
			if masked := Mask("[" + string(b) + "]"); as.read(quoted(masked[2:len(masked)-2])) != want {
				t.Errorf("%s, %s in JSON: %s, want %q", p.Rule, name, masked, want)
			}
		}
	}
}

// TestHide: a secret that is known is hidden in each spelling, and nothing else; JSON stays
// JSON.
func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		"a b/c":                       "a ***",
		`b%2fc &#98;/c b\/c %62%2Fc.`: "*** *** *** ***.",
		"b%2 c B%2Fc b&sol;":          "b%2 c B%2Fc b&sol;",
		`{"b\/c":["\u0062/c", 1]}`:    `{"***":["***", 1]}`,
		"":                            "",
	} {
		if got := ReplaceSecret(text, "b/c", "***"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := ReplaceSecret(`{"key":"null","param":null}`, "null", "***"); got != `{"key":"***","param":null}` {
		t.Error(got)
	}
}

// TestEachNameOfASecret has each name that a secret is known by, in an assignment, a member
// of JSON and a header: the names in the table are used, and none is gone unnoticed.
func TestEachNameOfASecret(t *testing.T) {
	const key, password = "q7Xk2mPz9Lw4Rt8s", "gr3y!owl"
	for name, secret := range map[string]string{
		"api_key": key, "apikey": key, "API-KEY": key, "access_key": key, "accessKey": key, "access-key": key, "private_key": key, "privateKey": key,
		"ENCRYPTION_KEY": key, "signing_key": key, "auth_key": key, "authKey": key, "AccountKey": key, "account_key": key,
		"ocp-apim-subscription-key": key, "subscription_key": key, "secret_key": key, "client_secret": key, "X-Auth-Token": key,
		"credential": key, "GOOGLE_CREDENTIALS": key, "TF_TOKEN_example_org": key,
		"db_password": password, "passwd": password, "passphrase": password, "PWD": password, "token_pass": password,
	} {
		for _, text := range []string{name + "=" + secret, `{"` + name + `": "` + secret + `"}`, name + ": " + secret + "\r\n"} {
			if masked := Mask(text); strings.Contains(masked, secret) {
				t.Errorf("%q became %q", text, masked)
			}
		}
	}
	for scheme, value := range map[string]string{
		"Bearer": "abcdefg1", "token": "abcdefg1", "ApiKey": "abcdefg1", "Api-Key": "abcdefg1", "Key": "abcdefg1", "Basic": "YWRhOmJ5cm9u",
	} {
		for _, text := range []string{"Authorization: " + scheme + " " + value, `{"authorization": "` + scheme + " " + value + `"}`} {
			if masked := Mask(text); strings.Contains(masked, value) {
				t.Errorf("%q became %q", text, masked)
			}
		}
	}
	if text := "use bearer " + key; strings.Contains(Mask(text), key) {
		t.Errorf("%q stays", text)
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
		"Cookie: theme=dark; lang=en; consent=accepted-all", "Set-Cookie: a=b; Domain=node1.Example2.org; Path=/api/v2/Users; Max-Age=31536000", "Set-Cookie: id=${SESSION_ID1}; Secure",
		"the cookie: set id=Abcdef123 in it", "cookie = makeCookie2(request1)", "Cookie: sessionid=<your-session-1>", "cookies: 12", `"cookie": "HttpOnly"`,
		"curl -u ada https://x", "curl -u user:password https://x", `curl -u "$USER:$PASS1" https://x`, "curl -u ada: https://x", "curl -o user:pa55word1 -d user:pa55word1 https://x",
		"curl https://x | docker run -u ada:pa55word1", "docker run -u node1:group22 x", "curl --user-agent ada:pa55word1 https://x", "curl -u <user>:<password> x", "curling -u ada:pa55word1",
		"machine learning: login page, password reset42", "machine example.com login user password password", "machine x login y password $PASSWORD1", "the machine has password s3cretpw1", "machine a login b password c",
		"token = \"xxxxxxxxxxxxxx.atlasv1.zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\"", "TF_TOKEN_app_terraform_io=$TOKEN", "module.atlasv1.release_2_of_the_registry", "TF_TOKEN_app_terraform_io=your-token-here-1234",
		"100%25 of a%20path%2Fto%2Fnowhere&amp;&lt;b&gt;&#169;", "password=&quot;&quot;", "key=%7B%7Btoken%7D%7D", "printf(\"%5d %2x %02x\", a, b)",
		"my-ghp_16C7e42F292c6912E7710c838347Ae178B4a", "x_AKIAZQ3DR7YPLK2MNB5X", "[masked:password:1a2b]", "password=[masked:password:1a2b]", "x-api-key: [masked:api-key:1a2b]", "https://u:[masked:url-password:00ff]@h/",
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

// TestMasksDistinguishKeys checks that a key has a mask of its own, and a short password only that
// of its rule.
func TestMasksDistinguishKeys(t *testing.T) {
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
		"%41", "%25", "%2525", "&#115;", "&amp;", "&", "%", "cookie: a=b; ", "cookie=a;", "cookie: \"", "curl -u ", "curl -b a=b; -b ", "curl \"-u\" a:", "machine a.b login c ", "machine ", "a.atlasv1.",
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
	f.Add("cookie: a=%22b1c2d3e4%22; &quot;b=&#x62;1c2d3e4; curl -b 'a=b1c2d3e4' -sSu a:b1c2d3e4 machine a.b login c password b1c2d3e4")
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

// TestMatcherFindsWordsAtEveryOffset checks that a word is found once, at any offset.
func TestMatcherFindsWordsAtEveryOffset(t *testing.T) {
	for n := range 12 {
		word, stops := "bearer token_key"[:4+n], 0
		a := newKeywordAutomaton([]keywordMatcher{{keyword: word, match: func(*searchedText, int, int) { stops++ }}})
		for _, size := range []int{256, 259} {
			for at := range size - len(word) + 1 {
				stops = 0
				a.scan(&searchedText{text: strings.Repeat(" ", at) + word + strings.Repeat(" ", size-at-len(word))})
				if stops != 1 {
					t.Fatalf("%q at %d of %d bytes is found %d times", word, at, size, stops)
				}
			}
		}
	}
}

// TestMatcherTableHasRoom checks that the classes and states of the words fit into the table: one
// too many would be taken for another.
func TestMatcherTableHasRoom(t *testing.T) {
	a := automaton()
	if classes, states := int(slices.Max(a.class[:]))+1, len(a.found); classes > 1<<classBits || states > 1<<16 {
		t.Errorf("%d classes of bytes, %d states", classes, states)
	}
}
