// Package secretstest makes secrets for tests: of every form that package secrets
// knows, by chance, and keys of nobody.
package secretstest

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
)

// Planted is one secret and the text that it stands in.
type Planted struct{ Rule, Secret, Before, After string }

// Text is the secret in its text.
func (p Planted) Text() string { return p.Before + p.Secret + p.After }

const (
	lowerHex = "0123456789abcdef"
	letters  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alnums   = letters + "0123456789"
)

// Plant makes more than forty secrets, the same ones for one seed.
func Plant(seed uint64) []Planted {
	r := rand.New(rand.NewPCG(seed, 1))
	of := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	an := func(n int) string { return of(alnums, n) }
	b64 := func(n int) string { return of(alnums+"+/", n) }
	url64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	jwt := url64(`{"alg":"HS256","typ":"JWT"}`) + "." + url64(`{"sub":"`+an(12)+`"}`) + "." + an(43)
	var lines []string
	for range 12 {
		lines = append(lines, b64(64))
	}
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Join(lines, "\n") + "\n-----END RSA PRIVATE KEY-----"
	return []Planted{
		{"openai", "sk-" + an(20) + "T3BlbkFJ" + an(20), "OPENAI_API_KEY=", "\n"},
		{"openai", "sk-proj-" + of(alnums+"_-", 80) + "T3BlbkFJ" + an(40), "use ", " for now"},
		{"anthropic", "sk-ant-api03-" + of(alnums+"_-", 90) + an(3) + "AA", "key: ", "."},
		{"google", "AIza" + of(alnums+"_-", 35), "https://maps.example.org/?key=", "&q=x"},
		{"google", "GOCSPX-" + of(alnums+"_-", 27) + "x", "client secret ", "\n"},
		{"xai", "xai-" + an(80), "", ""},
		{"groq", "gsk_" + an(52), "export GROQ=", "\n"},
		{"huggingface", "hf_" + of(letters, 34), "login(", ")"},
		{"replicate", "r8_" + an(37), "'", "'"},
		{"openrouter", "sk-or-v1-" + of(lowerHex, 64), "\"", "\""},
		{"model-key", "pplx-" + an(48), "\t", ";"},
		{"api-key", an(15) + "3k9" + an(14), "MISTRAL_API_KEY=", "\n"},
		{"api-key", an(18) + "3k9" + an(19), `{"cohere_api_key": "`, `"}`},
		{"aws-id", "AKIA" + of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16), "aws_access_key_id = ", "\n"},
		{"aws-secret", b64(19) + "7xQ2" + b64(17), "aws_secret_access_key = ", "\n"},
		{"github", "ghp_" + an(36), "git clone https://", "@github.com/ada/x"},
		{"github", "github_pat_" + an(22) + "_" + an(59), "token ", ""},
		{"gitlab", "glpat-" + an(19) + "7", "PRIVATE-TOKEN: ", "\n"},
		{"slack", "xoxb-" + of("123456789", 12) + "-" + of("123456789", 13) + "-" + an(24), "slack says ", "\n"},
		{"stripe", "sk_live_" + an(24), "Stripe(\"", "\")"},
		{"stripe", "rk_live_" + an(99), "stripe ", "\n"},
		{"sendgrid", "SG." + an(22) + "." + an(43), "mail with ", " please"},
		{"npm", "npm_" + an(36), "//registry.npmjs.org/:_authToken=", "\n"},
		{"pypi", "pypi-AgEIcHlwaS5vcmc" + of(alnums+"_-", 140) + "1", "password = ", "\n"},
		{"twilio", "SK" + of(lowerHex, 32), "twilio ", "\n"},
		{"azure", b64(43) + "q7" + b64(41) + "==", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", ";EndpointSuffix=core.windows.net"},
		{"private-key", pem, "here:\n", "\nkeep it"},
		{"jwt", jwt, "cookie jwt ", "\n"},
		{"auth-header", an(13) + "4z9" + an(14), "Authorization: Bearer ", "\r\nHost: x"},
		{"auth-header", base64.StdEncoding.EncodeToString([]byte("ada:" + an(12))), "curl -H 'Authorization: Basic ", "' https://x"},
		{"api-key", of(lowerHex, 31) + "4", "x-api-key: ", "\n"},
		{"url-password", an(11) + "7", "postgres://ada:", "@db.internal:5432/app"},
		{"url-password", "Tr0ub4dor" + an(3), "redis://:", "@cache:6379"},
		{"password", "corr3ct!" + an(6), "Server=db;User Id=sa;Password=", ";Encrypt=yes"},
		{"password", "hunter2-" + an(4), `"password": "`, `"`},
		{"service-token", "hvs." + an(24) + "7", "vault ", "\n"},
		{"service-token", "dckr_pat_" + an(26) + "7", "docker login -p ", "\n"},
		{"cookie", "s%3A" + an(24) + "7." + b64(12), "Cookie: theme=dark; sid=", "; lang=en\r\nHost: x"},
		{"cookie", of(lowerHex, 23) + "7", `{"Set-Cookie": ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/", "id=`, `; Path=/api/v2; HttpOnly"]}`},
		{"cookie", an(15) + "7", "curl -b 'lang=en; id=", "' https://x"},
		{"curl-user", "gr3y!" + an(6), "curl -sSfu ada:", " https://x"},
		{"curl-user", an(11) + "7", "curl https://x \\\n  --user \"ada:", "\" \\\n  -d a=b"},
		{"curl-user", an(17) + "q7x3", `["curl", "-u", "`, `:", "https://api.x"]`},
		{"netrc", an(11) + "7", "machine git.example.org login ada password ", "\n"},
		{"netrc", "p;4ss&" + an(6), "machine git.example.org\n\tlogin ada\n\tpassword ", "\n\nmachine b.example.org\n"},
		{"netrc", "zw0lf&" + an(6), "default login ada password ", "\n"},
		{"terraform", an(13) + "7.atlasv1." + an(66) + "7", "terraform login says ", "\n"},
		{"terraform", an(13) + "7.atlasv1." + an(66) + "7", "credentials \"app.terraform.io\" {\n  token = \"", "\"\n}"},
		{"terraform", an(15) + "3k9" + an(14), "TF_TOKEN_app_terraform_io=", "\n"},
	}
}
