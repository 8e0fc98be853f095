package maintain

import (
	"context"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// indexSummaryTranscripts fills w.transcripts with the commits whose text repeats the content of other
// commits: the transcripts that models received to write summaries. They are on no branch; only the
// manifests of the requests link to them.
func (w *purge) indexSummaryTranscripts(ctx context.Context) error {
	seen := map[objects.ID]bool{{}: true}
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return err
		}
		if c.Kind != content.KindSummary || seen[c.OriginID] {
			continue
		}
		seen[c.OriginID] = true
		if err := w.indexSummaryTranscript(ctx, c.OriginID); err != nil {
			return err
		}
	}
	return nil
}

// indexSummaryTranscript finds the transcript of the request that a summary came from, if a model
// wrote it.
func (w *purge) indexSummaryTranscript(ctx context.Context, origin objects.ID) error {
	from, err := commit.ReadOrigin(ctx, w.store, origin)
	if err != nil || from.Manifest.IsZero() {
		return err
	}
	m, err := compile.ReadManifest(ctx, w.store, from.Manifest)
	if err != nil || len(m.Sources) == 0 {
		return err
	}
	there, err := deleteMissingInPlace(ctx, w.store, m.Sources) // not all, for example after a summary was cherry-picked to another history
	if err != nil {
		return err
	}
	sources, err := commit.ReadHeaders(ctx, w.store, there)
	if err != nil {
		return err
	}
	for c, err := range commit.Walk(ctx, w.store, m.Head, 0) {
		if err != nil {
			return err
		}
		if c.Kind != content.KindUser { // the instruction repeats nothing
			continue
		}
		for _, source := range sources {
			w.transcripts[source.ContentID] = append(w.transcripts[source.ContentID], c)
		}
	}
	return nil
}

// selectTranscripts selects the content of the transcripts that repeat some content.
func (w *purge) selectTranscripts(ctx context.Context, contentID objects.ID) error {
	for _, c := range w.transcripts[contentID] {
		transcript := *c // headers are shared
		if w.hasTombstone[c.ContentID] {
			continue
		}
		if err := commit.Load(ctx, w.store, &transcript); err != nil {
			return err
		}
		if transcript.Tombstone == nil {
			w.addContentTombstone(&transcript)
			w.result.Copies = append(w.result.Copies, &transcript)
		}
	}
	return nil
}
