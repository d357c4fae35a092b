// Package jwks fetches the public keys of trusted issuers: their discovery document (OpenID Connect Discovery 1.0) and
// key set (RFC 7517). It keeps them while an issuer cannot be reached, within limits.
package jwks
