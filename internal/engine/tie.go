package engine

// hashText is FNV-1a, 64 bit.
func hashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= 1099511628211
	}
	return h
}

// tieHash orders clusters of equal score for one placement: the smaller hash
// wins. It depends on both names, so that placements that find the same
// clusters equally good spread over them, always in the same way. The finish is
// SplitMix64's (Steele, Lea, Flood 2014).
func tieHash(placement, cluster uint64) uint64 {
	z := placement*0x9e3779b97f4a7c15 + cluster
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
