package arktostest

// Differences are the cases that are decided otherwise on purpose, by id, with the
// reason. One that is not in the list agrees in all that it tells.
var Differences = map[string]string{}

// Inexpressible are the cases that no simulation can be asked about, by id, with
// the reason.
var Inexpressible = map[string]string{
	"A091": "a workload has replicas of one sort, so one flavor is chosen on a site; the arithmetic is tried by itself",
	"A092": "as A091",
	"A093": "as A091",
	"A123": "what is pushed for a region that nobody registered is refused, and never reaches a decision",
}
