package api

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestQuantityMilli(t *testing.T) {
	for text, want := range map[Quantity]int64{
		"0": 0, "1": 1000, "1500m": 1500, "1.5": 1500, "0.1": 100, "100m": 100, "1m": 1,
		"0.0001": 1, // rounded up: a positive amount is never 0
		"64Gi":   68719476736000, "1Ki": 1024000, "1k": 1000000, "2M": 2e9, "1G": 1e12, "1T": 1e15, "1Ti": 1 << 40 * 1000,
		"1e3": 1000000, "1E3": 1000000, "007": 7000, "-1": -1000, "+1": 1000,
		"100P": math.MaxInt64, "9E": math.MaxInt64, "99999999999999999999": math.MaxInt64, "1e40": math.MaxInt64,
		"9223372036854775": 9223372036854775000, "9223372036854776": math.MaxInt64,
	} {
		got, err := text.Milli()
		if err != nil || got != want {
			t.Errorf("Milli() of %q = %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []Quantity{"", "m", "Gi", "1g", "1 Gi", " 1", "1,5", "ten", "0x10", "1e", "NaN", "Inf", "1KiB", "--1", "mi1", "1mi",
		"1e999999999", "-1e-999999999", "0e100", Quantity(strings.Repeat("9", 1000))} {
		if got, err := text.Milli(); err == nil || !strings.Contains(err.Error(), "64Gi") {
			t.Errorf("Milli() of %q = %d (%v), want an error with an example", text, got, err)
		}
	}
	for _, text := range []Quantity{"-1e30", "-100P", "-9E", "-99999999999999999999"} {
		if got, err := text.Milli(); err == nil && got >= 0 {
			t.Errorf("Milli() of %q = %d, want a negative amount", text, got)
		}
	}
}

// TestQuantityMatchesKubernetes compares plainMilli with the Kubernetes parser.
func TestQuantityMatchesKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,17}(\.[0-9]{1,4})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|e3|)`).Draw(t, "quantity")
		got, err := Quantity(text).Milli()
		q, parseErr := resource.ParseQuantity(text)
		if err != nil || parseErr != nil {
			t.Fatalf("%q: got %v, %v", text, err, parseErr)
		}
		want := q.MilliValue()
		if q.CmpInt64(math.MaxInt64/1000) > 0 {
			want = math.MaxInt64
		}
		if got != want {
			t.Fatalf("Milli() of %q = %d, want %d", text, got, want)
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
		if got := FormatMilli(tt.name, tt.milli); got != tt.want {
			t.Errorf("FormatMilli of %d of %s = %q, want %q", tt.milli, tt.name, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"cpu", "memory"}).Draw(t, "name")
		milli := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "milli")
		if got, err := FormatMilli(name, milli).Milli(); err != nil || got != milli && milli < math.MaxInt64/1000 {
			t.Fatalf("%d of %s, formatted and parsed, is %d (%v)", milli, name, got, err)
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
