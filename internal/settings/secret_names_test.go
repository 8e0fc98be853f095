package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryNameOfAKeyIsRefused: whatever a key is called, its name alone is enough, and
// what may be one in an address is not shown.
func TestEveryNameOfAKeyIsRefused(t *testing.T) {
	for _, name := range []string{
		"openai.key", "groq.keys", "mistral.auth", "accessKey", "aws_access_key", "private-key", "secret_key", "auth_token", "client_secret",
		"password", "db.passwd", "authorization", "credential", "request.headers.X-Session-Key", "request.headers.X-Auth", "request.headers.Set-Cookie",
	} {
		if _, err := (Values{}).With(name, "x"); !errors.As(err, new(*SecretError)) {
			t.Errorf("%s: %v, want a SecretError", name, err)
		}
	}
	if _, err := (Values{}).With("base_url", "https://hunter2@example.com/v1"); !errors.As(err, new(*SecretError)) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a user in an address: %v", err)
	}
}

// TestAFileOverTheLimitIsRefused: the settings before the limit do not count either.
func TestAFileOverTheLimitIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("model = 'm'\n"+strings.Repeat("#\n", maxFile/2)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []File{{Path: path}, {Path: path, Folder: true}} {
		if c, err := f.Read(); err == nil {
			t.Errorf("a file of more than %d bytes says %v", maxFile, c.Set)
		}
	}
}
