package providers

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// fuzzDialect reads any bytes as a response: the same however they are cut, in
// blocks that can be stored and sent back.
func fuzzDialect(f *testing.F, dialect string, seeds ...string) {
	for _, r := range recordings(f, "testdata/"+dialect, func(*recording) bool { return true }) {
		f.Add(r.body)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	r := &recording{API: dialect, Provider: dialect, Model: "a-model"}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply, _, err := r.read(bytes.NewReader(body))
		again, _, err2 := r.read(iotest.OneByteReader(bytes.NewReader(body)))
		if all(reply, err) != all(again, err2) {
			t.Fatalf("whole\n%q\nbyte by byte\n%q", all(reply, err), all(again, err2))
		}
		for _, b := range reply.Blocks {
			if _, err := content.Decode(content.Encode(b)); err != nil {
				t.Fatal(err)
			}
			if n, ok := b.(content.Native); ok {
				if _, err := rawjson.Parse([]byte(n.JSON)); err != nil {
					t.Fatalf("%v in %q", err, n.JSON)
				}
			}
		}
		tt := r.target()
		if part := tt.dialect.replay(tt, reply.Blocks); part != nil {
			if v, err := rawjson.Parse(part); err != nil || !rawjson.Clean(string(v)) {
				t.Fatalf("%v in %q", err, part)
			}
		}
	})
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
