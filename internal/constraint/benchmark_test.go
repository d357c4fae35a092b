package constraint

import "testing"

func BenchmarkParseLabel(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"equal", "location is DE"},
		{"in", "example.com/location not in (DE, SK, CZ, AT)"},
		{"error", "location isDE"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = ParseLabel(bb.text)
			}
		})
	}
}

func BenchmarkParseMetric(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"symbol", "load>=5"},
		{"words", "load greater than or equal 0.75"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = ParseMetric(bb.text)
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	labels := map[string]string{"location": "SK", "tier": "gold", "example.com/zone": "a"}
	l := mustLabel(b, "location not in (DE, AT)")
	m := mustMetric(b, "load >= 5")
	b.Run("label", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Match(labels)
		}
	})
	b.Run("metric", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Match(7, true)
		}
	})
}
