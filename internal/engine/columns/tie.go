package columns

import (
	"math"
	"math/bits"
)

// HashText returns the 64-bit FNV-1a hash.
func HashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= 1099511628211
	}
	return h
}

// TieHash breaks ties between clusters with equal scores: the smaller hash wins. It depends on both
// names, so that placements with the same candidates spread over them, deterministically. The
// finalizer is that of SplitMix64 (Steele, Lea, Flood 2014).
func TieHash(placement, cluster uint64) uint64 {
	z := tieMix(tieSeed(placement) + cluster)
	return z ^ (z >> 31)
}

// tieSeed is the part of TieHash that is the same for all clusters.
func tieSeed(placement uint64) uint64 { return placement * 0x9e3779b97f4a7c15 }

// tieMix is TieHash without its last step, which does not affect the upper 31 bits.
func tieMix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	return (z ^ (z >> 27)) * 0x94d049bb133111eb
}

// LowTies appends to dst, in ascending order, all rows whose TieHash is at most limit, and possibly
// a few whose hash is slightly above it. hashes are those of the clusters.
func LowTies(dst []int32, rows Bitmap, hashes []uint64, placement, limit uint64) []int32 {
	seed := tieSeed(placement)
	limit |= 1<<33 - 1 // the bits that the last step of the hash may change
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

// lowMix returns a bit for each of at most 64 hashes whose tieMix is at most limit. Processing four
// at a time takes a third less time.
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

// TieLimit returns a limit that the hashes of somewhat more than n of count clusters are expected
// to be below.
func TieLimit(n, count int) uint64 {
	share := (float64(n) + 4*math.Sqrt(float64(n)) + 4) / float64(max(count, 1))
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * (1 << 63) * 2)
}
