package columns

import (
	"math"
	"slices"
)

// SortByHead sorts a list by compare and returns it, possibly in new memory. head returns a number
// for each element, such that if the upper 40 bits of two heads differ, the element with the lower
// one comes first. compare is called only for elements with the same upper bits.
func SortByHead[T any](list []T, head func(T) uint64, compare func(x, y T) int) []T {
	if len(list) < fewToSort || len(list) > placeMask {
		slices.SortFunc(list, compare)
		return list
	}
	keys := make([]uint64, len(list))
	for i, x := range list {
		keys[i] = head(x)&^placeMask | uint64(i)
	}
	keys = sortKeys(keys)
	ordered := make([]T, len(list))
	for i, key := range keys {
		ordered[i] = list[key&placeMask]
	}
	for i := 0; i < len(keys); {
		end := i + 1
		for end < len(keys) && keys[end]>>placeBits == keys[i]>>placeBits {
			end++
		}
		if end-i > 1 {
			slices.SortFunc(ordered[i:end], compare)
		}
		i = end
	}
	return ordered
}

// sortKeys sorts keys of SortByHead and returns them, possibly in new memory. Long lists are sorted
// by a least-significant-digit radix sort. Positions are ascending initially, and the sort is
// stable.
func sortKeys(keys []uint64) []uint64 {
	if len(keys) < fewToCount {
		slices.Sort(keys)
		return keys
	}
	var counts [(64 - placeBits) / 8][256]int32
	for _, key := range keys {
		for digit := range counts {
			counts[digit][byte(key>>(placeBits+8*digit))]++
		}
	}
	other := make([]uint64, len(keys))
	for digit := range counts {
		shift, next := placeBits+8*digit, &counts[digit]
		if int(next[byte(keys[0]>>shift)]) == len(keys) {
			continue // all are equal
		}
		at := int32(0)
		for i, n := range next {
			next[i] = at
			at += n
		}
		for _, key := range keys {
			to := &next[byte(key>>shift)]
			other[*to] = key
			*to++
		}
		keys, other = other, keys
	}
	return keys
}

const (
	// The lowest bits of a SortByHead key hold the position in the list.
	placeBits = 24
	placeMask = 1<<placeBits - 1
	// fewToSort is the length up to which keys are not worth their memory.
	fewToSort = 32
	// fewToCount is the length up to which a radix sort is not worth its tables.
	fewToCount = 512
)

// HeadOfScore returns a head that puts the highest score first.
func HeadOfScore(score float64) uint64 {
	bits := math.Float64bits(score + 0) // turns negative zero into zero
	if bits>>63 != 0 {
		return bits
	}
	return ^bits &^ (1 << 63)
}
