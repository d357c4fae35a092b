package division

import "math"

const (
	// Unlimited is the Max of a candidate or constraint without an upper bound.
	Unlimited = math.MaxInt64
	// Unknown is the Free of a cluster that does not report its amounts: it has
	// room for anything.
	Unknown = -1
)

// Mode says how replicas are divided.
type Mode uint8

// The modes.
const (
	// Duplicate gives every chosen cluster all replicas.
	Duplicate Mode = iota
	// Static divides by the weights of the clusters.
	Static
	// Dynamic divides by the room that the clusters have.
	Dynamic
	// Aggregate takes as few clusters as there is room in.
	Aggregate
	// Centralize fills the best site first.
	Centralize
	// Discrete divides by the room that sites have, with the largest remainder.
	Discrete
)

// Candidate is a cluster that may get replicas.
type Candidate struct {
	Row      int32 // the caller's handle: index into Groups.Of; unique
	Rank     int32 // position of the name among all clusters; unique
	Tier     int32 // overflow tier; 0 = the group itself
	Present  bool  // part of the present binding
	Assigned int64 // replicas it has now
	Free     int64 // replicas it has room for in addition, or Unknown
	Weight   int64 // its weight, for Static; how good it is, for Centralize and Discrete
	Min      int64 // replicas it has at least where it is used; 0 = no bound
	Max      int64 // replicas it has at most, or Unlimited
}

// Groups says which clusters belong together, by row.
type Groups struct {
	Names   []string
	Of      []int32           // group by row; -1 = none
	Several map[int32][]int32 // all groups of the rows that are in more than one
}

// Constraint bounds over how many groups the clusters with replicas are spread.
type Constraint struct {
	By     string // what the groups are, for messages: "region"
	Min    int64
	Max    int64   // or Unlimited
	Groups *Groups // nil: every cluster is its own group
}

// Request is what is to be divided.
type Request struct {
	Replicas    int64
	Replicated  bool // false: every chosen cluster gets a copy, counted as 0
	Mode        Mode
	Constraints []Constraint
	Fresh       bool // divide anew, not only the difference to what is held
	Descending  bool // of equal claims to a replica the later name has the better
	// Refill lets replicas in overflow tiers give way to room in those before.
	Refill bool
	Empty  bool // chosen clusters that get nothing stay, with 0
	// Bare says that replicas need nothing. Without any the workload is then like one
	// that is not replicated, and is on all chosen clusters where it was on none.
	Bare bool
	// Regions, where given, are those of which one is to have all replicas. For
	// Centralize and Discrete.
	Regions *Groups
}

// maxVotes is what room and weights are cut to, so that sums of them do not
// overflow. More replicas than that nobody has.
const maxVotes = 1 << 44
