package filter

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Key collects what makes one thing equal to another, part by part. Every part
// has a name, by which a test leaves it out and has to see that it is missed.
// Lengths are written before texts and sets. With that, things of one kind that
// write the same parts in the same order never read the same unless they are.
type Key struct {
	text []byte
	// words says that it is a key of words: see Words.
	words bool
	// LeaveOut, where not nil, is asked of every part whether to leave it out. Only
	// tests do that.
	LeaveOut func(part string) bool
}

// NewKey is an empty key; words says that it is one of words.
func NewKey(words bool) Key { return Key{text: make([]byte, 0, 128), words: words} }

func (k *Key) has(part string) bool { return k.LeaveOut == nil || !k.LeaveOut(part) }

// Text writes a part that is a text.
func (k *Key) Text(part, text string) {
	if k.has(part) {
		k.write(text)
	}
}

// Set writes a part that is a set: neither order nor repetition matters.
func (k *Key) Set(part string, texts []string) {
	if !k.has(part) {
		return
	}
	if len(texts) > 1 && !k.words {
		texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	}
	k.List(part, texts)
}

// List writes a part whose order matters.
func (k *Key) List(part string, texts []string) {
	if !k.has(part) {
		return
	}
	k.number(len(texts))
	for _, text := range texts {
		k.write(text)
	}
}

// Words writes a part that changes no answer, only how it is put, as the spelling
// of a constraint does. Only a key of words has it, in which the order of sets and
// repetitions count as well: what shares a sentence has to agree in all of that,
// what shares a mask need not.
func (k *Key) Words(part, text string) {
	if k.words && k.has(part) {
		k.write(text)
	}
}

func (k *Key) number(n int) { k.text = binary.AppendUvarint(k.text, uint64(n)) }

func (k *Key) write(text string) {
	k.number(len(text))
	k.text = append(k.text, text...)
}

// Sequence writes a part that is a list of n things which have parts themselves.
func (k *Key) Sequence(part string, n int, write func(k *Key, i int)) {
	if !k.has(part) {
		return
	}
	k.number(n)
	for i := range n {
		write(k, i)
	}
}

// Each writes a part that is a set of n things which have parts themselves.
func (k *Key) Each(part string, n int, write func(k *Key, i int)) {
	if !k.has(part) {
		return
	}
	if n <= 1 || k.words {
		k.number(n)
		for i := range n {
			write(k, i)
		}
		return
	}
	// They are written where they will stand, and then put in order.
	start := len(k.text)
	ends := make([]int, n)
	for i := range n {
		write(k, i)
		ends[i] = len(k.text) - start
	}
	all := bytes.Clone(k.text[start:])
	k.text = k.text[:start]
	texts := make([][]byte, n)
	from := 0
	for i, end := range ends {
		texts[i], from = all[from:end], end
	}
	slices.SortFunc(texts, bytes.Compare)
	texts = slices.CompactFunc(texts, bytes.Equal)
	k.number(len(texts))
	for _, text := range texts {
		k.text = append(k.text, text...)
	}
}

// String is the key as a text that can be compared.
func (k *Key) String() string { return string(k.text) }
