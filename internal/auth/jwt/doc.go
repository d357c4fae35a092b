// Package jwt authenticates requests with a JSON Web Token (RFC 7519) of a trusted issuer, such as a CI system or a
// Kubernetes API server: it verifies the signature and the claims, and maps the claims to a role and namespaces. It
// contains no HTTP: the keys of issuers come through the interface Keys.
package jwt
