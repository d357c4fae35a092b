package division

import "fmt"

// NoCandidatesError says that there is nothing to choose from.
type NoCandidatesError struct {
	By string // what a constraint groups by, where no candidate is in a group
}

func (e *NoCandidatesError) Error() string {
	if e.By != "" {
		return "no cluster to choose from has a " + e.By
	}
	return "no cluster to choose from"
}

// TooFewGroupsError says that a constraint asks for more groups than there are.
type TooFewGroupsError struct {
	By    string // what the groups are
	Found int64
	Min   int64
}

func (e *TooFewGroupsError) Error() string {
	return fmt.Sprintf("%s: min_groups is %d, candidates are in %d", e.By, e.Min, e.Found)
}

// SpreadError says that no choice of clusters holds all spread constraints.
type SpreadError struct {
	Replicas int64 // that the chosen clusters share; 0 = there is no choice whatever they are
}

func (e *SpreadError) Error() string {
	if e.Replicas > 0 {
		return fmt.Sprintf("no division of %d replicas holds all spread constraints at once", e.Replicas)
	}
	return "no choice of the candidates holds all spread constraints at once"
}

// NoRoomError says that the candidates have too little room.
type NoRoomError struct {
	Room   int64 // replicas there is room for, on the roomiest choice found
	Wanted int64
	// By is what the constraint groups by that does not allow more clusters to be
	// used. It is empty where all candidates together have too little room.
	By string
	// Together says that the room is that of one region, because all replicas have to
	// be in one: of Region, where what runs is there.
	Together bool
	Region   string
}

func (e *NoRoomError) Error() string {
	if e.Region != "" {
		return fmt.Sprintf("has room for %d of %d replicas in region %s, where it runs", e.Room, e.Wanted, e.Region)
	}
	if e.Together {
		return fmt.Sprintf("has room for %d of %d replicas in one region", e.Room, e.Wanted)
	}
	if e.By != "" {
		return fmt.Sprintf("has room for %d of %d replicas on as many clusters as max_groups of %s allows", e.Room, e.Wanted, e.By)
	}
	return fmt.Sprintf("has room for %d of %d replicas", e.Room, e.Wanted)
}

// LimitsError says that the bounds on the replicas of single clusters leave no way
// to divide the replicas.
type LimitsError struct {
	Replicas int64
}

func (e *LimitsError) Error() string {
	return fmt.Sprintf("no division of %d replicas gives every cluster that is used what its limits ask for", e.Replicas)
}

// TooFewReplicasError says that there are fewer replicas than places that each
// need one.
type TooFewReplicasError struct {
	Replicas int64
	Needed   int64
	By       string // what the constraint groups by; empty: the least that any cluster takes
}

func (e *TooFewReplicasError) Error() string {
	if e.By == "" {
		return fmt.Sprintf("%d replicas are fewer than the %d that every cluster must have at least", e.Replicas, e.Needed)
	}
	return fmt.Sprintf("%d replicas cannot be in the %d groups that min_groups of %s asks for", e.Replicas, e.Needed, e.By)
}
