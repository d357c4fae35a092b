// Package key builds comparison keys: values with equal keys can share the results computed from
// them.
package key

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Writer collects the parts that determine whether two things are equal. Every part has a name, so
// that tests can leave it out and check that this is noticed.
type Writer interface {
	// Text writes a part that is a string.
	Text(part, text string)
	// Set writes a part that is a set: order and repetition do not matter.
	Set(part string, texts []string)
	// List writes a part whose order matters.
	List(part string, texts []string)
	// Words writes a part that affects only the wording of answers, such as the spelling of a
	// constraint. Only a wording key includes it. In such a key, order and repetitions in sets
	// count as well, because queries that share a sentence must agree on all of that, whereas
	// queries that share a mask need not. Words reports whether it has written the part; if so,
	// parts derived from it can be omitted.
	Words(part, text string) bool
	// Sequence writes a part that is a list of n elements with parts of their own.
	Sequence(part string, n int, write func(k Writer, i int))
	// Each writes a part that is a set of n elements with parts of their own.
	Each(part string, n int, write func(k Writer, i int))
}

// Key is the Writer that builds the key text. Lengths precede strings and sets, so that equal texts
// imply equal parts among things of one kind, which write the same parts in the same order.
type Key struct {
	text  []byte
	words bool
}

// New returns an empty key.
func New() *Key { return &Key{text: make([]byte, 0, 128)} }

// OfWords returns an empty wording key: see Words.
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
	// Elements are written in place and then sorted.
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

// String returns the key as a comparable string.
func (k *Key) String() string { return string(k.text) }
