package providers

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// checkDecodeNext decodes the bodies of a conversation one after another, each with the prefix of the one
// before it, and compares each result with that of DecodeRequest. It returns how often a prefix fit.
func checkDecodeNext(t *testing.T, api, provider string, bodies ...[]byte) (continued int) {
	t.Helper()
	var earlier *RequestPrefix
	for i, body := range bodies {
		if _, ok := earlier.removeFrom(body); ok {
			continued++
		}
		want, bad := DecodeRequest(api, provider, body)
		have, next, err := DecodeNextRequest(api, provider, body, earlier)
		if fmt.Sprint(err) != fmt.Sprint(bad) {
			t.Errorf("body %d: %v, want %v", i, err, bad)
		}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("body %d: %+v\nwant %+v", i, have, want)
		}
		if err == nil {
			earlier = next
		}
	}
	return continued
}

// growing returns bodies of a conversation that grows one message after another: the messages of
// body, repeated until there are more of them than changingMessages.
func growing(body []byte) (bodies [][]byte) {
	v, err := rawjson.Parse(body)
	if err != nil {
		return [][]byte{body}
	}
	for _, member := range []string{"messages", "input", "contents"} {
		list := v.Get(member)
		if list.Kind() != rawjson.KindArray {
			continue
		}
		begin, _ := rawjson.ElementsEnd(v, member, 0)
		all := slices.Collect(list.Elements())
		for n := len(all); n > 0 && len(all) < 3*changingMessages; {
			all = append(all, all[:n]...)
		}
		var elements []string
		for _, e := range all {
			elements = append(elements, string(e))
			part := string(v[:begin]) + strings.Join(elements, " ,\n") + string(v[begin-1+len(list)-1:])
			bodies = append(bodies, []byte(part))
		}
	}
	return append(bodies, body)
}

// TestDecodeNextRequest compares the results of DecodeNextRequest with those of DecodeRequest, for all
// recorded requests and the requests of captured sessions.
func TestDecodeNextRequest(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	rows, err := os.ReadFile(filepath.Join(shared, "wire/manifest.jsonl"))
	if err != nil {
		t.Skipf("no recordings (TRACT_SHARED): %v", err)
	}
	continued := map[string]int{}
	for line := range bytes.Lines(rows) {
		row := rawjson.Value(line)
		name, api := row.Get("request").Text(), row.Get("api").Text()
		if d := dialectNamed(api); name == "" || d == nil || d.DecodeRequest == nil {
			continue
		}
		body, err := os.ReadFile(filepath.Join(shared, "wire", name))
		if err != nil {
			t.Fatal(err)
		}
		continued[api] += checkDecodeNext(t, api, row.Get("provider").Text(), growing(body)...)
	}
	rows, err = os.ReadFile(filepath.Join(shared, "wire/replay.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(rows) {
		row := rawjson.Value(line)
		if d := dialectNamed(row.Get("api").Text()); d == nil || d.DecodeRequest == nil {
			continue
		}
		body, err := os.ReadFile(filepath.Join(shared, "wire", row.Get("next_request").Text()))
		if err != nil {
			t.Fatal(err)
		}
		continued["replay"] += checkDecodeNext(t, row.Get("api").Text(), row.Get("provider").Text(), growing(body)...)
	}
	manifests, err := filepath.Glob(filepath.Join(shared, "clients/*/manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no captured sessions: %v", err)
	}
	for _, path := range manifests {
		manifest, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sent := map[string][][]byte{} // bodies by API
		for c := range rawjson.Value(manifest).Get("exchanges").Elements() {
			u, err := url.Parse("https://127.0.0.1" + c.Get("path").Text())
			if err != nil {
				t.Fatal(err)
			}
			api, _, _, ok := Recognize(u)
			if !ok || c.Get("request").Text() == "" {
				continue
			}
			body, err := os.ReadFile(filepath.Join(filepath.Dir(path), c.Get("request").Text()))
			if err != nil {
				t.Fatal(err)
			}
			sent[api] = append(sent[api], body)
		}
		for api, bodies := range sent {
			continued[filepath.Base(filepath.Dir(path))+" "+api] += checkDecodeNext(t, api, "", bodies...)
			if !testing.Short() {
				checkDecodeNext(t, api, "", growing(bodies[len(bodies)-1])...)
			}
		}
	}
	t.Log(continued)
	if continued["chat"] == 0 || continued["messages"] == 0 || continued["gemini"] == 0 || continued["responses"] == 0 || continued["claude-code-cc1 messages"] == 0 {
		t.Error("no request was continued")
	}
}

// TestDecodeNextRequestOfEachDialect grows a conversation with calls in each dialect.
func TestDecodeNextRequestOfEachDialect(t *testing.T) {
	for name, c := range decodeRequestCases {
		if n := checkDecodeNext(t, c.api, c.provider, growing([]byte(c.body))...); n == 0 {
			t.Errorf("%s: no request was continued", name)
		}
	}
}

// TestDecodeNextRequestComparesTheRest shows that the result does not depend on the prefix where what
// follows the equal beginning changes its meaning.
func TestDecodeNextRequestComparesTheRest(t *testing.T) {
	message := func(n int) string { return fmt.Sprintf(`{"role":"user","content":"Message %d."}`, n) }
	var list []string
	for n := range 9 {
		list = append(list, message(n))
	}
	begin := `{"messages":[` + strings.Join(list, ",")
	earlier := begin + `],"system":"Be brief.","model":"m"}`
	for name, body := range map[string]string{
		"another model":          begin + `],"system":"Be brief.","model":"n"}`,
		"other instructions":     begin + `],"system":[{"type":"text","text":"Be"},{"type":"text","text":"long."}],"model":"m"}`,
		"no instructions":        begin + `],"model":"m"}`,
		"two lists":              begin + `],"messages":[` + message(10) + `],"system":"Be brief.","model":"m"}`,
		"another kind":           begin + `],"messages":"none","system":"Be brief.","model":"m"}`,
		"fewer messages":         `{"messages":[` + strings.Join(list[:5], ",") + `],"system":"Be brief.","model":"m"}`,
		"a comma at the end":     `{"messages":[` + strings.Join(list[:5], ",") + ` , ],"system":"Be brief.","model":"m"}`,
		"no end":                 `{"messages":[` + strings.Join(list[:5], ","),
		"no comma":               `{"messages":[` + strings.Join(list[:5], ",") + message(5) + `],"model":"m"}`,
		"a message of no role":   begin + `,{"role":"x"}],"model":"m"}`,
		"not an object":          begin + `]}]`,
		"the same message twice": begin + "," + message(8) + `],"system":"Be brief.","model":"m"}`,
		"a byte order mark":      "\ufeff" + earlier,
	} {
		t.Run(name, func(t *testing.T) {
			checkDecodeNext(t, "messages", "anthropic", []byte(earlier), []byte(body), []byte(earlier))
		})
	}
	if n := checkDecodeNext(t, "messages", "anthropic", []byte(earlier), []byte(earlier)); n != 1 {
		t.Errorf("%d requests of 1 were continued", n)
	}
}

// TestRequestPrefixKeepsOneBody shows that the prefix of the last body holds none of the earlier ones.
func TestRequestPrefixKeepsOneBody(t *testing.T) {
	var list []string
	var earlier *RequestPrefix
	var bodies []weak.Pointer[byte]
	for range 6 {
		for range 6 {
			list = append(list, fmt.Sprintf(`{"role":"user","content":"Message %d."}`, len(list)))
		}
		body := []byte(`{"model":"m","messages":[` + strings.Join(list, ",") + `]}`)
		_, next, err := DecodeNextRequest("messages", "anthropic", body, earlier)
		if err != nil {
			t.Fatal(err)
		}
		earlier, bodies = next, append(bodies, weak.Make(&body[0]))
	}
	runtime.GC()
	for i, body := range bodies[:len(bodies)-1] {
		if body.Value() != nil {
			t.Errorf("body %d is in memory", i)
		}
	}
	runtime.KeepAlive(earlier)
}
