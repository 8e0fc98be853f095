package settings

import "strings"

// isSecretName reports whether a setting of that name would hold a credential.
func isSecretName(name string) bool {
	last := fold(name[strings.LastIndexByte(name, '.')+1:])
	for _, end := range []string{"apikey", "accesskey", "privatekey", "secretkey", "token", "secret", "password", "passwd", "authorization", "credential", "credentials", "bearer"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return last == "key" || last == "auth" || last == "keys"
}

// isSecretHeader reports whether an HTTP header carries a credential.
func isSecretHeader(name string) bool {
	folded := fold(name)
	return isSecretName(name) || strings.HasSuffix(folded, "key") || strings.HasSuffix(folded, "auth") || strings.Contains(folded, "cookie")
}

// variableFor returns the environment variable for the credential of the provider in a name;
// empty when the name has none.
func variableFor(name string) string {
	folded := fold(name)
	for _, p := range []string{"openai", "anthropic", "gemini", "deepseek", "groq", "openrouter", "mistral", "cohere", "cerebras", "moonshot", "xai"} {
		if strings.Contains(folded, p) {
			return strings.ToUpper(p) + "_API_KEY"
		}
	}
	switch {
	case strings.Contains(folded, "google"):
		return "GEMINI_API_KEY"
	case strings.Contains(folded, "claude"):
		return "ANTHROPIC_API_KEY"
	}
	return ""
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
