package auth

// Access is what an operation does to objects, and so which roles may call it. Each operation
// declares it, and it is shown in the OpenAPI document. Whether a role has access, and in which
// namespaces, is checked within the operation, once the objects are known; a test calls every
// operation as every role.
type Access string

// Access values.
const (
	// AccessRead is for administrators, editors and viewers.
	AccessRead Access = "read"
	// AccessReadReports is for administrators, editors, viewers, and agents of the cluster.
	AccessReadReports Access = "read-reports"
	// AccessWrite is for administrators and editors.
	AccessWrite Access = "write"
	// AccessReport is for administrators, editors and agents.
	AccessReport Access = "report"
	// AccessAdminister is for administrators.
	AccessAdminister Access = "administer"
)
