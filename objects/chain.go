package objects

import (
	"context"
	"iter"
)

// Walk implements [Reader].Chain with single reads, for engines that have no
// faster way. get must not hold a lock when it returns, and returns a
// *[NotFoundError] for an object that does not exist.
func Walk(ctx context.Context, get func(ID) (Object, error), tip ID, o ChainOptions) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		end, diverged, err := nearestCommonAncestor(ctx, get, tip, o.Stop)
		if err != nil {
			yield(Object{}, err)
			return
		}
		for n := 0; !tip.IsZero() && tip != end; n++ {
			if o.Limit > 0 && n == o.Limit {
				return
			}
			obj, err := get(tip)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(obj, err) || err != nil {
				return
			}
			tip = obj.FirstParent()
		}
		if diverged {
			yield(Object{}, &DivergedError{Base: end})
		}
	}
}

// nearestCommonAncestor returns, of the common ancestors of tip and each of the stops, the one that is
// nearest to tip. diverged reports whether it is not one of the stops, or whether there is none although
// there are stops.
func nearestCommonAncestor(ctx context.Context, get func(ID) (Object, error), tip ID, stops []ID) (nearestBase ID, diverged bool, err error) {
	nearest := -1
	for _, stop := range stops {
		if stop.IsZero() {
			continue
		}
		base, steps, err := commonAncestor(ctx, get, tip, stop)
		if err != nil {
			return ID{}, false, err
		}
		switch {
		case base.IsZero():
			diverged = diverged || nearest < 0
		case nearest < 0 || steps < nearest:
			nearestBase, nearest, diverged = base, steps, base != stop
		case steps == nearest:
			diverged = diverged && base != stop
		}
	}
	return nearestBase, diverged, nil
}

// commonAncestor returns the nearest common ancestor of tip and stop, and how many
// steps lead from tip to it; zero when there is none. It follows the first parents of
// both in step, so that it finds a near one without reading further.
func commonAncestor(ctx context.Context, get func(ID) (Object, error), tip, stop ID) (base ID, steps int, err error) {
	onTip, onStop := map[ID]int{tip: 0}, map[ID]int{stop: 0}
	for n := 0; !tip.IsZero() || !stop.IsZero(); n++ {
		if _, ok := onStop[tip]; ok && !tip.IsZero() {
			return tip, onTip[tip], nil
		}
		if steps, ok := onTip[stop]; ok && !stop.IsZero() {
			return stop, steps, nil
		}
		if tip, err = firstParentOf(ctx, get, tip); err != nil {
			return ID{}, 0, err
		}
		if stop, err = firstParentOf(ctx, get, stop); err != nil {
			return ID{}, 0, err
		}
		onTip[tip], onStop[stop] = n+1, n+1
	}
	return ID{}, 0, nil
}

// firstParentOf reads an object and returns its first parent; zero for a root and for the zero id.
func firstParentOf(ctx context.Context, get func(ID) (Object, error), id ID) (ID, error) {
	if id.IsZero() {
		return ID{}, nil
	}
	if err := ctx.Err(); err != nil {
		return ID{}, err
	}
	obj, err := get(id)
	if err == nil {
		err = obj.Check() // it is not yielded, so no caller checks it
	}
	return obj.FirstParent(), err
}
