package tract_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/reconcile"
)

// TestIDsOfALogAgreeWithReconcile reads each log when it was shorter, and then longer: the blocks that are
// new by the ids of the source, as an import finds them, are those that reconcile finds new in the whole
// lists.
func TestIDsOfALogAgreeWithReconcile(t *testing.T) {
	type branch struct {
		ids      []string
		messages []content.Message // one for each block
	}
	for name, log := range goldenLogs(t) {
		stored := map[string]*branch{}
		lines := bytes.SplitAfter(log, []byte("\n"))
		for n := 0; n < len(lines); n += max(1, len(lines)/20) {
			now := map[string]*branch{}
			for m := range foreign(bytes.Join(lines[:n+1], nil)) { // of a log that is cut off, what can be read
				if now[m.Branch] == nil {
					now[m.Branch] = &branch{}
				}
				b, count := now[m.Branch], map[string]int{}
				for _, p := range m.Parts {
					if count[p.ID]++; !content.IsEmpty(p.Block) {
						b.ids = append(b.ids, fmt.Sprint(p.ID, " ", count[p.ID]))
						b.messages = append(b.messages, content.Message{Role: content.RoleOf(p.Block), Blocks: []content.Block{p.Block}})
					}
				}
			}
			for at, b := range now {
				if stored[at] == nil {
					stored[at] = &branch{}
				}
				old := stored[at]
				known, list := new(reconcile.Builder).Add(old.messages, nil), new(reconcile.Builder).Add(b.messages, nil)
				plan := reconcile.Compare(known, list)
				if plan.Kind != reconcile.Continues || len(plan.Changed)+len(plan.Missing) > 0 {
					t.Errorf("%s: %s: after line %d the log does not go on: %+v", name, at, n+1, plan)
				}
				for i, id := range b.ids {
					byID := !slices.Contains(old.ids, id)
					if byPlan := i >= plan.Listed || slices.Contains(plan.Inserted, i); byID != byPlan {
						t.Errorf("%s: %s: after line %d block %s is new: %t by its id, %t by comparison", name, at, n+1, id, byID, byPlan)
					}
					if byID {
						old.ids, old.messages = append(old.ids, id), append(old.messages, b.messages[i])
					}
				}
			}
		}
	}
}
