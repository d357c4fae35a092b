package auth

// Access is what an operation does to objects, and so whose roles may ask for it.
// Each operation declares it, and the OpenAPI document shows it. Whether a role may,
// and for which namespaces, is asked in the operation, once it is known what the
// request is about; a test asks every operation as everybody.
type Access string

// The kinds of access.
const (
	// AccessRead is for administrators, editors and viewers.
	AccessRead Access = "read"
	// AccessReadReports is for those who read, and for agents of the cluster.
	AccessReadReports Access = "read-reports"
	// AccessWrite is for administrators and editors.
	AccessWrite Access = "write"
	// AccessReport is for administrators, editors and agents.
	AccessReport Access = "report"
	// AccessAdminister is for administrators.
	AccessAdminister Access = "administer"
)
