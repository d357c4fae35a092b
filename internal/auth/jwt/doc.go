// Package jwt lets requests in that carry a JSON Web Token of a trusted issuer (RFC 7519),
// such as a CI system or a Kubernetes API server: it checks the signature and the claims,
// and maps the claims to a role and namespaces. It knows nothing of HTTP: the keys of
// issuers come through the interface Keys.
package jwt
