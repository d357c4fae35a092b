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
	// The oracles judge as they see: whatever comes first, the verdict is the same.
	anyOrder := func(s []sighting, judge func([]sighting) error) error {
		forward := judge(s)
		reversed := slices.Clone(s)
		slices.Reverse(reversed)
		if backward := judge(reversed); (forward == nil) != (backward == nil) {
			t.Errorf("%+v: %v, but in another order: %v", s, forward, backward)
		}
		return forward
	}
	constraints := func(s []sighting) error {
		return anyOrder(s, func(s []sighting) error {
			o := newConstraintOracle()
			var errs []error
			for _, one := range s {
				errs = append(errs, o.see(one))
			}
			if o.looked == 0 {
				errs = append(errs, errors.New("it has looked at nothing"))
			}
			return errors.Join(errs...)
		})
	}
	order := func(s []sighting) error {
		o := newOrderOracle()
		var errs []error
		for _, one := range s {
			errs = append(errs, o.see(one))
		}
		return errors.Join(errs...)
	}
	// On a stream each.
	elsewhere := func(s []sighting) error {
		for i := range s {
			s[i].stream = i
		}
		return anyOrder(s, order)
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

		{"c: later version", false, order(sights(stored, object(7, at("31"), on("c6"), moved)))},
		{"c: same clusters in another order", false, order(sights(stored, object(7, at("31"), on("c5", "c4"))))},
		{"c: older version afterwards", true, order(sights(stored, object(7, at("29"), func(p *api.Placement) { p.Status.DecisionRevision-- })))},
		{"c: lower decision revision", true, order(sights(stored, object(7, at("31"), func(p *api.Placement) { p.Status.DecisionRevision-- })))},
		{"c: older observed generation", true, order(sights(stored, object(7, at("31"), func(p *api.Placement) { p.Status.ObservedGeneration-- })))},
		{"c: moved without a new decision revision", true, order(sights(stored, object(7, at("31"), on("c6", "c7"))))},
		{"c: two states in one version", true, order(sights(stored, object(8, on("c6", "c7"), moved)))},

		{"c: older version on another stream", false, elsewhere(sights(stored, object(7, at("31"), on("c6"), moved), object(7, at("32"), on("c6"), moved)))},
		{"c: same state on two streams", false, elsewhere(sights(stored, object(7)))},
		{"c: lower decision revision between two states", true, elsewhere(sights(object(7, at("30")), object(7, at("32"), moved), object(7, at("31"), moved, moved)))},
		{"c: moved without a new decision revision between two states", true, elsewhere(sights(object(7, at("30")), object(7, at("32")), object(7, at("31"), on("c6", "c7"))))},
		{"c: two states in one version on two streams", true, elsewhere(sights(stored, object(8, on("c6", "c7"), moved)))},

		{"d: one leader", false, oracleFence([]string{"one"}, nil)},
		{"d: no leader", true, oracleFence(nil, nil)},
		{"d: two leaders", true, oracleFence([]string{"one", "two"}, nil)},
		{"d: former leader decides", true, oracleFence([]string{"one"}, []derivation{{31, "the old one"}})},

		{"d: consecutive terms", false, inTerms([]decided{{"one", 5, 6}, {"one", 5, 8}, {"two", 7, 9}})},
		{"d: interleaved writes of two leaders", true, inTerms([]decided{{"one", 5, 6}, {"two", 7, 8}, {"one", 5, 9}})},
		{"d: late answer to the former leader", false, inTerms([]decided{{"one", 5, 6}, {"two", 9, 10}, {"one", 5, 8}})},
		{"d: two servers in one term", true, inTerms([]decided{{"one", 5, 6}, {"two", 5, 8}})},

		{"history: read after the write", false, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 6}))},
		{"history: read before the decision that the write waits for", false, oneHistory(deedAt(0, 3, ask{deed: write, number: 1}, reply{number: 1, version: 6}), deedAt(1, 2, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: unacknowledged write applied later", false, oneHistory(deedAt(0, 9, ask{deed: write, number: 1}, reply{unknown: true}), deedAt(2, 3, ask{deed: read}, reply{}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 6}))},
		{"history: stale read", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{}))},
		{"history: read after the delete", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: remove}, reply{}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: rejected commit is read", true, oneHistory(deedAt(0, 1, ask{deed: commit, number: 1}, reply{refused: true}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 5}))},
		{"history: older version read later", true, oneHistory(deedAt(0, 1, ask{deed: write, number: 1}, reply{number: 1, version: 5}), deedAt(2, 3, ask{deed: read}, reply{number: 1, version: 7}), deedAt(4, 5, ask{deed: read}, reply{number: 1, version: 6}))},

		{"e: like a fresh server", false, oracleLeaks(small, small)},
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

func inTerms(list []decided) error {
	r := newRecord()
	for _, d := range list {
		r.note(d)
	}
	_, err := r.verdict()
	return err
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
