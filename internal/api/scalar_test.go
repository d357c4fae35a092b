package api

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
)

func TestQuantityMilli(t *testing.T) {
	for text, want := range map[Quantity]string{
		"0": "0", "1": "1000", "1500m": "1500", "1.5": "1500", "0.1": "100", "100m": "100", "1m": "1",
		"0.0001": "1", // rounded up: a positive amount is never 0
		"64Gi":   "68719476736000", "1Ki": "1024000", "1k": "1000000", "2M": "2000000000", "1G": "1000000000000", "1Ti": "1099511627776000",
		"1e3": "1000000", "1E3": "1000000", "007": "7000", "-1": "-1000", "+1": "1000",
		"9223372036854775": "9223372036854775000", "9223372036854776": "9223372036854776000", "9223372036854775807m": "9223372036854775807",
		"9007199254740993.5": "9007199254740993500",
		"40Ti":               "43980465111040000", "100P": "100000000000000000000", "9E": "9000000000000000000000", "7Ei": "8070450532247928832000",
		"9223372036854775807": "9223372036854775807000", "9.223372036854775807E": "9223372036854775807000", "9223372036854775806.5": "9223372036854775806500",
		"-9223372036854775807": "-9223372036854775807000",
	} {
		got, err := text.Milli()
		if err != nil || got.String() != want {
			t.Errorf("Milli() of %q = %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []Quantity{"", "m", "Gi", "1g", "1 Gi", " 1", "1,5", "ten", "0x10", "1e", "NaN", "Inf", "1KiB", "--1", "mi1", "1mi",
		"1e999999999", "-1e-999999999", "0e100", Quantity(strings.Repeat("9", 1000))} {
		if got, err := text.Milli(); err == nil || !strings.Contains(err.Error(), "64Gi") {
			t.Errorf("Milli() of %q = %s (%v), want an error with an example", text, got, err)
		}
	}
	for _, text := range []Quantity{"8Ei", "10E", "1e19", "1e40", "9223372036854775808", "9223372036854775807.0001", "9223372036854775807.5", "99999999999999999999", "1e99", "-1e30", "-9Ei", "-10E"} {
		if got, err := text.Milli(); err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "8Ei") {
			t.Errorf("Milli() of %q = %s (%v), want that it is out of range", text, got, err)
		}
	}
}

// exactly returns a quantity in thousandths, rounded up, computed independently.
func exactly(t *rapid.T, text string) *big.Int {
	at := strings.IndexFunc(text, unicode.IsLetter)
	if at < 0 {
		at = len(text)
	}
	factors := map[string]*big.Rat{"": big.NewRat(1, 1), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1000)}
	for i, name := range []string{"k", "M", "G", "T", "P", "E"} {
		factors[name] = new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(1000), big.NewInt(int64(i+1)), nil))
		factors[strings.ToUpper(name)+"i"] = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*(i+1))))
	}
	number, factor := text[:at], factors[text[at:]]
	if factor == nil {
		number, factor = text, factors[""] // an exponent
	}
	v, ok := new(big.Rat).SetString(number)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	v.Mul(v, factor).Mul(v, big.NewRat(1000, 1))
	up := new(big.Int).Add(v.Num(), new(big.Int).Sub(v.Denom(), big.NewInt(1)))
	return up.Div(up, v.Denom())
}

// TestQuantitiesOfAllMagnitudes compares quantities with big integers, and those that fit with the
// parser of Kubernetes. A quantity is exact or refused.
func TestQuantitiesOfAllMagnitudes(t *testing.T) {
	largest := new(big.Int).Mul(big.NewInt(math.MaxInt64), big.NewInt(1000))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[0-9]{1,20}(\.[0-9]{1,10})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e3|E2|e15|e-4|)`),
			rapid.StringMatching(`[0-9]{1,4}(\.[0-9]{1,18})?(T|P|E|Ti|Pi|Ei)`),
			rapid.StringMatching(`92233720368547758(0[5-9]|1[0-2])(\.[0-9]{0,4})?(k|m|)`),
		).Draw(t, "quantity")
		want := exactly(t, text)
		got, err := Quantity(text).Milli()
		if fits := want.Cmp(largest) <= 0; fits != (err == nil) || fits && got.String() != want.String() {
			t.Fatalf("Milli() of %q = %s (%v), want %s", text, got, err, want)
		}
		q, parseErr := resource.ParseQuantity(text)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		if err == nil && want.IsInt64() && want.Int64() < 1<<60 && got != amount.Of(q.MilliValue()) {
			t.Fatalf("Milli() of %q = %s, want %d as in Kubernetes", text, got, q.MilliValue())
		}
		if err != nil {
			return
		}
		for _, name := range []string{"cpu", "memory"} {
			written := FormatMilli(name, got)
			if again, err := written.Milli(); err != nil || again != got {
				t.Fatalf("%s of %s, formatted as %q and parsed, is %s (%v)", got, name, written, again, err)
			}
		}
	})
}

func TestFormatMilli(t *testing.T) {
	for _, tt := range []struct {
		name  string
		milli int64
		want  Quantity
	}{
		{"cpu", 1500, "1500m"}, {"cpu", 2000, "2"}, {"cpu", 0, "0"}, {"memory", 68719476736000, "64Gi"},
		{"ephemeral-storage", 1024000, "1Ki"}, {"storage", 0, "0"}, {"nvidia.com/gpu", 8000, "8"},
	} {
		if got := FormatMilli(tt.name, amount.Of(tt.milli)); got != tt.want {
			t.Errorf("FormatMilli of %d of %s = %q, want %q", tt.milli, tt.name, got, tt.want)
		}
	}
	// The form is that of Kubernetes.
	rapid.Check(t, func(t *rapid.T) {
		milli := rapid.Int64().Draw(t, "milli")
		if rapid.Bool().Draw(t, "whole") {
			milli = milli / 1000 * 1000
		}
		if rapid.Bool().Draw(t, "round") {
			milli = milli >> 40 << 40 / 1000000 * 1000000
		}
		for name, format := range map[string]resource.Format{"cpu": resource.DecimalSI, "memory": resource.BinarySI} {
			want := resource.NewMilliQuantity(milli, format)
			if milli%1000 == 0 {
				want = resource.NewQuantity(milli/1000, format)
			}
			if got := FormatMilli(name, amount.Of(milli)); string(got) != want.String() {
				t.Fatalf("%d of %s is %q, want %q", milli, name, got, want)
			}
		}
	})
}

func TestDuration(t *testing.T) {
	for text, want := range map[Duration]time.Duration{"": 0, "60s": time.Minute, "1m30s": 90 * time.Second, "0s": 0, "-5s": -5 * time.Second, "100ms": 100 * time.Millisecond} {
		if got, err := text.Parse(); err != nil || got != want {
			t.Errorf("Parse() of %q = %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []Duration{"60", "1 m", "1d", "s", "-", "1e3s"} {
		if _, err := text.Parse(); err == nil || !strings.Contains(err.Error(), `"1h30m"`) {
			t.Errorf("%q: got %v, want an error with an example", text, err)
		}
		if got := text.Or(time.Hour); got != time.Hour {
			t.Errorf("Or() of %q = %v, want the fallback", text, got)
		}
	}
	if got := Duration("").Or(time.Hour); got != time.Hour {
		t.Errorf("Or() of an absent duration = %v, want the fallback", got)
	}
	if got := Duration("0s").Or(time.Hour); got != 0 {
		t.Errorf(`Or() of "0s" = %v, want 0`, got)
	}
}
