package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

// TestEveryKindThroughEveryCommand commits a pinned block of every kind and looks for its words
// in everything that shows, finds or sends blocks. Kinds that are added are held to it too.
func TestEveryKindThroughEveryCommand(t *testing.T) {
	const words = "xyzzy"
	server := content.Form{Dialect: "another"}.Wire()
	call := content.ToolCall{Wire: server, CallID: "c1", Name: "f", Arguments: `"` + words + `"`, Server: true}
	result := content.ToolResult{Wire: server, CallID: "c1", Text: words, Server: true}
	for _, k := range content.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			blocks, of := []content.Block{content.User("Go.")}, 1
			switch b := content.EmptyBlock(k).(type) {
			case content.Media:
				b.URL = "https://example.com/" + words
				blocks = append(blocks, b)
			case content.Native:
				blocks = append(blocks, content.Native{JSON: `{"type":"` + words + `"}`})
			case content.ToolCall:
				blocks = append(blocks, call, result)
			case content.ToolResult:
				blocks, of = append(blocks, call, result), 2
			default:
				b, err := content.WithText(b, words)
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, b)
			}
			dir := t.TempDir()
			in := []string{"--dir", dir}
			command(t, codeOK, append(in, "init")...)
			repo, err := tract.Open(t.Context(), filepath.Join(dir, folder), tract.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			main := repo.Branch("main")
			if !k.Traits().Text {
				if _, err := main.Append(t.Context(), []content.Block{content.Text{Of: k, Text: words}}, tract.AppendOptions{}); err == nil {
					t.Error("a text under the name of the kind was committed")
				}
			}
			ids, err := main.Append(t.Context(), blocks, tract.AppendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			id := ids[of].String()
			if _, err := main.Annotate(t.Context(), id, priority.Pinned, ""); err != nil {
				t.Fatal(err)
			}
			if err := repo.Close(); err != nil {
				t.Fatal(err)
			}

			command(t, codeOK, append(in, "fsck")...)
			for _, args := range [][]string{
				{"show", id},
				{"show", id, "--json"},
				{"show", id, "--raw"},
				{"log"},
				{"log", "--oneline"},
				{"log", "--json"},
				{"grep", words},
				{"diff", ids[0].String(), "HEAD"},
				{"blame"},
				{"compile"},
				{"compile", "--json"},
			} {
				if sent := args[0] == "diff" || args[0] == "blame" || args[0] == "compile"; sent && k.Traits().Private {
					continue // it is in no prompt
				}
				if out, _ := command(t, codeOK, append(args, in...)...); !strings.Contains(out, words) {
					t.Errorf("tract %s does not show it: %s", strings.Join(args, " "), out)
				}
			}
			if k.Traits().Private {
				return
			}
			body, _ := command(t, codeOK, append(in, "compile", "--for", "anthropic/m")...)
			said, _ := command(t, codeOK, append(in, "check", "--for", "anthropic/m")...)
			if strings.Contains(body, words) == strings.Contains(said, "block-not-sent "+" "+id[:7]) {
				t.Errorf("check says %s of the request\n%s", said, body)
			}
		})
	}
}
