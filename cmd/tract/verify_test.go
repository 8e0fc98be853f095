package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// peculiar is the client of another program: it goes by the name of a known wire
// format and encodes in a way of its own.
type peculiar struct{ *providers.Client }

func (p peculiar) Encode(req *llm.Request) ([]byte, error) {
	body, err := p.Client.Encode(req)
	return append(body, '\n'), err
}

func (peculiar) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Blocks: []content.Block{content.Assistant("Because.")}}, nil
}

// TestVerifyReportsDifferentRequest is a story that no command line tells: every
// request that tract itself made can be made again.
func TestVerifyReportsDifferentRequest(t *testing.T) {
	dir := t.TempDir()
	client, err := providers.Open("openai", providers.Config{Model: "m", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := tract.Open(t.Context(), filepath.Join(dir, folder), tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Branch(firstBranch).Ask(t.Context(), peculiar{client}, "Why?", tract.AskOptions{NoStream: true}); err != nil {
		t.Fatal(err)
	}
	if err := repo.Close(); err != nil {
		t.Fatal(err)
	}
	out, said := command(t, codeNo, "verify", "--dir", dir)
	if !strings.Contains(out, "differs  the body has another hash\n1 request: 0 same, 1 differ") || said != "" {
		t.Errorf("stdout %q, stderr %q", out, said)
	}
	out, said = command(t, codeNo, "verify", "--all", "--json", "--dir", dir)
	if !strings.Contains(out, `"differs": 1`) || !strings.Contains(out, `"verdict": "differs"`) || said != "" {
		t.Errorf("stdout %s, stderr %q", out, said)
	}
	_, said = command(t, codeNo, "why", "HEAD", "--prompt", "--dir", dir)
	if !strings.Contains(said, "differs: the body has another hash") || !strings.Contains(said, "tract: hint: tract show ") {
		t.Errorf("stderr %q", said)
	}
}
