package enginetest

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/key"

// without is a key writer that leaves out one part.
type without struct {
	key.Writer
	part  string
	words bool
	seen  map[string]bool
}

// KeyWithout returns the key without one part, or the whole key if part is "-", and the names of
// all parts.
func KeyWithout(part string, words bool, write func(k key.Writer)) (text string, parts map[string]bool) {
	k := key.New()
	if words {
		k = key.OfWords()
	}
	parts = map[string]bool{}
	write(without{k, part, words, parts})
	return k.String(), parts
}

func (w without) has(part string) bool {
	w.seen[part] = true
	return part != w.part
}

// Text implements key.Writer.
func (w without) Text(part, text string) {
	if w.has(part) {
		w.Writer.Text(part, text)
	}
}

// Set implements key.Writer.
func (w without) Set(part string, texts []string) {
	if w.has(part) {
		w.Writer.Set(part, texts)
	}
}

// List implements key.Writer.
func (w without) List(part string, texts []string) {
	if w.has(part) {
		w.Writer.List(part, texts)
	}
}

// Words implements key.Writer.
func (w without) Words(part, text string) bool {
	return w.words && w.has(part) && w.Writer.Words(part, text)
}

// Sequence implements key.Writer.
func (w without) Sequence(part string, n int, write func(k key.Writer, i int)) {
	if w.has(part) {
		w.Writer.Sequence(part, n, func(_ key.Writer, i int) { write(w, i) })
	}
}

// Each implements key.Writer.
func (w without) Each(part string, n int, write func(k key.Writer, i int)) {
	if w.has(part) {
		w.Writer.Each(part, n, func(_ key.Writer, i int) { write(w, i) })
	}
}
