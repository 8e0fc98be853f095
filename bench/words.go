package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// message is the n-th message of a conversation, the same in every run: 300 to 900
// bytes, words as often as languages have them, and now and then a sentence that
// was said before, as chats have.
func message(who uint64, n int) string {
	r := rand.New(rand.NewPCG(who, uint64(n)))
	var b strings.Builder
	for size := 300 + r.IntN(560); b.Len() < size; {
		if r.IntN(6) == 0 {
			b.WriteString(stock[r.IntN(len(stock))])
		} else {
			sentence(&b, r)
		}
	}
	return b.String()
}

// sentence writes one. The rank of a word is drawn so that few are frequent and
// most are rare.
func sentence(b *strings.Builder, r *rand.Rand) {
	for i, n := 0, 5+r.IntN(12); i < n; i++ {
		x := r.Float64()
		word := vocabulary[int(x*x*x*float64(len(vocabulary)))]
		if i == 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		if i < n-1 {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('.')
	b.WriteByte(" \n"[r.IntN(8)/7]) // one in eight ends its paragraph
}

// The streams of the generator that are not a history's.
const (
	vocabularySeed uint64 = iota
	historySeed
	writerSeed
)

var vocabulary = func() []string {
	r := rand.New(rand.NewPCG(vocabularySeed, 0))
	syllables := strings.Fields("the an of to in is it on re con ter ver pro ment able tion er ing ed ly al ous un dis com per st ra li no mo sa ke ta fi lo pe du ga bi")
	words := make([]string, 4000)
	for i := range words {
		for range 1 + r.IntN(3) {
			words[i] += syllables[r.IntN(len(syllables))]
		}
	}
	return words
}()

// stock is the sentences that come again.
var stock = func() []string {
	r := rand.New(rand.NewPCG(vocabularySeed, 1))
	all := make([]string, 200)
	for i := range all {
		var b strings.Builder
		sentence(&b, r)
		all[i] = b.String()
	}
	return all
}()

// role is who says the n-th message of a history.
func role(n int) string {
	if n%2 == 0 {
		return "user"
	}
	return "assistant"
}

// record is a message as one line of JSON, as a program without a store keeps it.
func record(n int, text string) []byte {
	line, _ := json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role(n), text}) // strings always can
	return append(line, '\n')
}

// fullRecord has all that a commit has: who it is, when it was made, what it says.
func fullRecord(id string, ms int64, n int, text string) []byte {
	line, _ := json.Marshal(struct {
		ID      string `json:"id"`
		Time    int64  `json:"time"`
		Role    string `json:"role"`
		Content string `json:"content"`
	}{id, ms, role(n), text}) // strings and numbers always can
	return append(line, '\n')
}
