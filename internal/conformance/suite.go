package conformance

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Suite runs the cases of one driver.
type Suite struct {
	// Driver is the package, as named in drivers.
	Driver string
	// Play runs a case, by its ID or its group. It reads the input and expectation with Read, and reports all
	// disagreements.
	Play map[string]func(t *T, c *Played)
	// Differences lists deliberately different results, by case ID.
	Differences map[string]Difference
	// Loose lists the parts of expectations whose change a driver need not notice, with the reason: "K208/choice" and
	// everything below it, or "*/choose_from +another order" for one kind of change.
	Loose map[string]string
}

// Difference is a deliberately different result.
type Difference struct {
	// Instead replaces the parts of the expectation with the same name.
	Instead string
	// Reason says why, and which rule it follows from.
	Reason string
}

// Played is a case that is being run.
type Played struct {
	Case
	out   json.RawMessage
	input []any
}

// T records what a driver finds wrong with a case.
type T struct {
	*testing.T
	mu    sync.Mutex
	wrong []string
}

// Errorf records a disagreement.
func (t *T) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }

// Error records a disagreement.
func (t *T) Error(args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprint(args...))
}

// Fatalf records a disagreement and ends the case.
func (t *T) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

// Fatal records a disagreement and ends the case.
func (t *T) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

// Read decodes the input and the expectation of a case, the fields "in" and "out". An unknown field is an error.
func (c *Played) Read(t *T, in, out any) {
	t.Helper()
	var raw struct{ In json.RawMessage }
	if err := json.Unmarshal(c.Raw, &raw); err != nil {
		t.Fatal(err)
	}
	if err := Decode(raw.In, in); err != nil {
		t.Fatalf("read in: %v", err)
	}
	if err := Decode(c.out, out); err != nil {
		t.Fatalf("read out: %v", err)
	}
	c.input = append(c.input, in)
}

// play runs a case with an expectation, and returns the disagreements and the unread parts of the input.
func (s *Suite) play(t *testing.T, c Case, out json.RawMessage) (wrong, ignored []string) {
	play := s.Play[c.ID]
	if play == nil {
		play = s.Play[c.Group]
	}
	if play == nil {
		return []string{"nobody plays group " + c.Group}, nil
	}
	recorder, played := &T{T: t}, &Played{Case: c, out: out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		play(recorder, played)
	}()
	<-done
	for _, in := range played.input {
		ignored = append(ignored, unread("in", reflect.ValueOf(in))...)
	}
	if played.input == nil {
		ignored = append(ignored, "in is not read")
	}
	return recorder.wrong, ignored
}

// Run runs all cases of the driver: each must hold, all of its input must be read, and no other expectation may hold.
func (s *Suite) Run(t *testing.T) {
	cases, err := Of(s.Driver)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("there are no cases for %s", s.Driver)
	}
	used := map[string]bool{}
	played := map[string]bool{}
	for _, c := range cases {
		played[c.ID], played[c.Group] = true, true
		t.Run(c.ID, func(t *testing.T) { s.run(t, c, used) })
	}
	for id := range s.Play {
		if !played[id] {
			t.Errorf("there is a player for %s, and no such case", id)
		}
	}
	for id, d := range s.Differences {
		if !played[id] || d.Reason == "" {
			t.Errorf("difference %s: no such case, or no reason", id)
		}
	}
	for pattern, reason := range s.Loose {
		if !used[pattern] || reason == "" {
			t.Errorf("%s is said to be loose: nothing there goes unnoticed, or there is no reason", pattern)
		}
	}
}

// Verdicts runs all cases of the driver and returns the disagreements of each, by ID.
func (s *Suite) Verdicts(t *testing.T) map[string][]string {
	t.Helper()
	cases, err := Of(s.Driver)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, c := range cases {
		expected, err := c.expected()
		if err != nil {
			t.Fatal(err)
		}
		out[c.ID], _ = s.play(t, c, expected)
	}
	return out
}

// expected returns the expectation of a case.
func (c *Case) expected() (json.RawMessage, error) {
	var raw struct{ Out json.RawMessage }
	if err := json.Unmarshal(c.Raw, &raw); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return raw.Out, nil
}

func (s *Suite) run(t *testing.T, c Case, used map[string]bool) {
	expected, err := c.expected()
	if err != nil {
		t.Fatal(err)
	}
	if d, differs := s.Differences[c.ID]; differs {
		if wrong, _ := s.play(t, c, expected); len(wrong) == 0 {
			t.Errorf("it agrees, and Differences says that it does not: %s", d.Reason)
		}
		if expected, err = merge(expected, d.Instead); err != nil {
			t.Fatal(err)
		}
	}
	wrong, ignored := s.play(t, c, expected)
	for _, text := range slices.Concat(wrong, ignored) {
		t.Error(text)
	}
	if len(wrong) > 0 {
		return
	}
	variants, err := Variants(expected)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variants {
		if !strings.Contains(strings.TrimPrefix(v.Path, "/"), "/") && v.Change == Less && !strings.HasPrefix(string(expected), "[") {
			continue // a weaker expectation has fewer disagreements
		}
		if wrong, _ := s.play(t, c, v.Document); len(wrong) > 0 {
			continue
		}
		if pattern := s.loose(c.ID+v.Path, v.Change); pattern != "" {
			used[pattern] = true
			continue
		}
		t.Errorf("out%s: nobody would notice %s", v.Path, v.Change)
	}
}

// loose returns the pattern that allows a change of a part of an expectation to go unnoticed.
func (s *Suite) loose(at, change string) string {
	for pattern := range s.Loose {
		where, what, _ := strings.Cut(pattern, " +")
		if what != "" && what != change {
			continue
		}
		depth := strings.Count(where, "/") + 1
		parts := strings.Split(at, "/")
		if matches, err := path.Match(where, strings.Join(parts[:min(depth, len(parts))], "/")); err == nil && matches {
			return pattern
		}
	}
	return ""
}

// merge replaces the parts with the same name.
func merge(out json.RawMessage, instead string) (json.RawMessage, error) {
	parts := map[string]json.RawMessage{}
	if err := json.Unmarshal(out, &parts); err != nil {
		return nil, fmt.Errorf("read an expectation: %w", err)
	}
	if err := json.Unmarshal([]byte(instead), &parts); err != nil {
		return nil, fmt.Errorf("read what is expected instead: %w", err)
	}
	return json.Marshal(parts)
}

// Player runs cases whose input and expectation have these types.
func Player[In, Out any](play func(t *T, in *In, out *Out)) func(*T, *Played) {
	return func(t *T, c *Played) {
		var in In
		var out Out
		c.Read(t, &in, &out)
		play(t, &in, &out)
	}
}
