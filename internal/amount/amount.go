// Package amount does arithmetic on amounts of resources, exactly.
//
// # Bounds
//
// A quantity is at most 2^63-1 units, as in Kubernetes, which is less than 2^73 thousandths; the API
// refuses larger ones. A workload has at most 2^31-1 replicas, so its requests are less than 2^104 on
// all clusters together, and those of 2^23 such workloads are less than 2^127, the limit of Milli. A
// replica may need machines in addition: at most 100,000 of a flavor, of less than 2^73 each, so with
// every one of these numbers at its limit, it takes 64 workloads to reach it. A total over 100,000
// clusters (2^17) that each have the largest quantity is less than 2^90.
package amount

import (
	"math"
	"math/bits"
	"strconv"
)

// Milli is an amount in thousandths of a unit, of 128 bits in two's complement. Amounts can be
// compared with ==. The zero Milli is 0.
type Milli struct {
	high int64
	low  uint64
}

// Unit is one unit of a resource.
var Unit = Of(1000)

// Of returns an amount of thousandths.
func Of(milli int64) Milli { return Milli{milli >> 63, uint64(milli)} }

// Largest is the largest quantity.
var Largest = Units(math.MaxInt64)

// Unreported marks a resource that a cluster does not report, in columns of amounts that are never
// negative.
var Unreported = Of(math.MinInt64)

// Reported reports whether it is an amount that is not negative, and not Unreported.
func (a Milli) Reported() bool { return a.high >= 0 }

// Units returns an amount of whole units.
func Units(n int64) Milli { return Unit.Times(n) }

// Plus returns the sum.
func (a Milli) Plus(b Milli) Milli {
	low, carry := bits.Add64(a.low, b.low, 0)
	return Milli{a.high + b.high + int64(carry), low}
}

// Minus returns the difference.
func (a Milli) Minus(b Milli) Milli {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	return Milli{a.high - b.high - int64(borrow), low}
}

// Times returns the product with a number.
func (a Milli) Times(n int64) Milli {
	high, low := bits.Mul64(a.low, uint64(n))
	if n < 0 {
		high -= a.low // the number is n + 2^64
	}
	return Milli{int64(high) + a.high*n, low}
}

// Less reports whether the amount is smaller.
func (a Milli) Less(b Milli) bool {
	return a.high < b.high || a.high == b.high && a.low < b.low
}

// Sign returns -1, 0 or 1 if the amount is negative, 0 or positive.
func (a Milli) Sign() int {
	switch {
	case a.high < 0:
		return -1
	case a == Milli{}:
		return 0
	}
	return 1
}

// Positive reports whether the amount is above 0.
func (a Milli) Positive() bool { return a.high > 0 || a.high == 0 && a.low > 0 }

// Min returns the smaller amount.
func Min(a, b Milli) Milli {
	if b.Less(a) {
		return b
	}
	return a
}

// Max returns the larger amount.
func Max(a, b Milli) Milli {
	if a.Less(b) {
		return b
	}
	return a
}

// Rest returns the amount, or 0 if it is negative.
func (a Milli) Rest() Milli {
	if a.high < 0 {
		return Milli{}
	}
	return a
}

// Most is the largest result of Fits. Nothing has that many parts: a workload has at most 2^31-1
// replicas. It leaves room for the sum over 100,000 clusters.
const Most = 1 << 45

// Fits returns how often a part fits into the amount, at most Most times; 0 if the amount is
// negative. The part must be above 0.
func (a Milli) Fits(part Milli) int64 {
	if a.high|part.high == 0 {
		return int64(min(a.low/part.low, Most))
	}
	return a.fitsWide(part)
}

// fitsWide divides larger amounts, the largest bit by bit.
func (a Milli) fitsWide(part Milli) int64 {
	switch {
	case a.Less(part):
		return 0
	case part.high == 0 && uint64(a.high) < part.low:
		n, _ := bits.Div64(uint64(a.high), a.low, part.low)
		return int64(min(n, Most))
	}
	n := int64(0)
	for shift := min(part.leadingZeros()-a.leadingZeros(), 127); shift >= 0; shift-- {
		if shifted := part.shifted(shift); !a.Less(shifted) {
			a = a.Minus(shifted)
			if shift >= 45 {
				return Most
			}
			n |= 1 << shift
		}
	}
	return min(n, Most)
}

// leadingZeros counts the leading zeros of an amount that is not negative.
func (a Milli) leadingZeros() int {
	if a.high == 0 {
		return 64 + bits.LeadingZeros64(a.low)
	}
	return bits.LeadingZeros64(uint64(a.high))
}

// shifted returns the amount times 2^n, which does not pass the limit.
func (a Milli) shifted(n int) Milli {
	if n >= 64 {
		return Milli{high: int64(a.low << (n - 64))}
	}
	return Milli{int64(uint64(a.high)<<n | a.low>>(64-n)), a.low << n}
}

// Share returns amount / whole of amounts that are not negative, and of which the whole is above 0.
func (a Milli) Share(whole Milli) float64 { return a.Float() / whole.Float() }

// Float returns the nearest number of thousandths, to within one unit in the last place.
func (a Milli) Float() float64 {
	if a.high == int64(a.low)>>63 {
		return float64(int64(a.low))
	}
	return float64(float64(a.high)*0x1p64) + float64(a.low)
}

// divided returns the quotient and the rest of an amount that is not negative.
func (a Milli) divided(by uint64) (quotient Milli, rest uint64) {
	high, rest := bits.Div64(0, uint64(a.high), by)
	low, rest := bits.Div64(rest, a.low, by)
	return Milli{int64(high), low}, rest
}

// Units returns the number of whole units, rounded down, of an amount from 0 to Largest.
func (a Milli) Units() int64 {
	q, _ := a.divided(1000)
	return int64(q.low)
}

// suffixes are the powers of 1000 and 1024.
var suffixes = map[uint64][]string{
	1000: {"", "k", "M", "G", "T", "P", "E"},
	1024: {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"},
}

// Text returns the amount as a Kubernetes quantity in its canonical form, with suffixes that are
// powers of 1024 if binary is set.
func (a Milli) Text(binary bool) string {
	sign := ""
	if a.high < 0 {
		a, sign = Milli{}.Minus(a), "-"
	}
	units, rest := a.divided(1000)
	if rest != 0 {
		return sign + a.digits() + "m"
	}
	base := uint64(1000)
	if binary && (units.high > 0 || units.low >= 1024) {
		base = 1024
	}
	i := 0
	for units != (Milli{}) && i < len(suffixes[base])-1 {
		q, rest := units.divided(base)
		if rest != 0 {
			break
		}
		units = q
		i++
	}
	return sign + units.digits() + suffixes[base][i]
}

// digits returns the thousandths of an amount that is not negative in decimal.
func (a Milli) digits() string {
	if a.high == 0 {
		return strconv.FormatUint(a.low, 10)
	}
	q, rest := a.divided(1e18)
	tail := strconv.FormatUint(rest, 10)
	return q.digits() + "000000000000000000"[len(tail):] + tail
}

// String returns the amount in thousandths in decimal.
func (a Milli) String() string {
	if a.high < 0 {
		return "-" + Milli{}.Minus(a).digits()
	}
	return a.digits()
}
