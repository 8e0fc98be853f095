package main

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A messageSet generates the messages of a history: the same in every run for the same
// seed and number.
type messageSet struct {
	name string // in the names of results; empty for the set that most of them use
	text func(seed uint64, n int) string
}

// shortMessages are those of a chat: 300 to 900 bytes, 610 on average.
var shortMessages = messageSet{"", message}

// longMessages are what agents store most: results of tools and files of 2 to 30 KB, 7.6 KB
// on average.
var longMessages = messageSet{"2-30 KB messages", toolOutput}

// message returns a chat message. The frequency of words is that of a language, and
// one sentence in six is a repeated one, as in chats.
func message(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	var b strings.Builder
	writeText(&b, r, 300+r.IntN(560))
	return b.String()
}

// toolOutput returns the output of a tool: numbered lines of a file, most of them 2 to 8 KB.
// One in eight repeats the first part of an earlier one, as a file that is read again does.
func toolOutput(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := r.Float64()
	size := 2_000 + int(28_000*x*x*x*x)
	var b strings.Builder
	if n >= 8 && r.IntN(8) == 0 {
		earlier := toolOutput(seed, n-1-n%8)
		b.WriteString(earlier[:min(len(earlier), size)])
	}
	for line := 1; b.Len() < size; line++ {
		b.WriteString(strconv.Itoa(line))
		b.WriteByte('\t')
		writeSentence(&b, r)
		b.WriteByte('\n')
	}
	return b.String()
}

// writeText writes sentences until the text has the size.
func writeText(b *strings.Builder, r *rand.Rand, size int) {
	for b.Len() < size {
		if r.IntN(6) == 0 {
			b.WriteString(repeatedSentences[r.IntN(len(repeatedSentences))])
		} else {
			writeSentence(b, r)
		}
	}
}

// writeSentence writes 5 to 16 words. Few words are frequent and most are rare.
func writeSentence(b *strings.Builder, r *rand.Rand) {
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
	b.WriteByte(" \n"[r.IntN(8)/7]) // one sentence in eight ends its paragraph
}

// The seeds of the generator. writerSeed and the numbers after it are those of processes
// that write at once.
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

var repeatedSentences = func() []string {
	r := rand.New(rand.NewPCG(vocabularySeed, 1))
	all := make([]string, 200)
	for i := range all {
		var b strings.Builder
		writeSentence(&b, r)
		all[i] = b.String()
	}
	return all
}()

// role is the role of the n-th message of a history.
func role(n int) string {
	if n%2 == 0 {
		return "user"
	}
	return "assistant"
}

// jsonLine encodes a message as one line of JSON: role and text.
func jsonLine(n int, text string) []byte {
	line, _ := json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role(n), text}) // strings can always be marshaled
	return append(line, '\n')
}

// fullJSONLine encodes a message with what a commit has too: its id and its time.
func fullJSONLine(id string, ms int64, n int, text string) []byte {
	line, _ := json.Marshal(struct {
		ID      string `json:"id"`
		Time    int64  `json:"time"`
		Role    string `json:"role"`
		Content string `json:"content"`
	}{id, ms, role(n), text}) // strings and numbers can always be marshaled
	return append(line, '\n')
}
