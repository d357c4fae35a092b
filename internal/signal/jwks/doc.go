// Package jwks reads the public keys of trusted issuers of tokens: their discovery document
// (OpenID Connect Discovery 1.0) and key set (RFC 7517). It keeps them for as long as an
// issuer cannot be reached, within limits.
package jwks
