package secrets

import "sync"

// rule is one kind of secret, and how it is found: by the prefixes of tokens, or by
// keywords, whose surroundings its function match examines.
type rule struct {
	Rule
	tokens   []format
	keywords []string
	match    func(t *searchedText, rule string, at, end int)
}

// format is a secret that begins with a prefix of its own.
type format struct {
	prefixes string // with blanks between them
	body     set
	min, max int // bytes after the prefix; max 0: no limit
	fits     func(body string) bool
}

// table has all rules, the most exact first: of two that find the same secret, the
// first names it.
var table = []rule{
	{
		Rule: Rule{"private-key", "a private key in PEM form, the whole block, or an age key"}, keywords: []string{"-----begin "}, match: (*searchedText).matchPrivateKey,
		tokens: []format{{prefixes: "AGE-SECRET-KEY-1", body: upper, min: 50}},
	},
	{Rule: Rule{"anthropic", "an API key of Anthropic"}, tokens: []format{{prefixes: "sk-ant-", body: token, min: 20, fits: isMixed}}},
	{Rule: Rule{"openrouter", "an API key of OpenRouter"}, tokens: []format{{prefixes: "sk-or-", body: token, min: 24, fits: isMixed}}},
	{Rule: Rule{"openai", "an API key of OpenAI, or of one that forms its keys alike"}, tokens: []format{
		{prefixes: "sk-proj- sk-svcacct- sk-admin- sk-None-", body: token, min: 20, fits: isMixed},
		{prefixes: "sk-", body: alnum, min: 32},
	}},
	{Rule: Rule{"google", "an API key, client secret or access token of Google"}, tokens: []format{
		{prefixes: "AIza", body: token, min: 35, max: 45},
		{prefixes: "GOCSPX-", body: token, min: 20, max: 60, fits: isMixed},
		{prefixes: "ya29.", body: dotted, min: 30},
	}},
	{Rule: Rule{"xai", "an API key of xAI"}, tokens: []format{{prefixes: "xai-", body: alnum, min: 40}}},
	{Rule: Rule{"groq", "an API key of Groq"}, tokens: []format{{prefixes: "gsk_", body: alnum, min: 32}}},
	{Rule: Rule{"huggingface", "a token of Hugging Face"}, tokens: []format{{prefixes: "hf_", body: alnum, min: 30}, {prefixes: "api_org_", body: alnum, min: 30}}},
	{Rule: Rule{"replicate", "a token of Replicate"}, tokens: []format{{prefixes: "r8_", body: alnum, min: 30}}},
	{Rule: Rule{"model-key", "a key of Perplexity, Cerebras, NVIDIA, Fireworks or Tavily"}, tokens: []format{
		{prefixes: "pplx- csk-", body: alnum, min: 32},
		{prefixes: "nvapi-", body: token, min: 40, fits: isMixed},
		{prefixes: "fw_", body: alnum, min: 22},
		{prefixes: "tvly-", body: token, min: 24, fits: isMixed},
	}},
	{Rule: Rule{"aws-id", "an access key id of AWS"}, keywords: []string{"akia", "asia", "abia", "acca"}, match: (*searchedText).matchAWSKeys},
	{Rule: Rule{ruleAWSSecret, "a secret access key of AWS, beside its name or its id"}},
	{Rule: Rule{ruleAzure, "an account key or a signature of Azure"}, tokens: []format{{prefixes: "sig=", body: escaped, min: 40, fits: isMixed}}},
	{Rule: Rule{"github", "a token of GitHub"}, tokens: []format{
		{prefixes: "ghp_ gho_ ghu_ ghs_ ghr_", body: alnum, min: 36},
		{prefixes: "github_pat_", body: word, min: 40},
	}},
	{Rule: Rule{"gitlab", "a token of GitLab"}, tokens: []format{
		{prefixes: "glpat- glrt-", body: dotted, min: 20, fits: isMixed},
		{prefixes: "gldt-", body: token, min: 20, fits: isMixed},
		{prefixes: "glptt-", body: alnum, min: 40},
	}},
	{Rule: Rule{"slack", "a token or a webhook of Slack"}, tokens: []format{
		{prefixes: "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe.xoxp- xapp-", body: token, min: 20, fits: isMixed},
		{prefixes: "hooks.slack.com/services/", body: b64, min: 30, fits: isMixed},
	}},
	{Rule: Rule{"stripe", "a secret, restricted or webhook key of Stripe"}, tokens: []format{
		{prefixes: "sk_live_ rk_live_ sk_test_ rk_test_", body: alnum, min: 16},
		{prefixes: "whsec_", body: b64, min: 24, fits: isMixed},
	}},
	{Rule: Rule{"sendgrid", "an API key of SendGrid"}, tokens: []format{{prefixes: "SG.", body: dotted, min: 60, max: 80, fits: isSendGridBody}}},
	{Rule: Rule{"npm", "a token of npm"}, tokens: []format{{prefixes: "npm_", body: alnum, min: 36}}},
	{Rule: Rule{"pypi", "a token of PyPI"}, tokens: []format{{prefixes: "pypi-", body: token, min: 50, fits: isMixed}}},
	{Rule: Rule{ruleTwilio, "an API key or an auth token of Twilio"}, tokens: []format{{prefixes: "SK", body: hexLower, min: 32, max: 32}}},
	{Rule: Rule{ruleTerraform, "a token of Terraform"}, keywords: []string{".atlasv1."}, match: (*searchedText).matchTerraformToken},
	{
		Rule: Rule{"service-token", "a token of a service that gives it a prefix: Docker, DigitalOcean, Shopify, Databricks, Vault, Linear, Atlassian, Telegram, ..."},
		tokens: []format{
			{prefixes: "dckr_pat_", body: token, min: 20, fits: isMixed},
			{prefixes: "dop_v1_ doo_v1_", body: hexLower, min: 64},
			{prefixes: "shpat_ shpss_ lin_api_", body: alnum, min: 32},
			{prefixes: "dapi", body: hexLower, min: 32, max: 34},
			{prefixes: "hvs.", body: token, min: 24, fits: isMixed},
			{prefixes: "ATATT3", body: header, min: 60, fits: isMixed},
			{prefixes: "figd_", body: token, min: 32, fits: isMixed},
			{prefixes: "sbp_", body: hexLower, min: 40},
			{prefixes: "glsa_", body: word, min: 32, fits: isMixed},
			{prefixes: "NRAK-", body: upper, min: 24},
			{prefixes: "PMAK-", body: token, min: 40, fits: isMixed},
			{prefixes: "pul-", body: hexLower, min: 40, max: 40},
			{prefixes: "ntn_", body: alnum, min: 40},
			{prefixes: "sntrys_", body: header, min: 40, fits: isMixed},
			{prefixes: "discord.com/api/webhooks/", body: b64, min: 17},
			{prefixes: "EAACEdEose0cBA", body: alnum, min: 20},
		}, keywords: []string{":aa"}, match: (*searchedText).matchTelegramToken,
	},
	{Rule: Rule{"jwt", "a JSON web token"}, keywords: []string{"eyj"}, match: (*searchedText).matchJWT},
	{Rule: Rule{"url-password", "the password in a URL, such as that of a database"}, keywords: []string{"://"}, match: (*searchedText).matchURLCredentials},
	{Rule: Rule{ruleCurl, "the password that curl is given beside a user"}, keywords: []string{"curl"}, match: (*searchedText).matchCurlCommand},
	{Rule: Rule{"netrc", "a password in a .netrc file"}, keywords: []string{"machine", "default login"}, match: (*searchedText).matchNetrcEntry},
	{Rule: Rule{ruleCookie, "a value in a Cookie or a Set-Cookie header"}, keywords: []string{"cookie", "set-cookie"}, match: (*searchedText).matchCookieHeader},
	{Rule: Rule{"auth-header", "what an Authorization header carries"}, keywords: []string{"authorization", "bearer "}, match: (*searchedText).matchAuthorization},
	{Rule: Rule{"api-key", "a random value that is named key, token or secret: in an assignment, a header, JSON or a URL"}, keywords: []string{
		"api_key", "apikey", "api-key", "access_key", "accesskey", "access-key", "private_key", "privatekey", "encryption_key", "signing_key",
		"auth_key", "authkey", "accountkey", "account_key", "subscription-key", "subscription_key", "secret", "token", "credential",
	}, match: (*searchedText).matchAssignment},
	{Rule: Rule{rulePassword, "a value that is named password"}, keywords: []string{"password", "passwd", "passphrase", "pwd"}, match: (*searchedText).matchAssignment},
}

// The rules that others find too.
const (
	ruleAWSSecret = "aws-secret"
	ruleAzure     = "azure"
	ruleCookie    = "cookie"
	ruleCurl      = "curl-user"
	ruleTerraform = "terraform"
	ruleTwilio    = "twilio"
	rulePassword  = "password"
)

// ranks is the place of each rule in the table.
var ranks = sync.OnceValue(func() map[string]int {
	ranks := map[string]int{}
	for i, r := range table {
		ranks[r.Name] = i
	}
	return ranks
})

// matchFunc returns the function that examines a place where a prefix of a format stands.
func (f format) matchFunc(rule, prefix string) func(t *searchedText, at, end int) {
	return func(t *searchedText, at, end int) {
		if t.text[at:end] != prefix || !t.mayBeginSecret(at) {
			return
		}
		stop := t.runEnd(f.body, end)
		if stop < len(t.text) && alnum.has(t.text[stop]) {
			return
		}
		for stop > end && t.text[stop-1] == '.' {
			stop--
		}
		body := t.text[end:stop]
		if len(body) < f.min || len(body) > maxToken || f.max > 0 && len(body) > f.max || f.fits != nil && !f.fits(body) || isExample(body) {
			return
		}
		t.addSpan(rule, at, stop)
	}
}

// maxToken is more bytes than a secret with a prefix has.
const maxToken = 8 << 10

// isSendGridBody reports whether a body has the two parts of a key of SendGrid.
func isSendGridBody(body string) bool {
	return len(body) > 22 && body[22] == '.' && isMixed(body)
}
