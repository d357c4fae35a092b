// Command exports lists what the packages below a folder export and no production code
// outside of the package uses: what only tests of others, or nobody, asks for.
//
//	exports DIR FOLDER
//
// DIR is the root of the module. Packages that are test code although they are no
// _test.go files count neither as users nor as something to be looked at: testCode lists
// them. What is exported all the same has its reason in exceptions. It fails where it
// lists anything, and where an exception is not needed any more.
//
// Left out are
//
//   - documents: structs with tags are read and written by reflection, and their names
//     stand in the OpenAPI document;
//   - the values of an enumeration: whoever uses some of them sees all;
//   - the fields of options: what need not be set has a default, which tests change;
//   - the fields of errors, and the methods that package errors calls.
package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir, folder := os.Args[1], os.Args[2]
	loaded, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedModule,
	}, "./...")
	if err != nil {
		fail(err)
	}
	if packages.PrintErrors(loaded) > 0 {
		os.Exit(1)
	}
	in := func(p *packages.Package, folders ...string) bool {
		return slices.ContainsFunc(folders, func(f string) bool {
			below := p.Module.Path + "/" + f
			return p.PkgPath == below || strings.HasPrefix(p.PkgPath, below+"/")
		})
	}
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return in(p, testCode...) })
	u := users{used: map[types.Object]bool{}}
	for _, p := range loaded {
		u.see(p)
	}
	unused := 0
	needed := map[string]bool{} // by exception
	for _, names := range exceptions {
		for _, full := range names {
			needed[full] = false
		}
	}
	for _, p := range loaded {
		if !in(p, folder) {
			continue
		}
		u.implement(p, loaded)
		for _, o := range exported(p) {
			if u.used[o.Object] {
				continue
			}
			full := strings.TrimPrefix(p.PkgPath, p.Module.Path+"/") + "." + o.name
			if _, excepted := needed[full]; excepted {
				needed[full] = true
				continue
			}
			at := p.Fset.Position(o.Pos())
			if file, err := filepath.Rel(dir, at.Filename); err == nil {
				at.Filename = file
			}
			fmt.Printf("%s: %s is exported, and no production code outside of package %s uses it\n", at, o.name, p.Name)
			unused++
		}
	}
	for full, yes := range needed {
		if !yes {
			fmt.Printf("%s needs no exception: production code uses it, or it is not exported\n", full)
			unused++
		}
	}
	if unused > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// users collects the objects that packages use of others.
type users struct{ used map[types.Object]bool }

// see records what a package uses of others, including the types of what it receives: a caller may keep the result of a
// function.
func (u *users) see(p *packages.Package) {
	for _, o := range p.TypesInfo.Uses {
		if o.Pkg() != nil && o.Pkg() != p.Types {
			u.use(o)
		}
	}
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) == 0 {
				return true
			}
			if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
				return true
			}
			if s, ok := p.TypesInfo.TypeOf(lit).Underlying().(*types.Struct); ok {
				for i := range s.NumFields() {
					if field := s.Field(i); field.Pkg() != p.Types {
						u.use(field)
					}
				}
			}
			return true
		})
	}
}

// use records an object, and the types that its own type names.
func (u *users) use(o types.Object) {
	switch x := o.(type) {
	case *types.Func:
		o = x.Origin()
	case *types.Var:
		o = x.Origin()
	}
	if u.used[o] {
		return
	}
	u.used[o] = true
	if _, ok := o.(*types.TypeName); !ok {
		u.hand(o.Type())
	}
}

// hand records the types that a caller gets.
func (u *users) hand(t types.Type) {
	switch t := t.(type) {
	case *types.Named:
		u.use(t.Origin().Obj())
		for arg := range t.TypeArgs().Types() {
			u.hand(arg)
		}
	case *types.Pointer:
		u.hand(t.Elem())
	case *types.Slice:
		u.hand(t.Elem())
	case *types.Array:
		u.hand(t.Elem())
	case *types.Map:
		u.hand(t.Key())
		u.hand(t.Elem())
	case *types.Signature:
		u.hand(t.Params())
		u.hand(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			u.hand(v.Type())
		}
	}
}

// implement records the methods by which the types of a package implement an interface of any package, because they are
// called through it.
func (u *users) implement(p *packages.Package, all []*packages.Package) {
	interfaces := map[*types.Interface]bool{}
	add := func(t types.Type) {
		if i, ok := t.Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
			interfaces[i] = true
		}
	}
	add(errorType)
	for _, q := range all {
		for _, o := range q.TypesInfo.Defs {
			if _, ok := o.(*types.TypeName); ok {
				add(o.Type())
			}
		}
		for _, t := range q.TypesInfo.Types { // including unnamed ones
			if t.IsType() {
				add(t.Type)
			}
		}
	}
	for _, q := range p.Types.Imports() {
		for _, name := range q.Scope().Names() {
			if o, ok := q.Scope().Lookup(name).(*types.TypeName); ok {
				add(o.Type())
			}
		}
	}
	for _, name := range p.Types.Scope().Names() {
		o, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || types.IsInterface(o.Type()) {
			continue
		}
		pointer := types.NewPointer(o.Type())
		for i := range interfaces {
			if !types.Implements(pointer, i) {
				continue
			}
			for m := range i.Methods() {
				if found, _, _ := types.LookupFieldOrMethod(pointer, true, p.Types, m.Name()); found != nil {
					u.used[found] = true
				}
			}
		}
	}
}

var errorType = types.NewInterfaceType([]*types.Func{
	types.NewFunc(token.NoPos, nil, "Error", types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(types.NewVar(token.NoPos, nil, "", types.Typ[types.String])), false)),
}, nil).Complete()

// named is an object with the name that readers know.
type named struct {
	types.Object
	name string
}

// exported returns the objects of a package that others could use.
func exported(p *packages.Package) []named {
	var out []named
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		typ, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !ok || !isType {
			if _, isConst := o.(*types.Const); !isConst || !ok {
				out = append(out, named{o, name})
			}
			continue
		}
		if !isDocument(typ) {
			out = append(out, named{o, name})
		}
		isError := types.Implements(types.NewPointer(typ), errorType)
		for _, m := range methods(p, typ) {
			if !isError || !slices.Contains([]string{"As", "Is", "Unwrap"}, m.Name()) {
				out = append(out, named{m, name + "." + m.Name()})
			}
		}
		if t, ok := typ.Underlying().(*types.Struct); ok && !isError && !strings.HasSuffix(name, "Options") {
			for i := range t.NumFields() {
				if f := t.Field(i); f.Exported() && !f.Embedded() && t.Tag(i) == "" {
					out = append(out, named{f, name + "." + f.Name()})
				}
			}
		}
	}
	return out
}

// methods are the exported methods of a type: its own, and those of the unexported types of
// its package that it embeds.
func methods(p *packages.Package, t *types.Named) []*types.Func {
	var out []*types.Func
	for selection := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		m, ok := selection.Obj().(*types.Func)
		if !ok || !m.Exported() || m.Pkg() != p.Types {
			continue
		}
		m = m.Origin()
		of := m.Signature().Recv().Type()
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		owner, ok := of.(*types.Named)
		if own := len(selection.Index()) == 1; own || ok && !owner.Obj().Exported() && !types.IsInterface(owner) {
			out = append(out, m)
		}
	}
	return out
}

// isDocument reports whether a type is a struct with tags.
func isDocument(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		if s.Tag(i) != "" {
			return true
		}
	}
	return false
}
