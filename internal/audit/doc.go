// Package audit keeps the audit log: one line of JSON for each write through the API, and for each
// request that was refused. It contains no secrets: objects appear as digests, and credentials as
// the ID of their token.
package audit
