package division

import "fmt"

// NoCandidatesError says that there are no candidates.
type NoCandidatesError struct {
	by string // the grouping of a constraint, if no candidate is in a group
}

func (e *NoCandidatesError) Error() string {
	if e.by != "" {
		return "no cluster to choose from has a " + e.by
	}
	return "no cluster to choose from"
}

// tooFewGroupsError says that a constraint requires more groups than there are.
type tooFewGroupsError struct {
	by    string // the grouping
	found int64
	min   int64
}

func (e *tooFewGroupsError) Error() string {
	return fmt.Sprintf("%s: min_groups is %d, candidates are in %d", e.by, e.min, e.found)
}

// spreadError says that no choice of clusters meets all spread constraints.
type spreadError struct {
	replicas int64 // replicas to divide; 0 = there is no choice, whatever the replicas
}

func (e *spreadError) Error() string {
	if e.replicas > 0 {
		return fmt.Sprintf("no division of %d replicas satisfies all spread constraints at once", e.replicas)
	}
	return "no choice of the candidates satisfies all spread constraints at once"
}

// NoRoomError says that the candidates lack room.
type NoRoomError struct {
	Room   int64 // replicas that fit, on the roomiest choice found
	Wanted int64
	// by is the grouping of the constraint that prevents more clusters from being used. It is empty
	// if all candidates together lack room.
	by string
	// together says that the room is that of one region, because all replicas must be in the same
	// one: in Region, if replicas run there.
	together bool
	Region   string
}

func (e *NoRoomError) Error() string {
	if e.Region != "" {
		return fmt.Sprintf("has room for %d of %d replicas in region %s, where it runs", e.Room, e.Wanted, e.Region)
	}
	if e.together {
		return fmt.Sprintf("has room for %d of %d replicas in one region", e.Room, e.Wanted)
	}
	if e.by != "" {
		return fmt.Sprintf("has room for %d of %d replicas on as many clusters as max_groups of %s allows", e.Room, e.Wanted, e.by)
	}
	return fmt.Sprintf("has room for %d of %d replicas", e.Room, e.Wanted)
}

// limitsError says that the limits on single clusters prevent any division.
type limitsError struct {
	replicas int64
}

func (e *limitsError) Error() string {
	return fmt.Sprintf("no division of %d replicas satisfies the limits of every cluster that is used", e.replicas)
}

// tooFewReplicasError says that there are fewer replicas than places that each need one.
type tooFewReplicasError struct {
	replicas int64
	needed   int64
	by       string // the grouping of the constraint; empty: the lowest minimum of any cluster
}

func (e *tooFewReplicasError) Error() string {
	if e.by == "" {
		return fmt.Sprintf("%d replicas are fewer than the %d that every cluster must have at least", e.replicas, e.needed)
	}
	return fmt.Sprintf("%d replicas cannot be in the %d groups that min_groups of %s asks for", e.replicas, e.needed, e.by)
}
