package auth

// Access is what an operation does to objects, and so which roles may call it: mostly the verb that
// one of the role's rules must allow. The constants name the built-in roles that have it. Each
// operation declares its access, and it is shown in the OpenAPI document. Whether a role has access, and in which
// namespaces, is checked within the operation, once the objects are known; a test calls every
// operation as every role.
type Access string

// Access values.
const (
	// AccessOpen is for everybody, without a token.
	AccessOpen Access = "open"
	// AccessRead is for administrators, editors and viewers.
	AccessRead Access = "read"
	// AccessReadReports is for administrators, editors, viewers, and agents of the cluster.
	AccessReadReports Access = "read-reports"
	// AccessWrite is for administrators and editors.
	AccessWrite Access = "write"
	// AccessDelete is for administrators and editors.
	AccessDelete Access = "delete"
	// AccessReport is for administrators, editors and agents.
	AccessReport Access = "report"
	// AccessAdminister is for administrators.
	AccessAdminister Access = "administer"
)
