// Package expression holds conditions on a cluster written in CEL, the Common
// Expression Language. An expression sees the cluster twice: as `cluster`, with
// the names of the cluster's own document, and as `managedCluster`, in Open
// Cluster Management's shape, so that expressions written for it run unchanged.
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
	// maxText is the longest expression in bytes. It bounds the time to compile.
	maxText = 4096
	// maxLoops is how many loops an expression may have, and maxDepth how deep its
	// parts may be nested. The time to check types grows with the cube of either:
	// it would be half a minute for 200.
	maxLoops = 16
	maxDepth = 50
	// maxCost is what one evaluation may cost, in CEL's units. It is what Kubernetes
	// and Open Cluster Management allow.
	maxCost = 1_000_000
	// maxCompiled is how many compiled expressions are kept.
	maxCompiled = 1024
)

// Expression is a compiled condition. Make one with Compile. It may be used by
// any number of goroutines at once.
type Expression struct {
	text    string
	program cel.Program
	reads   reads
	parsed  *ast.AST // tells where in the text a part stands
}

// compiled remembers expressions by their text: each replica of each placement
// has the same few, and compiling takes a hundred times as long as evaluating.
var compiled = sync.OnceValues(func() (*lru.Cache[string, *Expression], error) {
	return lru.New[string, *Expression](maxCompiled)
})

// Compile reads an expression, which must give a boolean. The error says where
// the text is wrong and what would be right.
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
	// Of two that compiled the same text at once, both get the first one.
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

// String returns the text that was compiled.
func (e *Expression) String() string { return e.text }

// Match reports whether the expression is true for the cluster. One that fails,
// because a label is absent or it takes too long, is not true.
func (e *Expression) Match(c Cluster) bool {
	result, err := e.evaluate(c)
	return err == nil && result
}

// Explain says why the expression is not true for the cluster: that it is false,
// or why it fails. It returns "" where it is true.
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

func (e *Expression) evaluate(c Cluster) (bool, error) {
	s := subjects.Get().(*subject) //nolint:forcetypeassert // the pool holds nothing else
	s.cluster, s.cost = c, 0
	out, _, err := e.program.Eval(s)
	cost := s.cost
	s.cluster = nil
	subjects.Put(s)
	switch {
	case cost > maxCost:
		// Not what came out: "or" and loops go on after a failure.
		return false, errTooLong
	case err != nil:
		return false, err
	}
	result, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("gives " + article(out.Type().TypeName()) + ", not true or false")
	}
	return bool(result), nil
}

// UsesScores reports whether the expression reads scores, so that a new score
// may change its result.
func (e *Expression) UsesScores() bool { return e.reads.scores }

// UsesMetrics reports whether the expression reads metrics, so that a new value
// may change its result.
func (e *Expression) UsesMetrics() bool { return e.reads.metrics }

// Keys returns the labels and the claims that the result depends on, sorted, and
// true when it depends on nothing else. Clusters that agree in them, also in
// which of them are absent and in whether they have any label or claim at all,
// then have the same result.
func (e *Expression) Keys() (labels, claims []string, only bool) {
	if e.reads.other {
		return nil, nil, false
	}
	return e.reads.labels, e.reads.claims, true
}
