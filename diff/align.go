package diff

import (
	"slices"
	"sort"
)

// pair is two paired indexes.
type pair struct{ a, b int }

// anchors pairs elements whose key occurs once on each side: the longest run of
// pairs that do not cross. It takes n log n.
func anchors[T any, K comparable](a, b []T, key func(T) K) []pair {
	type place struct{ a, b, onA, onB int }
	places := make(map[K]*place, len(a))
	for i, x := range a {
		k := key(x)
		if places[k] == nil {
			places[k] = &place{}
		}
		places[k].a = i
		places[k].onA++
	}
	for j, x := range b {
		if p := places[key(x)]; p != nil {
			p.b = j
			p.onB++
		}
	}
	var pairs []pair
	for i, x := range a {
		if p := places[key(x)]; p.onA == 1 && p.onB == 1 {
			pairs = append(pairs, pair{i, p.b})
		}
	}
	return longestAscending(pairs)
}

// longestAscending returns the longest part of pairs, which ascend in a, that ascends in b
// too.
func longestAscending(pairs []pair) []pair {
	var ends []int // ends[n]: the pair that ends the best run of n+1 pairs
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(ends), func(n int) bool { return pairs[ends[n]].b >= p.b })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	run := make([]pair, 0, len(ends))
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		run = append(run, pairs[i])
	}
	slices.Reverse(run)
	return run
}

// maxCells bounds the table of one alignment. Larger ones are aligned within a
// band around the diagonal.
const maxCells = 1 << 18

// minBand is the least width of such a band, to either side.
const minBand = 8

// grid is a table of scores, row by row, each within its band.
type grid struct {
	rows, cols, band int // band 0: all of it
	step             [][]step
}

// step is how the best way came to a cell.
type step uint8

const (
	left step = iota // b stays alone
	up               // a stays alone
	both
)

func newGrid(rows, cols int) *grid {
	g := &grid{rows: rows, cols: cols}
	if rows*cols > maxCells {
		g.band = max(minBand, maxCells/(2*rows))
	}
	return g
}

// columnsOf returns the first and the last column of a row.
func (g *grid) columnsOf(row int) (first, last int) {
	if g.band == 0 {
		return 0, g.cols
	}
	middle := row * g.cols / g.rows
	slope := g.cols/g.rows + 1
	return max(0, middle-g.band-slope), min(g.cols, middle+g.band+slope)
}

// alignBySimilarity pairs blocks so that the sum of their similarities is greatest.
func alignBySimilarity(a, b []*Block) []pair {
	left, right := minHashes(a), minHashes(b)
	g := newGrid(len(a), len(b))
	g.fill(func(i, j int) int { return similarity(a[i], b[j], left[i], right[j]) })
	return g.trace()
}

func (g *grid) fill(score func(i, j int) int) {
	g.step = make([][]step, g.rows+1)
	best := make([]int, g.cols+1) // of the row above; beyond its band, its last
	now := make([]int, g.cols+1)
	for i := 1; i <= g.rows; i++ {
		lo, hi := g.columnsOf(i)
		g.step[i] = make([]step, hi-lo+1)
		for j := lo; j <= hi; j++ {
			now[j] = best[j]
			g.step[i][j-lo] = up
			if j > lo && now[j-1] >= now[j] {
				now[j], g.step[i][j-lo] = now[j-1], left
			}
			if j == 0 {
				continue
			}
			if s := score(i-1, j-1); s > 0 && best[j-1]+s > now[j] {
				now[j], g.step[i][j-lo] = best[j-1]+s, both
			}
		}
		for j := hi + 1; j <= g.cols; j++ {
			now[j] = now[hi]
		}
		best, now = now, best
	}
}

func (g *grid) trace() []pair {
	var pairs []pair
	for i, j := g.rows, g.cols; i > 0 && j >= 0; {
		lo, hi := g.columnsOf(i)
		switch {
		case j > hi:
			j = hi
		case j < lo:
			i--
		case g.step[i][j-lo] == left:
			j--
		case g.step[i][j-lo] == up:
			i--
		default:
			pairs = append(pairs, pair{i - 1, j - 1})
			i, j = i-1, j-1
		}
	}
	slices.Reverse(pairs)
	return pairs
}
