package expression

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// reads is what an expression reads of a cluster, according to its syntax.
type reads struct {
	labels  []string
	claims  []string
	other   bool
	scores  bool
	metrics []string // names; "" for one that is computed
	// bounded: every part runs at most once, and nothing is larger than the cluster's document and
	// the expression.
	bounded bool
}

// findReads analyzes an expression.
func findReads(root ast.Expr) reads {
	r := reads{bounded: true}
	r.visit(root)
	slices.Sort(r.labels)
	r.labels = slices.Compact(r.labels)
	slices.Sort(r.claims)
	r.claims = slices.Compact(r.claims)
	slices.Sort(r.metrics)
	r.metrics = slices.Compact(r.metrics)
	return r
}

// countLoops returns the number of loops in an expression: all, exists, filter and map.
func countLoops(root ast.Expr) int {
	n := 0
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			n++
		}
	}))
	return n
}

func (r *reads) visit(e ast.Expr) {
	if r.entry(e) {
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); name == clusterVariable || name == managedClusterVariable {
			r.other = true
		}
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand())
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.visit(element)
		}
	case ast.MapKind:
		for _, pair := range e.AsMap().Entries() {
			r.visit(pair.AsMapEntry().Key())
			r.visit(pair.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		r.bounded = false
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.visit(part)
		}
	default:
		// A constant reads nothing.
	}
}

func (r *reads) call(c ast.CallExpr) {
	switch c.FunctionName() {
	case scoresFunction:
		r.scores = true
	case metricFunction:
		name := ""
		if args := c.Args(); len(args) == 1 {
			name, _ = constant(args[0])
		}
		r.metrics = append(r.metrics, name)
	}
	if !boundedFunctions[c.FunctionName()] {
		r.bounded = false
	}
	if c.IsMemberFunction() {
		r.visit(c.Target())
	}
	for _, argument := range c.Args() {
		r.visit(argument)
	}
}

// entry records an expression that reads one label or claim by a constant key: labels.a,
// labels["a"], "a" in labels, has(labels.a).
func (r *reads) entry(e ast.Expr) bool {
	switch e.Kind() {
	case ast.SelectKind:
		return r.note(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if len(c.Args()) != 2 {
			return false
		}
		first, second := c.Args()[0], c.Args()[1]
		switch c.FunctionName() {
		case operators.Index:
			key, ok := constant(second)
			return ok && r.note(first, key)
		case operators.In:
			key, ok := constant(first)
			return ok && r.note(second, key)
		}
	default:
		// Other expressions do not read a single entry.
	}
	return false
}

func constant(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

func (r *reads) note(holder ast.Expr, key string) bool {
	switch {
	case isPath(holder, clusterVariable, "metadata", "labels"), isPath(holder, managedClusterVariable, "metadata", "labels"):
		r.labels = append(r.labels, key)
	case isPath(holder, clusterVariable, "spec", "claims"):
		r.claims = append(r.claims, key)
	default:
		return false
	}
	return true
}

// isPath reports whether an expression is variable.first.second.
func isPath(e ast.Expr, variable, first, second string) bool {
	for _, field := range []string{second, first} {
		if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().FieldName() != field {
			return false
		}
		e = e.AsSelect().Operand()
	}
	return e.Kind() == ast.IdentKind && e.AsIdent() == variable
}

// boundedFunctions take time linear in the size of their arguments, and return no more. Addition is
// not included, because it creates growing text.
var boundedFunctions = map[string]bool{
	operators.Conditional: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true,
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true, operators.In: true, operators.Index: true,
	operators.OptIndex: true, operators.OptSelect: true,
	"startsWith": true, "endsWith": true, "contains": true, "size": true, "int": true, "double": true,
	"lowerAscii": true, "upperAscii": true, "trim": true, "orValue": true,
	scoresFunction: true, metricFunction: true,
	"quantity": true, "isQuantity": true, "semver": true, "isSemver": true, "isLessThan": true, "isGreaterThan": true,
	"compareTo": true, "major": true, "minor": true, "patch": true,
}
