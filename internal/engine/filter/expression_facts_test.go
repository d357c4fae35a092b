package filter

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

// TestExpressionsDeclareTheirReads checks that the result of an expression on a cluster changes only with aspects that
// expressions declare to read, and that every declared aspect is needed: for each there is a change that no other
// aspect would have reported.
func TestExpressionsDeclareTheirReads(t *testing.T) {
	asked := reflect.TypeFor[expression.Cluster]()
	ask := func(f *columns.Fleet, row int, method string) string {
		m := reflect.ValueOf(&clusterFacts{fleet: f, namespace: "shop", row: row}).MethodByName(method)
		var args []reflect.Value
		switch m.Type().NumIn() {
		case 0:
		case 1:
			args = []reflect.Value{reflect.ValueOf(map[string]string{"Scores": "speed", "Metric": "load"}[method])}
		default:
			t.Fatalf("no test expression for method %s", method)
		}
		// How long scores have been expired appears only in explanations.
		answers := m.Call(args)
		if method == "Scores" {
			answers = answers[:1]
		}
		out := ""
		for _, v := range answers {
			out += fmt.Sprintf("%v ", v.Interface())
		}
		return out
	}
	const all = expressionFacts | columns.MetricValues | columns.ScoreValues
	missing := all
	d := enginetest.FixedDice(7)
	for round := 0; round < 20 || round < 200 && missing != 0; round++ {
		w := enginetest.RollLawWorld(d)
		f := w.Fleet()
		for range 40 {
			changes := enginetest.RollLawStep(d, w)
			w.Apply(changes, w.Now)
			g, delta := f.With(changes, w.Now)
			f.Live().Each(func(row int) {
				if !g.Live().Has(row) {
					return
				}
				for i := range asked.NumMethod() {
					method := asked.Method(i).Name
					if ask(f, row, method) == ask(g, row, method) {
						continue
					}
					reads := expressionFacts
					switch method {
					case "Metric":
						reads = columns.MetricValues
					case "Scores":
						reads = columns.ScoreValues
					}
					if !delta.ConcernsRow(row, reads) {
						t.Fatalf("%s of %s changed, but expressions do not declare that they read it", method, f.Name(row))
					}
					for aspect := range enginetest.EachAspect(reads) {
						if !delta.ConcernsRow(row, reads&^aspect) {
							missing &^= aspect
						}
					}
				}
			})
			f = g
		}
	}
	if missing != 0 {
		t.Errorf("expressions declare that they read aspects %b, but no case needs them", missing)
	}
}
