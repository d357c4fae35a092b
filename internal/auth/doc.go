// Package auth implements authentication and authorization: tokens and their roles,
// which objects each may read, write and refer to, and which parts of an object it may
// see. The API resolves the token of a request to an Identity, puts it into the context,
// and checks here before it reads or writes anything. The package knows nothing of HTTP.
package auth
