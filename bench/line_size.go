package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/llm/providers"
)

// sizesFrom is the shortest history whose size has a goal: below, what every store
// has counts most.
const sizesFrom = 10_000

// sizesOnDisk measures the bytes of a history, as it was written and after gc,
// against other ways to keep the same records: with their ids, times and roles.
func (b *bench) sizesOnDisk(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		if err := b.sizeOnDisk(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) sizeOnDisk(ctx context.Context, h *history) error {
	real := h.size >= sizesFrom
	before, err := folderSize(h.store())
	if err != nil {
		return err
	}
	b.hold(named("bytes before gc", h.size), atMost(1.7, 1.2).only(real), megabytes("", before), megabytes("the text", h.text))
	if !b.hasProgram("bytes after gc") {
		return nil
	}
	after, err := h.packedSize(ctx)
	if err != nil {
		return err
	}
	ours, name := megabytes("", after), named("bytes after gc", h.size)
	b.hold(name+", to the text", goal{}, ours, megabytes("the text", h.text))
	if n, err := b.zstdSize(ctx, h.full); err != nil {
		return err
	} else if n > 0 {
		b.hold(name+", to JSON lines", atMost(1.4, 1.2).only(real), ours, megabytes("JSON lines in zstd -3", n))
	}
	if err := b.gitSize(ctx, h, name, ours); err != nil {
		return err
	}
	if b.sqlite == nil {
		return nil
	}
	if err := b.sqliteOf(h); err != nil {
		return err
	}
	a, err := b.sqlite.do(sqliteRequest{Do: "pack"})
	if err != nil {
		return err
	}
	b.hold(name+", to SQLite", atMost(0.5, 0.4).only(real), ours, megabytes("SQLite after VACUUM", a.Bytes))
	return nil
}

func megabytes(name string, n int64) figure { return one(name, "MB", float64(n)/1e6) }

// zstdSize is the size of a file in zstd -3; 0 where there is no zstd.
func (b *bench) zstdSize(ctx context.Context, path string) (int64, error) {
	if !b.has("zstd", "JSON lines in zstd -3") {
		return 0, nil
	}
	packed := path + ".zst"
	if err := quietly(exec.CommandContext(ctx, "zstd", "-q", "-f", "-3", path, "-o", packed)); err != nil {
		return 0, err
	}
	info, err := os.Stat(packed)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// gitSize holds a size against git's after a repack. Beyond a length that takes
// longer than all else together.
func (b *bench) gitSize(ctx context.Context, h *history, name string, ours figure) error {
	if h.size > hundredThousand {
		b.missing(name+", to git", "git repack of so many takes too long")
		return nil
	}
	if !b.has("git", name+", to git") {
		return nil
	}
	g, err := b.git(ctx, h.size)
	if err != nil {
		return err
	}
	small := *g
	small.dir = strings.TrimSuffix(g.dir, ".git") + "-repacked.git"
	if err := os.CopyFS(small.dir, os.DirFS(g.dir)); err != nil {
		return err
	}
	if err := quietly(small.command(ctx, "repack", "-a", "-d", "-f", "-q")); err != nil {
		return err
	}
	n, err := folderSize(filepath.Join(small.dir, "objects"))
	if err != nil {
		return err
	}
	b.hold(name+", to git", atMost(0.6, 0.5).only(h.size >= sizesFrom), ours, megabytes("git, repacked", n))
	return os.RemoveAll(small.dir)
}

// turns is how long the conversation is that is kept whole.
const turns = 200

// conversation measures the bytes of a conversation with a model, with all that
// proves what was sent, against its own words.
func (b *bench) conversation(ctx context.Context) error {
	h := &history{size: turns, place: filepath.Join(b.dir, "conversation"), bench: b}
	if err := os.Mkdir(h.place, 0o700); err != nil {
		return err
	}
	if err := h.converse(ctx); err != nil {
		return err
	}
	before, err := folderSize(h.store())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("bytes of a conversation of %d turns", turns)
	b.hold(name+" before gc", atMost(1.7, 1.2), megabytes("", before), megabytes("its words", h.text))
	if !b.hasProgram(name + " after gc") {
		return nil
	}
	after, err := h.packedSize(ctx)
	if err != nil {
		return err
	}
	b.hold(name+" after gc", atMost(0.75, 0.6), megabytes("", after), megabytes("its words", h.text))
	return nil
}

// converse makes a conversation as a program with its own transport has it: the
// answers are streams that think first.
func (h *history) converse(ctx context.Context) (err error) {
	target, err := providers.Open("deepseek", providers.Config{Model: "deepseek-reasoner"})
	if err != nil {
		return err
	}
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	branch := repo.Branch("main")
	for n := range h.size {
		said := [3]string{}
		for i := range said {
			said[i] = message(historySeed, 3*n+i)
			h.text += int64(len(said[i]))
		}
		if _, err := branch.AppendUser(ctx, said[0]); err != nil {
			return err
		}
		x, err := branch.Prepare(ctx, target, tract.PrepareOptions{})
		if err != nil {
			return err
		}
		if _, err := branch.Accept(ctx, x, bytes.NewReader(thinkingStream(n, said[1], said[2]))); err != nil {
			return err
		}
	}
	return nil
}

// thinkingStream is an answer of so many words.
func thinkingStream(n int, thought, answer string) []byte {
	s := &stream{api: "chat", provider: "deepseek"}
	for _, part := range []struct{ member, text string }{{"reasoning_content", thought}, {"content", answer}} {
		for word := range strings.SplitAfterSeq(part.text, " ") {
			s.event("", `{"id":"answer-%d","object":"chat.completion.chunk","created":%d,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{%q:%q},"finish_reason":null}]}`,
				n, firstTime/1000+n, part.member, word)
		}
	}
	s.event("", `{"id":"answer-%d","object":"chat.completion.chunk","created":%d,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		n, firstTime/1000+n, 300*(n+1), 300, 300*(n+2))
	s.WriteString("data: [DONE]\n\n")
	return s.Bytes()
}
