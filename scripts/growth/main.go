// Command growth draws the figures of BenchmarkGrowth as a chart: CPU time and memory of a
// server over the number of placements, both on logarithmic scales.
//
//	growth < growth.out > docs/growth.svg
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	sizes, err := read(in)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, draw(sizes))
	return err
}

// size is the measurement of a fleet of one size.
type size struct {
	clusters, placements float64
	figures              map[string]float64 // by unit
}

var name = regexp.MustCompile(`^BenchmarkGrowth/clusters=(\d+)/placements=(\d+)(-\d+)?$`)

// read parses the output of the benchmark. If a size was run several times, the last run counts.
func read(in io.Reader) ([]size, error) {
	of := map[float64]size{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}
		match := name.FindStringSubmatch(fields[0])
		if match == nil {
			continue
		}
		s := size{figures: map[string]float64{}}
		s.clusters, _ = strconv.ParseFloat(match[1], 64)   // digits
		s.placements, _ = strconv.ParseFloat(match[2], 64) // likewise
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not a figure of %s", fields[i], fields[0])
			}
			s.figures[fields[i+1]] = value
		}
		of[s.placements] = s
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(of) < 2 {
		return nil, errors.New("the input has figures for fewer than two sizes of BenchmarkGrowth")
	}
	var sizes []size
	for _, s := range of {
		sizes = append(sizes, s)
	}
	slices.SortFunc(sizes, func(a, b size) int { return cmp.Compare(a.placements, b.placements) })
	return sizes, nil
}

// series is one line of a panel.
type series struct{ unit, label, color string }

// panel is one diagram.
type panel struct {
	title  string
	series []series
}

var panels = []panel{
	{"CPU time in seconds", []series{
		{"first-pass-cpu-s", "start and first decisions", "#2563eb"},
		{"restart-cpu-s", "restart", "#d97706"},
		{"list-cpu-s", "list of all placements", "#059669"},
	}},
	{"Memory in MiB", []series{
		{"first-pass-peak-MiB", "first decisions, peak", "#2563eb"},
		{"restart-peak-MiB", "restart, peak", "#d97706"},
		{"restart-rest-MiB", "after a restart, at rest", "#7c3aed"},
		{"database-MiB", "database on disk", "#6b7280"},
	}},
}

// The layout of the chart, in pixels.
const (
	panelWidth, panelHeight = 470.0, 420.0
	left, right             = 62.0, 24.0
	top, bottom             = 40.0, 110.0
)

func draw(sizes []size) string {
	var svg strings.Builder
	width, height := panelWidth*float64(len(panels)), panelHeight
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12" fill="#111827">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, `<rect width="%g" height="%g" fill="#ffffff"/>`+"\n", width, height)
	for i, p := range panels {
		fmt.Fprintf(&svg, `<g transform="translate(%g 0)">`+"\n", float64(i)*panelWidth)
		p.draw(&svg, sizes)
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// decades are the powers of ten that enclose some values.
func decades(values []float64) (from, to float64) {
	return math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))
}

func (p panel) draw(svg *strings.Builder, sizes []size) {
	var values []float64
	for _, s := range sizes {
		for _, line := range p.series {
			if v := s.figures[line.unit]; v > 0 {
				values = append(values, v)
			}
		}
	}
	low, high := decades(values)
	first, last := math.Log10(sizes[0].placements), math.Log10(sizes[len(sizes)-1].placements)
	x := func(placements float64) float64 {
		return left + (math.Log10(placements)-first)/(last-first)*(panelWidth-left-right)
	}
	y := func(value float64) float64 {
		return panelHeight - bottom - (math.Log10(value)-low)/(high-low)*(panelHeight-top-bottom)
	}
	fmt.Fprintf(svg, `<text x="%g" y="22" font-size="14" font-weight="bold">%s</text>`+"\n", left, p.title)
	for power := low; power <= high; power++ {
		value := math.Pow(10, power)
		fmt.Fprintf(svg, `<path d="M%g %.1fH%g" stroke="#e5e7eb"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, y(value), panelWidth-right, left-6, y(value)+4, value)
	}
	for _, s := range sizes {
		anchor := "middle"
		if s.placements == sizes[len(sizes)-1].placements {
			anchor = "end"
		}
		fmt.Fprintf(svg, `<path d="M%.1f %gV%g" stroke="#e5e7eb"/><text x="%.1f" y="%g" text-anchor="%s">%s</text><text x="%.1f" y="%g" text-anchor="%s" font-size="10" fill="#6b7280">%s clusters</text>`+"\n",
			x(s.placements), top, panelHeight-bottom, x(s.placements), panelHeight-bottom+17, anchor, grouped(s.placements),
			x(s.placements), panelHeight-bottom+31, anchor, grouped(s.clusters))
	}
	for i, line := range p.series {
		var points []string
		beside := -6.0 // above the first line, below the others
		if i > 0 {
			beside = 14
		}
		for _, s := range sizes {
			v := s.figures[line.unit]
			if v <= 0 {
				continue
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(s.placements), y(v)))
			fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/><text x="%.1f" y="%.1f" text-anchor="end" font-size="10" fill="%s">%s</text>`+"\n",
				x(s.placements), y(v), line.color, x(s.placements)-4, y(v)+beside, line.color, short(v))
		}
		if len(points) == 0 {
			continue // it was not measured
		}
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), line.color)
		at := panelHeight - bottom + 52 + float64(i)*15
		fmt.Fprintf(svg, `<path d="M%g %gh18" stroke="%s" stroke-width="2"/><text x="%g" y="%g">%s%s</text>`+"\n",
			left, at-4, line.color, left+24, at, line.label, growth(sizes, line.unit))
	}
}

// growth tells the exponent of the power law that fits a series best: 1 is in proportion
// to the number of placements.
func growth(sizes []size, unit string) string {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, s := range sizes {
		if v := s.figures[unit]; v > 0 {
			x, y := math.Log(s.placements), math.Log(v)
			n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
		}
	}
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (exponent %.2f)", (n*sumXY-sumX*sumY)/(n*sumXX-sumX*sumX))
}

// grouped is a whole number with its thousands apart.
func grouped(value float64) string {
	text := strconv.FormatFloat(value, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// short is a figure with two digits at least.
func short(value float64) string {
	if value >= 10 {
		return grouped(value)
	}
	return strconv.FormatFloat(value, 'g', 2, 64)
}
