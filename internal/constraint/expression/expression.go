// Package expression implements conditions on a cluster written in CEL, the Common Expression
// Language. An expression sees the cluster twice: as `cluster`, with the field names of the
// cluster's own document, and as `managedCluster`, in the structure of Open Cluster Management, so
// that existing expressions work unchanged.
package expression

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// maxText is the maximum length of an expression in bytes. It limits the time to compile.
	maxText = 4096
	// maxLoops is the maximum number of loops in an expression, and maxDepth the maximum nesting
	// depth. The time to type-check grows with the cube of either: it would be half a minute for
	// 200.
	maxLoops = 16
	maxDepth = 50
	// maxCost is the maximum cost of one evaluation, in CEL units. It equals the limit of
	// Kubernetes and Open Cluster Management.
	maxCost = 1_000_000
	// maxCompiled is the number of compiled expressions in the cache.
	maxCompiled = 1024
)

// Expression is a compiled condition. Create it with Compile. It is safe for concurrent use.
type Expression struct {
	text    string
	program cel.Program
	reads   reads
	parsed  *ast.AST // for positions in the text
	memory  memory
}

// compiled caches expressions by text: replicas of placements share the same few, and compiling
// takes a hundred times as long as evaluating.
var compiled = sync.OnceValues(func() (*lru.Cache[string, *Expression], error) {
	return lru.New[string, *Expression](maxCompiled)
})

// Compile compiles an expression, which must be boolean. The error says where the text is wrong and
// what would be right.
func Compile(text string) (*Expression, error) {
	memo, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("prepare to compile CEL: %w", err)
	}
	if e, ok := memo.Get(text); ok {
		return e, nil
	}
	e, err := compile(text)
	if err != nil {
		return nil, err
	}
	// If two goroutines compile the same text at once, both get the first result.
	if first, ok, _ := memo.PeekOrAdd(text, e); ok {
		return first, nil
	}
	return e, nil
}

func compile(text string) (*Expression, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the CEL expression has %d bytes; at most %d are allowed", len(text), maxText)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("prepare to compile CEL: %w", err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, syntaxError(nil, issues)
	}
	if n := countLoops(parsed.NativeRep().Expr()); n > maxLoops {
		return nil, fmt.Errorf("the CEL expression has %d loops (all, exists, filter, map); at most %d are allowed", n, maxLoops)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, syntaxError(parsed.NativeRep(), issues)
	}
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, fmt.Errorf("the CEL expression gives %s; it must give true or false, for example by comparing: ... == \"value\"", article(cel.FormatCELType(t)))
	}
	e := &Expression{text: text, reads: findReads(checked.NativeRep().Expr()), parsed: checked.NativeRep()}
	e.program, err = env.Program(checked, programOptions(&e.reads)...)
	if err != nil {
		return nil, fmt.Errorf("the CEL expression cannot be run: %w", err)
	}
	return e, nil
}

// String returns the original text.
func (e *Expression) String() string { return e.text }

// Match reports whether the expression is true for the cluster. An expression that fails, because a
// label is absent or it takes too long, is not true.
func (e *Expression) Match(c Cluster) bool {
	result, err := e.evaluate(c)
	return err == nil && result
}

// Explain says why the expression is not true for the cluster: because it is false, or why it
// fails. It returns "" if it is true.
func (e *Expression) Explain(c Cluster) string {
	result, err := e.evaluate(c)
	switch {
	case err != nil:
		return e.failure(err)
	case !result:
		return "is false"
	}
	return ""
}

// failure says where an evaluation failed, in which function, and why.
func (e *Expression) failure(err error) string {
	var failed *types.Err
	if !errors.As(err, &failed) {
		return err.Error()
	}
	where := ""
	if at := e.parsed.SourceInfo().GetStartLocation(failed.NodeID()); at.Line() > 0 {
		where = " at " + place(at)
	}
	if name := functionAt(e.parsed, failed.NodeID()); name != "" && symbol(name) == name {
		where += " in " + name + "()"
	}
	return "fails" + where + ": " + failed.Error()
}

var errTooLong = fmt.Errorf("takes too long: it costs more than %d", maxCost)

// evaluate returns the result for a cluster, remembered or computed.
func (e *Expression) evaluate(c Cluster) (bool, error) {
	if !e.reads.bounded {
		if known, ok := e.lookup(c); ok {
			return known.result, known.err
		}
	}
	result, _, err := e.run(c)
	return result, err
}

// run computes the result for a cluster, and remembers it if the expression is costly.
func (e *Expression) run(c Cluster) (result bool, cost int, err error) {
	if e.reads.bounded {
		return e.compute(c)
	}
	read := &reader{Cluster: c}
	result, cost, err = e.compute(read)
	if cost >= costly {
		e.memory.activate()
	}
	if e.memory.active() {
		e.keep(read, result, err)
	}
	return result, cost, err
}

func (e *Expression) compute(c Cluster) (result bool, cost int, err error) {
	s := subjects.Get().(*subject) //nolint:forcetypeassert // the pool holds nothing else
	s.cluster, s.cost = c, 0
	out, _, err := e.program.Eval(s)
	cost = s.cost
	s.cluster = nil
	subjects.Put(s)
	switch {
	case cost > maxCost:
		// The result must not be used: "or" and loops continue after a failure.
		return false, cost, errTooLong
	case err != nil:
		return false, cost, err
	}
	is, ok := out.(types.Bool)
	if !ok {
		return false, cost, errors.New("gives " + article(out.Type().TypeName()) + ", not true or false")
	}
	return bool(is), cost, nil
}

// UsesScores reports whether the expression reads scores.
func (e *Expression) UsesScores() bool { return e.reads.scores }

// UsesMetrics reports whether the expression reads metrics.
func (e *Expression) UsesMetrics() bool { return len(e.reads.metrics) > 0 }

// Metrics returns the names of the metrics that the expression reads, sorted, with "" for a name
// that the expression computes.
func (e *Expression) Metrics() []string { return e.reads.metrics }

// Keys returns the labels and claims that the result depends on, sorted; only says that it depends
// on nothing else. Then clusters with equal values of these have the same result, where it also
// counts which of them are absent, and whether there are any labels or claims at all.
func (e *Expression) Keys() (labels, claims []string, only bool) {
	if e.reads.other {
		return nil, nil, false
	}
	return e.reads.labels, e.reads.claims, true
}
