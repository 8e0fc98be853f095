package recorder

import (
	"bytes"
	"context"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/objects"
)

// keptBody returns a request body as the store keeps it, and whether it differs from what was sent because
// secrets were masked.
func (x *exchange) keptBody(sent []byte) (kept []byte, masked bool) {
	kept = x.maskRequest(sent)
	masked = !bytes.Equal(kept, sent)
	if !x.c.o.Unmasked && (x.released || x.recovered) { // the spool has masked it before
		masked = masked || secrets.HasMask(string(kept)) || bytes.Contains(kept, []byte(redacted))
	}
	return kept, masked
}

// purgeBody purges the body of an exchange that was committed while the store was purged: that purge
// may not have seen the body, which may repeat what was purged.
func (c *committer) purgeBody(ctx context.Context, done *tract.Recorded) error {
	m, err := compile.ReadManifest(ctx, c.repo.Store(), done.Response.Manifest)
	if err != nil {
		return err
	}
	body, err := objects.Read(ctx, c.repo.Store(), m.Body)
	if err != nil {
		return err
	}
	var list []objects.Tombstone
	for _, id := range append(body.Links, body.ID) {
		list = append(list, objects.Tombstone{ID: id, Time: time.Now(), Why: "stored during a purge"})
	}
	_, err = objects.Purge(ctx, c.repo.Store(), list, nil)
	return err
}
