package columns

import (
	"math"
	"slices"
)

// SortByHead sorts a list by compare, and returns it, perhaps elsewhere in memory.
// head is a number for each thing: of two whose upper 40 bits differ, the one with the
// lower comes first. Only those that are alike in them are compared.
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

// sortKeys sorts keys of SortByHead, and returns them, perhaps elsewhere in memory. Many
// are counted digit by digit, from the lowest (a radix sort); their places are in order
// to begin with, and stay so.
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
			continue // all are alike
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
	// A key of SortByHead has the place in the list in its lowest bits.
	placeBits = 24
	placeMask = 1<<placeBits - 1
	// fewToSort is the length up to which keys are not worth their memory.
	fewToSort = 32
	// fewToCount is the length up to which to count is not worth its tables.
	fewToCount = 512
)

// HeadOfScore is a head by which the highest score comes first.
func HeadOfScore(score float64) uint64 {
	bits := math.Float64bits(score + 0) // of the zeros, there is a negative one
	if bits>>63 != 0 {
		return bits
	}
	return ^bits &^ (1 << 63)
}
