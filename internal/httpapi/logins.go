package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

const loginsPath = "/v1/logins"

// logins tells clients, before anybody is logged in, how people can.
type logins struct {
	api     *operation.API
	options []api.LoginOption
}

func (l *logins) routes() {
	operation.Register(l.api, operation.Declare(auth.AccessOpen, huma.Operation{
		OperationID: "list-logins", Method: http.MethodGet, Path: loginsPath, Tags: []string{"token"},
		Summary:     "List the issuers with which people can log in",
		Description: "It needs no token. A client sends people to the issuer (OpenID Connect, authorization code with PKCE), and sends the ID token that it gets for them as the bearer token.",
		Security:    []map[string][]string{{}},
	}), l.list)
}

type loginList struct {
	Items []api.LoginOption `json:"items"`
}

type loginsOutput struct {
	Body *loginList
}

func (l *logins) list(context.Context, *struct{}) (*loginsOutput, error) {
	return &loginsOutput{&loginList{Items: append([]api.LoginOption{}, l.options...)}}, nil
}
