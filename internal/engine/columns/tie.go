package columns

import (
	"math"
	"math/bits"
)

// HashText is FNV-1a, 64 bit.
func HashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= 1099511628211
	}
	return h
}

// TieHash orders clusters of equal score for one placement: the smaller hash
// wins. It depends on both names, so that placements that find the same
// clusters equally good spread over them, always in the same way. The finish is
// SplitMix64's (Steele, Lea, Flood 2014).
func TieHash(placement, cluster uint64) uint64 {
	z := tieMix(tieSeed(placement) + cluster)
	return z ^ (z >> 31)
}

// tieSeed is the part of TieHash that is the same for all clusters.
func tieSeed(placement uint64) uint64 { return placement * 0x9e3779b97f4a7c15 }

// tieMix is TieHash but for its last step, which leaves the upper 31 bits as they
// are.
func tieMix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	return (z ^ (z >> 27)) * 0x94d049bb133111eb
}

// LowTies appends to dst the rows whose TieHash is at most limit, in ascending
// order, and a few whose hash is hardly above it. hashes are those of the clusters.
func LowTies(dst []int32, rows Bitmap, hashes []uint64, placement, limit uint64) []int32 {
	seed := tieSeed(placement)
	limit |= 1<<33 - 1 // what the last step of the hash may change
	for i, w := range rows {
		if w == 0 {
			continue
		}
		for low := w & lowMix(hashes[i<<6:min(i<<6+64, len(hashes))], seed, limit); low != 0; low &= low - 1 {
			dst = append(dst, int32(i<<6+bits.TrailingZeros64(low)))
		}
	}
	return dst
}

// lowMix says of at most 64 hashes which tieMix is at most limit, a bit each. Four
// at a time take a third less than one after the other.
func lowMix(hashes []uint64, seed, limit uint64) (low uint64) {
	i := 0
	if len(hashes) == 64 {
		all := (*[64]uint64)(hashes)
		for ; i < 64; i += 4 {
			a, b, c, d := tieMix(seed+all[i]), tieMix(seed+all[i+1]), tieMix(seed+all[i+2]), tieMix(seed+all[i+3])
			if a <= limit {
				low |= 1 << (i & 63)
			}
			if b <= limit {
				low |= 2 << (i & 63)
			}
			if c <= limit {
				low |= 4 << (i & 63)
			}
			if d <= limit {
				low |= 8 << (i & 63)
			}
		}
	}
	for ; i < len(hashes); i++ {
		if tieMix(seed+hashes[i]) <= limit {
			low |= 1 << (i & 63)
		}
	}
	return low
}

// TieLimit is a hash that somewhat more than n of count clusters stay below, if
// hashes fall as they mostly do.
func TieLimit(n, count int) uint64 {
	share := (float64(n) + 4*math.Sqrt(float64(n)) + 4) / float64(max(count, 1))
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * (1 << 63) * 2)
}
