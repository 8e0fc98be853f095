package recorder

import (
	"bytes"

	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/internal/secrets"
)

// keptRequestBody returns a request body as the store keeps it, and whether it differs from what was sent
// because secrets were masked.
func (x *exchange) keptRequestBody(sent []byte) (kept []byte, masked bool) {
	kept = x.maskRequest(sent)
	masked = !bytes.Equal(kept, sent)
	if !x.c.o.Unmasked && (x.released || x.recovered) { // the spool has masked it before
		masked = masked || secrets.HasMask(string(kept)) || bytes.Contains(kept, []byte(redacted))
	}
	return kept, masked
}

// maskOverlap is the number of bytes before the first difference from the earlier body that are
// searched again, because a secret may begin there and end in the new part.
const maskOverlap = 64 << 10

// maxCachedBodies is the largest sum of body sizes in each cache of what was made of the last requests.
const maxCachedBodies = 16 << 20

// cacheKey returns the key of an exchange in these caches: its queue and the beginning of its body, by which
// the conversations of a queue, such as those of sub-agents, differ. The next request of a conversation
// uses the value again, because a client repeats most of a request in its next one.
func (x *exchange) cacheKey(body []byte) string {
	return x.queueKey() + "\x00" + string(body[:min(len(body), 1<<10)])
}

// maskRequest returns the request body of an exchange in which secrets are masked, unless the Repo masks
// none. A body without secrets is searched once, for the spool and for the store. The beginning that it
// shares with the last body with the same cacheKey, if that had no secret, is not searched again.
func (x *exchange) maskRequest(body []byte) []byte {
	if x.c.o.Unmasked || x.clean.Load() {
		return body
	}
	original, key := body, x.cacheKey(body)
	body = x.redactBytes(body)
	searched := string(body[max(0, requestbody.CommonPrefix(x.c.bodies.Get(key), body)-maskOverlap):])
	masked := secrets.Mask(searched)
	if masked == searched {
		x.c.bodies.Put(key, body, len(key)+len(body))
		x.clean.Store(bytes.Equal(body, original))
		return body
	}
	x.c.bodies.Remove(key)
	return append(bytes.Clone(body[:len(body)-len(searched)]), masked...)
}
