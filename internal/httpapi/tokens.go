package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// tokens serves requests about tokens.
type tokens struct {
	api      *operation.API
	store    Store
	sessions *auth.Sessions
	waits    *decisionWaiter
	audit    *auditor
	now      func() time.Time
}

// manageTokens is what the right to administer is needed for.
const manageTokens = "manage tokens"

func (t *tokens) routes() {
	create := operation.MayEndToken(operation.Administer(manageTokens, huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/v1/tokens", Tags: []string{"token"},
		Summary: "Create a token", DefaultStatus: http.StatusCreated, MaxBodyBytes: t.api.MaxBody,
		Errors: []int{http.StatusUnprocessableEntity},
	}))
	operation.Register(t.api, create, t.createToken)
	t.api.DescribeBody(create, t.api.Schema(auth.TokenRequest{}), true)
	operation.Register(t.api, operation.Administer(manageTokens, huma.Operation{
		OperationID: "list-tokens", Method: http.MethodGet, Path: "/v1/tokens", Tags: []string{"token"},
		Summary: "List the tokens, without their secrets",
	}), t.listTokens)
	operation.Register(t.api, operation.Administer(manageTokens, huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: "/v1/tokens/{id}", Tags: []string{"token"},
		Summary: "Revoke a token", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}), t.revokeToken)
}

type createTokenInput struct {
	Payload operation.Payload
}

// createdToken is the only response that contains the secret.
type createdToken struct {
	auth.Token
	Text string `json:"token" doc:"The token to send as Authorization: Bearer. It is shown only here."`
}

type createTokenOutput struct {
	Status int
	Body   *createdToken
}

func (t *tokens) createToken(ctx context.Context, in *createTokenInput) (*createTokenOutput, error) {
	var request auth.TokenRequest
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	if auth.Of(ctx).TokenID == "" {
		if err := auth.KeepsAdministrator(ctx, t.store, request, t.sessions.Roles(), t.now()); err != nil {
			return nil, err
		}
	}
	text, token, revision, err := auth.CreateToken(ctx, t.store, request, t.sessions.Roles(), t.now())
	if err != nil {
		return nil, err
	}
	t.audit.names(ctx, api.Key{Kind: auth.KindToken, Name: token.ID})
	t.waits.await(ctx, revision, 0)
	token.Hash = nil
	return &createTokenOutput{Status: http.StatusCreated, Body: &createdToken{Token: token, Text: text}}, nil
}

type tokenList struct {
	Items []auth.Token `json:"items"`
}

type listTokensOutput struct {
	Body *tokenList
}

func (t *tokens) listTokens(ctx context.Context, _ *struct{}) (*listTokensOutput, error) {
	tokens, err := auth.ListTokens(ctx, t.store)
	if errors.Is(err, store.ErrUnavailable) {
		tokens, err = t.sessions.Tokens()
	}
	if err != nil {
		return nil, err
	}
	list := &tokenList{Items: []auth.Token{}}
	for _, token := range tokens {
		token.Hash = nil
		list.Items = append(list.Items, token)
	}
	return &listTokensOutput{list}, nil
}

type revokeTokenInput struct {
	ID string `path:"id" doc:"Part before the dot of the token's text."`
}

func (t *tokens) revokeToken(ctx context.Context, in *revokeTokenInput) (*struct{}, error) {
	revision, err := auth.RevokeButLast(ctx, t.store, auth.Of(ctx), in.ID, t.now())
	if err != nil {
		return nil, err
	}
	t.audit.names(ctx, api.Key{Kind: auth.KindToken, Name: in.ID})
	t.waits.await(ctx, revision, 0)
	return nil, nil
}
