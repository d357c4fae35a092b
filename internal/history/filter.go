package history

import (
	"encoding/binary"
	"hash/fnv"
)

// filter is a Bloom filter: it tells which words a chunk certainly does not contain. Empty, it
// tells nothing.
type filter []byte

// With 10 bits and 7 hashes for a word, one of a hundred words that are not there seems to be.
const (
	filterBits   = 10
	filterHashes = 7
)

func newFilter(words map[string]struct{}) filter {
	f := make(filter, (len(words)*filterBits+7)/8)
	for word := range words {
		f.each(word, func(at int, bit byte) bool { f[at] |= bit; return true })
	}
	return f
}

// mayHave reports whether a word may have been added.
func (f filter) mayHave(word string) bool {
	return len(f) == 0 || f.each(word, func(at int, bit byte) bool { return f[at]&bit != 0 })
}

// each calls fn with the bits of a word until it returns false, and reports whether it never did.
func (f filter) each(word string, fn func(at int, bit byte) bool) bool {
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(word))
	sum := hash.Sum(nil)
	a, b := binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])
	for i := range uint64(filterHashes) {
		bit := (a + i*b) % uint64(len(f)*8)
		if !fn(int(bit/8), 1<<(bit%8)) {
			return false
		}
	}
	return true
}
