package httpapi

import (
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// entityTag returns the ETag for the revision of an object.
func entityTag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// tagList is a parsed If-Match or If-None-Match header (RFC 9110, section 13.1).
type tagList struct {
	present bool
	any     bool
	tags    []string // opaque tags without quotes; weak tags start with W/
}

func parseTags(name, header string) (tagList, error) {
	header = strings.TrimSpace(header)
	switch header {
	case "":
		return tagList{}, nil
	case "*":
		return tagList{present: true, any: true}, nil
	}
	list := tagList{present: true}
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		opaque, weak := strings.CutPrefix(part, "W/")
		if len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' || strings.Contains(opaque[1:len(opaque)-1], `"`) {
			return tagList{}, problem.New(api.ProblemMalformed, "%s: %q is not an entity tag: write \"<resource_version>\" in double quotes, or *", name, part)
		}
		opaque = opaque[1 : len(opaque)-1]
		if weak {
			opaque = "W/" + opaque
		}
		list.tags = append(list.tags, opaque)
	}
	return list, nil
}

// shows reports whether the list contains the revision, by weak comparison as required for
// If-None-Match.
func (l tagList) shows(revision int64) bool {
	if l.any {
		return true
	}
	want := strconv.FormatInt(revision, 10)
	for _, tag := range l.tags {
		if strings.TrimPrefix(tag, "W/") == want {
			return true
		}
	}
	return false
}

// precondition is what a write requires of the object that it replaces.
type precondition struct {
	match, noneMatch tagList
}

func parsePrecondition(ifMatch, ifNoneMatch string) (precondition, error) {
	match, err := parseTags("If-Match", ifMatch)
	if err != nil {
		return precondition{}, err
	}
	noneMatch, err := parseTags("If-None-Match", ifNoneMatch)
	if err != nil {
		return precondition{}, err
	}
	return precondition{match: match, noneMatch: noneMatch}, nil
}

// check compares with the stored object. A tag matches as long as the user-written part is the same
// as at that revision: a later change of the status does not matter.
func (p precondition) check(current *stored) error {
	exists := current != nil
	if p.match.present {
		holds := exists && p.match.any
		for _, tag := range p.match.tags {
			revision, err := strconv.ParseInt(tag, 10, 64)
			if exists && err == nil && current.specRevision <= revision && revision <= current.revision {
				holds = true
			}
		}
		if !holds && !exists {
			return problem.New(api.ProblemObjectMissing, "If-Match: the object does not exist")
		}
		if !holds {
			return problem.New(api.ProblemObjectChanged, "If-Match: the object has changed since: its resource_version is now %d", current.revision)
		}
	}
	// Whoever creates a cluster that the server has only declared adopts it.
	adopts := exists && p.noneMatch.any && current.object != nil && current.object.Meta().Declared
	if p.noneMatch.present && exists && !adopts && p.noneMatch.shows(current.revision) {
		return problem.New(api.ProblemObjectExists, "If-None-Match: the object exists already")
	}
	return nil
}
