package diff

import (
	"slices"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// newest returns the commits of a line, newest first, as a log gives them; all but
// the oldest skip.
func (l *line) newest(skip int) []*commit.Commit {
	list := slices.Clone(l.commits[skip:])
	slices.Reverse(list)
	return list
}

func TestHistoriesCompared(t *testing.T) {
	base := newLine(t).append(content.User("1"), content.User("2"))
	left := base.fork().append(content.User("3"), content.User("4"))
	right := base.fork().append(content.User("5"))
	other := newLine(t).append(content.User("x"))
	for _, c := range []struct {
		name         string
		a, b         []*commit.Commit
		base         objects.ID
		onlyA, onlyB int
	}{
		{"forked", left.newest(0), right.newest(0), base.tip.ID, 2, 1},
		{"the same", left.newest(0), left.newest(0), left.tip.ID, 0, 0},
		{"ahead", left.newest(0), base.newest(0), base.tip.ID, 2, 0},
		{"behind", base.newest(0), left.newest(0), base.tip.ID, 0, 2},
		{"strangers", left.newest(0), other.newest(0), objects.ID{}, 4, 1},
		{"an empty side", left.newest(0), nil, objects.ID{}, 4, 0},
		{"both empty", nil, nil, objects.ID{}, 0, 0},
		{"stopped at the base", left.newest(2), right.newest(2), base.tip.ID, 2, 1},
		{"ahead, stopped at the base", left.newest(2), nil, base.tip.ID, 2, 0},
		{"behind, stopped at the base", nil, left.newest(2), base.tip.ID, 0, 2},
	} {
		h := Histories(c.a, c.b)
		if h.Base != c.base || len(h.OnlyA) != c.onlyA || len(h.OnlyB) != c.onlyB {
			t.Errorf("%s: base %s, %d and %d", c.name, h.Base.Short(), len(h.OnlyA), len(h.OnlyB))
		}
		for _, side := range []struct{ got, all []*commit.Commit }{{h.OnlyA, c.a}, {h.OnlyB, c.b}} {
			if !slices.Equal(side.got, side.all[:len(side.got)]) {
				t.Errorf("%s: not the newest commits, newest first", c.name)
			}
		}
	}
}

func TestOpsHaveNames(t *testing.T) {
	for op, want := range map[Op]string{Same: "same", Remove: "remove", Add: "add", Change: "change", 9: "op(9)"} {
		if text, err := op.MarshalText(); string(text) != want || err != nil {
			t.Errorf("%d is %q, %v", op, text, err)
		}
	}
}
