//go:build faults

package faults

import (
	"errors"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// TestOraclesDetectViolations gives each oracle true histories, which it must accept, and false ones, which it must
// reject.
func TestOraclesDetectViolations(t *testing.T) {
	key := api.Key{Kind: api.KindPlacement, Namespace: namespace, Name: "p"}
	object := func(number int64, change ...func(*api.Placement)) *api.Placement {
		p := placement("p", "g1", 2, number)
		p.SetDefaults()
		p.Metadata.UID, p.Metadata.Generation, p.Metadata.ResourceVersion = "u", 3, "30"
		p.Status = api.PlacementStatus{ObservedGeneration: 3, DecisionRevision: 2, Clusters: []string{"c4", "c5"}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	there := func(o ...*api.Placement) map[api.Key]api.Object {
		m := map[api.Key]api.Object{}
		for _, p := range o {
			m[api.KeyOf(p)] = p
		}
		return m
	}
	acknowledged := func(s state, stored api.Object, doubtful ...state) *ledger {
		l := newLedger()
		l.sent(key, s)
		l.answered(key, s, stored, nil)
		for _, d := range doubtful {
			l.sent(key, d)
			l.answered(key, d, nil, &client.UnreachableError{Err: errors.New("gone")})
		}
		return l
	}
	refusedWrite := newLedger()
	refusedWrite.sent(key, state{number: 9})
	refusedWrite.answered(key, state{number: 9}, nil, &api.Problem{Status: 507})
	stored := object(7)
	sights := func(o ...*api.Placement) []sighting {
		var list []sighting
		for _, p := range o {
			s, ok := sight(p)
			if !ok {
				t.Fatal("the object was not observed")
			}
			list = append(list, s)
		}
		return list
	}
	constraints := func(s []sighting) error {
		looked, err := oracleConstraints(s)
		if looked == 0 {
			return errors.New("it has looked at nothing")
		}
		return err
	}
	at := func(version string) func(*api.Placement) {
		return func(p *api.Placement) { p.Metadata.ResourceVersion = version }
	}
	on := func(clusters ...string) func(*api.Placement) {
		return func(p *api.Placement) { p.Status.Clusters = clusters }
	}
	moved := func(p *api.Placement) { p.Status.DecisionRevision++ }
	small := figures{goroutines: 100, descriptors: 40, resident: 100 << 20}
	shown := map[api.Key][]string{key: {"c4", "c5"}}

	cases := []struct {
		name string
		lie  bool
		err  error
	}{
		{"a: acknowledged and there", false, oracleAcknowledged(acknowledged(state{number: 7}, stored), there(stored))},
		{"a: unacknowledged write applied", false, oracleAcknowledged(acknowledged(state{number: 7}, stored, state{number: 8}), there(object(8)))},
		{"a: unacknowledged delete applied", false, oracleAcknowledged(acknowledged(state{number: 7}, stored, state{number: 8, gone: true}), there())},
		{"a: rejected and absent", false, oracleAcknowledged(refusedWrite, there())},
		{"a: rejected and present", true, oracleAcknowledged(refusedWrite, there(object(9)))},
		{"a: acknowledged and lost", true, oracleAcknowledged(acknowledged(state{number: 7}, stored), there())},
		{"a: acknowledged and older", true, oracleAcknowledged(acknowledged(state{number: 7}, stored), there(object(6)))},
		{"a: deleted and present", true, oracleAcknowledged(acknowledged(state{number: 8, gone: true}, nil), there(stored))},
		{"a: other spec than acknowledged", true, oracleAcknowledged(acknowledged(state{number: 7}, stored), there(object(7, func(p *api.Placement) {
			p.Spec.NumberOfClusters = pointer(int64(1))
		})))},
		{"a: other object of the same name", true, oracleAcknowledged(acknowledged(state{number: 7}, stored), there(object(7, func(p *api.Placement) { p.Metadata.UID = "other" })))},
		{"a: never written", true, oracleAcknowledged(newLedger(), there(stored))},

		{"b: as requested", false, constraints(sights(stored))},
		{"b: as requested by an earlier generation", false, constraints(sights(object(7), object(8, at("31"), func(p *api.Placement) {
			p.Metadata.Generation, p.Spec.LabelConstraints = 4, []string{"group is g2"}
		})))},
		{"b: cluster of another group", true, constraints(sights(object(7, on("c4", "c0"))))},
		{"b: one cluster too many", true, constraints(sights(object(7, on("c4", "c5", "c6"))))},
		{"b: cluster requested by an earlier generation", true, constraints(sights(object(7), object(8, at("31"), func(p *api.Placement) {
			p.Metadata.Generation, p.Status.ObservedGeneration, p.Spec.LabelConstraints = 4, 4, []string{"group is g2"}
		})))},

		{"c: forward", false, oracleOrder(sights(stored, object(7, at("31"), on("c6"), moved)))},
		{"c: another order of the same", false, oracleOrder(sights(stored, object(7, at("31"), on("c5", "c4"))))},
		{"c: an older version afterwards", true, oracleOrder(sights(stored, object(7, at("29"), func(p *api.Placement) { p.Status.DecisionRevision-- })))},
		{"c: fewer decisions", true, oracleOrder(sights(stored, object(7, at("31"), func(p *api.Placement) { p.Status.DecisionRevision-- })))},
		{"c: an older generation", true, oracleOrder(sights(stored, object(7, at("31"), func(p *api.Placement) { p.Status.ObservedGeneration-- })))},
		{"c: moved and not counted", true, oracleOrder(sights(stored, object(7, at("31"), on("c6", "c7"))))},
		{"c: two states of one version", true, oracleOrder(sights(stored, object(8, on("c6", "c7"), moved)))},

		{"d: one decides", false, oracleFence([]string{"one"}, nil)},
		{"d: nobody decides", true, oracleFence(nil, nil)},
		{"d: two decide", true, oracleFence([]string{"one", "two"}, nil)},
		{"d: the old one decides", true, oracleFence([]string{"one"}, []derivation{{31, "the old one"}})},

		{"d: terms follow each other", false, termsInOrder([]decided{{"one", 5, 6}, {"one", 5, 8}, {"two", 7, 9}})},
		{"d: the writes of two leaders interleave", true, termsInOrder([]decided{{"one", 5, 6}, {"two", 7, 8}, {"one", 5, 9}})},
		{"d: two servers in one term", true, termsInOrder([]decided{{"one", 5, 6}, {"two", 5, 8}})},

		{"history: read as written", false, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 6}))},
		{"history: read before the decision, which the write answers", false, oneHistory(deedAt(0, 3, ask{deed: write, number: 1}, reply{number: 1, version: 6}), deedAt(1, 2, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: a write without an answer is done later", false, oneHistory(deedAt(0, 9, ask{deed: write, number: 1}, reply{unknown: true}), deedAt(2, 3, ask{deed: read}, reply{}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 6}))},
		{"history: read what was there before", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{}))},
		{"history: deleted and read", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: remove}, reply{}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: a refused commit is read", true, oneHistory(deedAt(0, 1, ask{deed: commit, number: 1}, reply{refused: true}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: read an older version later", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 7}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 6}))},

		{"e: as a fresh one", false, oracleLeaks(small, small)},
		{"e: goroutines", true, oracleLeaks(figures{goroutines: 1000, descriptors: 40, resident: 100 << 20}, small)},
		{"e: open files", true, oracleLeaks(figures{goroutines: 100, descriptors: 400, resident: 100 << 20}, small)},
		{"e: memory", true, oracleLeaks(figures{goroutines: 100, descriptors: 40, resident: 1 << 30}, small)},

		{"f: same", false, oracleConvergence(shown, map[api.Key][]string{key: {"c4", "c5"}})},
		{"f: other clusters", true, oracleConvergence(shown, map[api.Key][]string{key: {"c4", "c6"}})},
		{"f: other order", false, oracleConvergence(shown, map[api.Key][]string{key: {"c5", "c4"}})},
		{"f: missing decision", true, oracleConvergence(shown, nil)},
		{"f: additional decision", true, oracleConvergence(nil, shown)},
	}
	for _, c := range cases {
		if c.lie != (c.err != nil) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	// Every oracle has rejected something.
	for _, letter := range []string{"a", "b", "c", "d", "e", "f"} {
		if !slices.ContainsFunc(cases, func(c struct {
			name string
			lie  bool
			err  error
		}) bool {
			return c.lie && c.name[:1] == letter
		}) {
			t.Errorf("no case makes oracle (%s) fail", letter)
		}
	}
}

func deedAt(call, back int64, in ask, out reply) porcupine.Operation {
	return porcupine.Operation{Input: in, Call: call, Output: out, Return: back}
}

func oneHistory(history ...porcupine.Operation) error {
	if !porcupine.CheckOperations(register, history) {
		return errors.New("it is no single history")
	}
	return nil
}

// TestRowWithoutAFaultFails checks that a test fails if its fault never happened.
func TestRowWithoutAFaultFails(t *testing.T) {
	probe := &recorder{TB: t}
	f := &fault{t: probe}
	f.verdict(row{number: 1})
	if !probe.failed {
		t.Error("the test passes although its fault never happened")
	}
	probe.failed = false
	f.happened()
	if f.verdict(row{number: 1}); probe.failed {
		t.Error("the test fails although its fault happened")
	}
}

// recorder records that a test would have failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Skipped() bool         { return false }
