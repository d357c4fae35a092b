package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkGrowth/clusters=10000/placements=25000-2   	1	0 ns/op	1.50 first-pass-cpu-s	300 first-pass-peak-MiB	40 database-MiB
BenchmarkGrowth/clusters=10000/placements=100000-2  	1	0 ns/op	7.00 first-pass-cpu-s	600 first-pass-peak-MiB	90 database-MiB
BenchmarkGrowth/clusters=10000/placements=100000-2  	1	0 ns/op	6.00 first-pass-cpu-s	600 first-pass-peak-MiB	90 database-MiB
PASS
`

func TestChart(t *testing.T) {
	var chart strings.Builder
	if err := run(strings.NewReader(output), &chart); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"start and first decisions (exponent 1.00)", "first decisions, peak (exponent 0.50)", ">100,000<", ">1.5<", ">600<", ">10,000 clusters<"} {
		if !strings.Contains(chart.String(), want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(chart.String())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is not XML: %v", err)
		}
	}
}

func TestChartWithoutFigures(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "PASS\n",
		"one size":     strings.Join(strings.Split(output, "\n")[:2], "\n"),
		"not a figure": strings.Replace(output, "1.50", "x", 1),
	} {
		if err := run(strings.NewReader(text), io.Discard); err == nil {
			t.Errorf("%s: a chart is drawn", name)
		}
	}
}

func TestDecades(t *testing.T) {
	if from, to := decades([]float64{0.2, 1, 45}); from != -1 || to != 2 || math.IsInf(from, 0) {
		t.Errorf("the powers around 0.2 and 45 are %g and %g", from, to)
	}
}
