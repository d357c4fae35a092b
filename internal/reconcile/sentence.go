package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"

// sentences say why clusters do not fit, for those that share a view: one for each wording, by
// engine.Query.Wording.
type sentences map[string]*sentence

// sentence is one of them, for a version of the basis.
type sentence struct {
	wording string
	query   *placement.Query // of any user
	users   int
	text    string
	version int
}

// join returns the sentence for a query.
func (s *sentences) join(q *placement.Query) *sentence {
	wording := q.Wording()
	one, ok := (*s)[wording]
	if !ok {
		if *s == nil {
			*s = sentences{}
		}
		one = &sentence{wording: wording, query: q}
		(*s)[wording] = one
	}
	one.users++
	return one
}

func (s *sentences) leave(one *sentence) {
	if one.users--; one.users == 0 {
		delete(*s, one.wording)
	}
}

// tell returns the current sentence.
func (s *sentence) tell(p *basis) string {
	if s.version != p.version {
		s.version = p.version
		s.text = placement.Sentence(p.fleet, s.query, p.others())
	}
	return s.text
}
