package lru

import (
	"fmt"
	"testing"
)

// TestTheLastUsedValuesAreKept: many values of a few keys leave the last value of each, and many keys stay
// within the limit.
func TestTheLastUsedValuesAreKept(t *testing.T) {
	cache := New[string, int](100)
	for n := range 100 {
		for _, key := range []string{"a", "b"} {
			if have := cache.Get(key); have != n {
				t.Fatalf("%s has the value %d, want %d", key, have, n)
			}
			cache.Put(key, n+1, 25)
		}
	}
	for n := range 100 {
		cache.Put(fmt.Sprint(n), n, 25)
		if cache.Get("a") != 100 { // it is used between the others
			t.Fatalf("after %d other keys the value of a is gone", n+1)
		}
		if cache.Get(fmt.Sprint(n)) != n || cache.size > 100 || len(cache.elements) > 4 || cache.used.Len() != len(cache.elements) {
			t.Fatalf("after %d keys: %d in %d values", n, cache.size, len(cache.elements))
		}
	}
	cache.Put("long", 1, 1000)
	if cache.Get("long") != 1 || len(cache.elements) != 1 {
		t.Errorf("a value that is longer than the limit: %d values", len(cache.elements))
	}
	cache.Remove("long")
	cache.Remove("none")
	if cache.Get("long") != 0 || cache.size != 0 || cache.used.Len() != 0 {
		t.Errorf("after the last one was removed: %d in %d values", cache.size, len(cache.elements))
	}
}
