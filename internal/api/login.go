package api

// LoginOption is an issuer with which people can log in.
type LoginOption struct {
	Name     string   `json:"name" doc:"Name of the issuer."`
	Issuer   string   `json:"issuer" doc:"URL of the issuer. Its endpoints are in the document at /.well-known/openid-configuration under it."`
	ClientID string   `json:"client_id" doc:"ID of the public client at the issuer."`
	Scopes   []string `json:"scopes" doc:"Scopes to request, openid among them."`
}
