// Package auth says who may do what: tokens and their roles, which objects each may
// read, write and refer to, and what of an object it is shown. Whoever lets requests in
// finds out the Identity behind a token, puts it into the context, and asks here before
// anything is read or written. How requests arrive is not its concern.
package auth
