package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

type createTokenInput struct {
	Payload operation.Payload
}

// createdToken is the one answer that shows a secret.
type createdToken struct {
	auth.Token
	Text string `json:"token" doc:"The token to send as Authorization: Bearer. It is shown only here."`
}

type createTokenOutput struct {
	Status int
	Body   *createdToken
}

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (*createTokenOutput, error) {
	if err := auth.Of(ctx).MayAdminister(); err != nil {
		return nil, err
	}
	var request auth.TokenRequest
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	text, token, revision, err := auth.CreateToken(ctx, s.store, request, s.now())
	if err != nil {
		return nil, err
	}
	s.settle(ctx, revision, 0)
	token.Hash = nil
	return &createTokenOutput{Status: http.StatusCreated, Body: &createdToken{Token: token, Text: text}}, nil
}

type tokenList struct {
	Items []auth.Token `json:"items"`
}

type listTokensOutput struct {
	Body *tokenList
}

func (s *Server) listTokens(ctx context.Context, _ *struct{}) (*listTokensOutput, error) {
	if err := auth.Of(ctx).MayAdminister(); err != nil {
		return nil, err
	}
	tokens, err := auth.ListTokens(ctx, s.store)
	if errors.Is(err, store.ErrUnavailable) {
		tokens, err = s.sessions.Tokens()
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

func (s *Server) revokeToken(ctx context.Context, in *revokeTokenInput) (*struct{}, error) {
	if err := auth.Of(ctx).MayAdminister(); err != nil {
		return nil, err
	}
	revision, err := auth.RevokeToken(ctx, s.store, in.ID)
	if err != nil {
		return nil, err
	}
	s.settle(ctx, revision, 0)
	return nil, nil
}
