package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestEdgesReferToEarlierObjects changes each byte of the columns of a table whose templates have
// one explicit target each: no object refers to itself or to a later one.
func TestEdgesReferToEarlierObjects(t *testing.T) {
	var list []objects.Object
	places := map[objects.ID]int{}
	for i := range 4 {
		k := objects.New(objects.KindOrigin, nil, nil, fmt.Append(nil, "origin ", i))
		c := objects.New(objects.KindList, nil, []objects.ID{k.ID, {1}}, fmt.Append(nil, i))
		places[k.ID], places[c.ID] = len(list), len(list)+1
		list = append(list, k, c)
	}
	ids, table, _ := EncodeTable(list, 0)
	header := int(binary.BigEndian.Uint32(table[len(table)-4:]))
	read := 0
	for at := header; at < len(table)-header-4; at++ {
		for to := range byte(len(list)) {
			lie := bytes.Clone(table)
			lie[at] = to
			s, err := ParseTable(len(list), ids, lie, nil)
			if err != nil {
				continue
			}
			read++
			for i := range s.Len() {
				_, links := s.Edges(i, new([]objects.ID))
				for _, id := range links {
					if place, ok := places[id]; ok && place >= i {
						t.Errorf("byte %d is %d: object %d leads to object %d", at, to, i, place)
					}
				}
			}
		}
	}
	if read == 0 {
		t.Error("no changed table could be parsed")
	}
}

// TestFarEdgesHaveRows refers to an object that is too far back for a delta, by the first
// parent alone and by the first link alone: its row is known all the same.
func TestFarEdgesHaveRows(t *testing.T) {
	var list []objects.Object
	for i := range 300 {
		list = append(list, objects.New(objects.KindContent, nil, nil, fmt.Append(nil, i)))
	}
	far := []objects.ID{list[0].ID}
	list = append(list, objects.New(objects.KindCommit, far, nil, []byte("!parent")), objects.New(objects.KindCommit, nil, far, []byte("!link")))
	ids, table, _ := EncodeTable(list, 0)
	s, err := ParseTable(len(list), ids, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Parent(300) != 0 || s.Link(300) != -1 || s.Parent(301) != -1 || s.Link(301) != 0 {
		t.Errorf("the first object is the parent %d and the link %d of one, %d and %d of the other", s.Parent(300), s.Link(300), s.Parent(301), s.Link(301))
	}
}
