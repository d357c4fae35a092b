package division

import "fmt"

// NoCandidatesError says that there is nothing to choose from.
type NoCandidatesError struct {
	by string // what a constraint groups by, where no candidate is in a group
}

func (e *NoCandidatesError) Error() string {
	if e.by != "" {
		return "no cluster to choose from has a " + e.by
	}
	return "no cluster to choose from"
}

// tooFewGroupsError says that a constraint asks for more groups than there are.
type tooFewGroupsError struct {
	by    string // what the groups are
	found int64
	min   int64
}

func (e *tooFewGroupsError) Error() string {
	return fmt.Sprintf("%s: min_groups is %d, candidates are in %d", e.by, e.min, e.found)
}

// spreadError says that no choice of clusters holds all spread constraints.
type spreadError struct {
	replicas int64 // that the chosen clusters share; 0 = there is no choice whatever they are
}

func (e *spreadError) Error() string {
	if e.replicas > 0 {
		return fmt.Sprintf("no division of %d replicas holds all spread constraints at once", e.replicas)
	}
	return "no choice of the candidates holds all spread constraints at once"
}

// NoRoomError says that the candidates have too little room.
type NoRoomError struct {
	Room   int64 // replicas there is room for, on the roomiest choice found
	Wanted int64
	// by is what the constraint groups by that does not allow more clusters to be
	// used. It is empty where all candidates together have too little room.
	by string
	// together says that the room is that of one region, because all replicas have to
	// be in one: of Region, where what runs is there.
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

// limitsError says that the bounds on the replicas of single clusters leave no way
// to divide the replicas.
type limitsError struct {
	replicas int64
}

func (e *limitsError) Error() string {
	return fmt.Sprintf("no division of %d replicas gives every cluster that is used what its limits ask for", e.replicas)
}

// tooFewReplicasError says that there are fewer replicas than places that each
// need one.
type tooFewReplicasError struct {
	replicas int64
	needed   int64
	by       string // what the constraint groups by; empty: the least that any cluster takes
}

func (e *tooFewReplicasError) Error() string {
	if e.by == "" {
		return fmt.Sprintf("%d replicas are fewer than the %d that every cluster must have at least", e.replicas, e.needed)
	}
	return fmt.Sprintf("%d replicas cannot be in the %d groups that min_groups of %s asks for", e.replicas, e.needed, e.by)
}
