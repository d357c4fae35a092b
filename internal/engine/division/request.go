package division

import "math"

const (
	// Unlimited is the Max of a candidate or constraint without a maximum.
	Unlimited = math.MaxInt64
	// Unknown is the Free of a cluster that does not report its amounts: anything fits.
	Unknown = -1
)

// Mode is how replicas are divided.
type Mode uint8

// Modes.
const (
	// Duplicate gives every chosen cluster all replicas.
	Duplicate Mode = iota
	// Static divides by the weights of the clusters.
	Static
	// Dynamic divides by the room of the clusters.
	Dynamic
	// Aggregate uses as few clusters as have enough room.
	Aggregate
	// Centralize fills the best site first.
	Centralize
	// Discrete divides by the room of sites, by the largest remainder method.
	Discrete
)

// Candidate is a cluster that may get replicas.
type Candidate struct {
	Row      int32 // the caller's index into Groups.Of; unique
	Rank     int32 // position in name order among all clusters; unique
	Tier     int32 // overflow tier; 0 = the group itself
	Present  bool  // part of the present binding
	Assigned int64 // current replicas
	Free     int64 // additional replicas that fit, or Unknown
	Weight   int64 // weight, for Static; score, for Centralize and Discrete
	Min      int64 // minimum number of replicas if it is used; 0 = none
	Max      int64 // maximum number of replicas, or Unlimited
}

// Groups assigns rows to groups.
type Groups struct {
	Names   []string
	Of      []int32           // group by row; -1 = none
	Several map[int32][]int32 // all groups of the rows that are in more than one
}

// Constraint limits over how many groups the clusters with replicas are spread.
type Constraint struct {
	By     string // the grouping, for messages: "region"
	Min    int64
	Max    int64   // or Unlimited
	Groups *Groups // nil: every cluster is its own group
}

// Request describes what to divide.
type Request struct {
	Replicas    int64
	Replicated  bool // false: every chosen cluster gets a copy, counted as 0
	Mode        Mode
	Constraints []Constraint
	Fresh       bool // divide all replicas anew, not only the difference to the current ones
	Descending  bool // ties between equal claims go to the later name
	// Refill moves replicas from overflow tiers back to room in earlier ones.
	Refill bool
	Empty  bool // keep chosen clusters that get nothing, with 0
	// Bare says that replicas need no resources. With 0 replicas, the workload is then treated like
	// one that is not replicated: if it was on no cluster, it goes to all chosen clusters.
	Bare bool
	// Regions, if set, are the regions of which one must have all replicas. For Centralize and
	// Discrete.
	Regions *Groups
}

// maxVotes caps room and weights, so that sums do not overflow. It exceeds any realistic number of
// replicas.
const maxVotes = 1 << 44
