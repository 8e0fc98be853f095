package maintain

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// everReachable yields the headers of all commits that a ref leads to, or led to according to the
// ref log. The commits of the present branches, tags and rescued responses come first. An error
// is the last element.
func everReachable(ctx context.Context, s objects.Store) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		seen := map[objects.ID]bool{}
		tips, err := history.Tips(ctx, s)
		for _, former := range []bool{false, true} {
			if former {
				tips, err = formerTips(ctx, s, seen)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for c, err := range commit.WalkAll(ctx, s, tips, seen) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// formerTips returns the former targets of refs that are in the store, without those in exclude:
// in a recovered store some may be missing.
func formerTips(ctx context.Context, s objects.Store, exclude map[objects.ID]bool) ([]objects.ID, error) {
	var former []objects.ID
	listed := map[objects.ID]bool{{}: true}
	for entry, err := range refs.Log(ctx, s, "") {
		if err != nil {
			return nil, err
		}
		for _, u := range entry.Refs {
			if !exclude[u.New] && !listed[u.New] && !strings.HasPrefix(u.Name, refs.Describe) && !strings.HasPrefix(u.Name, refs.Bodies) {
				listed[u.New], former = true, append(former, u.New)
			}
		}
	}
	return deleteMissingInPlace(ctx, s, former)
}

// deleteMissingInPlace deletes the ids that the store does not have from the list, in place, and returns it.
func deleteMissingInPlace(ctx context.Context, s objects.Reader, ids []objects.ID) ([]objects.ID, error) {
	missing, err := s.Missing(ctx, ids)
	isMissing := map[objects.ID]bool{}
	for _, id := range missing {
		isMissing[id] = true
	}
	return slices.DeleteFunc(ids, func(id objects.ID) bool { return isMissing[id] }), err
}

// commitsOfLastToolTurns returns the commits of the last turns of branches and rescued responses, if
// tools were used in the turn: a provider may require the seals of these commits.
func commitsOfLastToolTurns(ctx context.Context, s objects.Store) (byID map[objects.ID]*commit.Commit, err error) {
	byID = map[objects.ID]*commit.Commit{}
	for _, folder := range []string{refs.Heads, refs.Rescued} {
		list, err := s.Refs(ctx, objects.RefQuery{Prefix: folder})
		if err != nil {
			return nil, err
		}
		for _, ref := range list {
			var turn []*commit.Commit
			tools := false
			for c, err := range history.LastTurn(ctx, s, ref.Target) {
				if err != nil {
					return nil, err
				}
				tools = tools || c.Kind == content.KindToolCall || c.Kind == content.KindToolResult
				turn = append(turn, c)
			}
			for _, c := range turn {
				if tools {
					byID[c.ID] = c
				}
			}
		}
	}
	return byID, nil
}
