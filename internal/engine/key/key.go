// Package key builds keys for comparison: two values with equal keys can share what is
// computed from them.
package key

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Writer takes in what makes one thing equal to another, part by part. Every part
// has a name, by which a test leaves it out and has to see that it is missed.
type Writer interface {
	// Text writes a part that is a text.
	Text(part, text string)
	// Set writes a part that is a set: neither order nor repetition matters.
	Set(part string, texts []string)
	// List writes a part whose order matters.
	List(part string, texts []string)
	// Words writes a part that changes no answer, only how it is put, as the spelling
	// of a constraint does. Only a key of words has it, in which the order of sets and
	// repetitions count as well: what shares a sentence has to agree in all of that,
	// what shares a mask need not. It reports whether it has written the part, so that
	// what follows from it need not be written, too.
	Words(part, text string) bool
	// Sequence writes a part that is a list of n things which have parts themselves.
	Sequence(part string, n int, write func(k Writer, i int))
	// Each writes a part that is a set of n things which have parts themselves.
	Each(part string, n int, write func(k Writer, i int))
}

// Key is the Writer that makes a text of the parts. Lengths are written before texts
// and sets. With that, things of one kind that write the same parts in the same order
// never read the same unless they are.
type Key struct {
	text  []byte
	words bool
}

// New is an empty key.
func New() *Key { return &Key{text: make([]byte, 0, 128)} }

// OfWords is an empty key of words: see Words.
func OfWords() *Key { return &Key{text: make([]byte, 0, 128), words: true} }

// Text implements Writer.
func (k *Key) Text(_, text string) {
	k.write(text)
}

// Set implements Writer.
func (k *Key) Set(part string, texts []string) {
	if len(texts) > 1 && !k.words {
		texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	}
	k.List(part, texts)
}

// List implements Writer.
func (k *Key) List(_ string, texts []string) {
	k.number(len(texts))
	for _, text := range texts {
		k.write(text)
	}
}

// Words implements Writer.
func (k *Key) Words(_, text string) bool {
	if k.words {
		k.write(text)
	}
	return k.words
}

func (k *Key) number(n int) { k.text = binary.AppendUvarint(k.text, uint64(n)) }

func (k *Key) write(text string) {
	k.number(len(text))
	k.text = append(k.text, text...)
}

// Sequence implements Writer.
func (k *Key) Sequence(_ string, n int, write func(k Writer, i int)) {
	k.number(n)
	for i := range n {
		write(k, i)
	}
}

// Each implements Writer.
func (k *Key) Each(_ string, n int, write func(k Writer, i int)) {
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
