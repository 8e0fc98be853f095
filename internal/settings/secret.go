package settings

import "strings"

// isSecretName reports whether a setting of that name would hold a credential.
func isSecretName(name string) bool {
	last := foldName(name[strings.LastIndexByte(name, '.')+1:])
	for _, end := range []string{"apikey", "accesskey", "privatekey", "secretkey", "token", "secret", "password", "passwd", "authorization", "credential", "credentials", "bearer"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return last == "key" || last == "auth" || last == "keys"
}

// isSecretHeader reports whether an HTTP header carries a credential.
func isSecretHeader(name string) bool {
	folded := foldName(name)
	return isSecretName(name) || strings.HasSuffix(folded, "key") || strings.HasSuffix(folded, "auth") || strings.Contains(folded, "cookie")
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
