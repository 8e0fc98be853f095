package providers

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// checkInvariants checks what holds of every body, whatever its bytes: how it is cut makes no
// difference, blocks can be stored, and what goes back can be sent. With answer,
// which makes a response of what goes back, that comes again the same.
func (r *recording) checkInvariants(t *testing.T, body []byte, answer func(back string) string) {
	t.Helper()
	reply, _, err := r.read(bytes.NewReader(body))
	if again, _, bad := r.read(iotest.OneByteReader(bytes.NewReader(body))); describe(again, bad) != describe(reply, err) {
		t.Fatalf("in pieces:\n%s\nwhole:\n%s", describe(again, bad), describe(reply, err))
	}
	for _, b := range reply.Blocks {
		stored, err := content.Decode(content.Encode(b))
		if err != nil || !bytes.Equal(content.Encode(stored), content.Encode(b)) {
			t.Fatalf("%+v: %v", b, err)
		}
		if n, ok := b.(content.Native); ok {
			if _, err := rawjson.Parse([]byte(n.JSON)); err != nil {
				t.Fatalf("%v in %q", err, n.JSON)
			}
		}
	}
	tt := r.target()
	back := tt.Replay(reply.Blocks)
	if back == nil {
		return
	}
	if v, err := rawjson.Parse(back); err != nil || !rawjson.Clean(string(v)) {
		t.Fatalf("%s: %v", back, err)
	}
	if answer == nil {
		return
	}
	again, _, err := r.read(strings.NewReader(answer(string(back))))
	if err != nil {
		t.Fatal(err)
	}
	if twice := tt.Replay(again.Blocks); !rawjson.Equal(twice, back) {
		t.Fatalf("back\n%s\nand again\n%s", back, twice)
	}
}

// fuzzDialect reads any bytes as a response.
func fuzzDialect(f *testing.F, dialect string, seeds ...string) {
	for _, r := range recordings(f, "testdata/"+dialect, func(*recording) bool { return true }) {
		f.Add(r.body)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	r := &recording{API: dialect, Provider: dialect, Model: "a-model"}
	f.Fuzz(func(t *testing.T, body []byte) { r.checkInvariants(t, body, nil) })
}

func FuzzMessages(f *testing.F) {
	start := sseEvent(`{"type":"content_block_start","index":1}`) + sseEvent(`{"type":"content_block_stop","index":1}`)
	fuzzDialect(f, "messages", append([]string{anAnswer, `{"type":"error","error":{"message":"no"}}`, start}, messagesEvents...)...)
}

func FuzzConverse(f *testing.F) {
	server := smallServers["bedrock"]
	fuzzDialect(f, "converse", server.JSON, server.Broken, server.Stream[0]+server.Stream[1])
}

func FuzzCohere(f *testing.F) {
	server := smallServers["cohere"]
	fuzzDialect(f, "cohere", server.JSON, server.Broken, server.Refuse)
}

func FuzzOllama(f *testing.F) {
	server := smallServers["ollama"]
	fuzzDialect(f, "ollama", server.JSON, server.Broken, server.Stream[0]+server.Stream[4])
}
