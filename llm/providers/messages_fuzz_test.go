package providers

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// FuzzMessages reads any bytes as a response: the same however they are cut, in
// blocks that can be stored and sent back.
func FuzzMessages(f *testing.F) {
	for _, r := range manifest(f, "testdata/messages") {
		f.Add(r.body)
	}
	for _, e := range messagesEvents {
		f.Add([]byte(e))
	}
	f.Add([]byte(anAnswer))
	f.Add([]byte(`{"type":"error","error":{"message":"no"}}`))
	r := &recording{Provider: "my-server", Model: "claude-test"}
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
		}
		tt := r.target()
		if part := tt.dialect.replay(tt, reply.Blocks); part != nil {
			if _, err := rawjson.Parse(part); err != nil {
				t.Fatalf("%v in %q", err, part)
			}
		}
	})
}
