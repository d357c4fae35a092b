package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// members serves requests about the members of a cluster of embedded stores.
type members struct {
	api   *operation.API
	store Store
	audit *auditor
}

// memberKind stands for members in the audit log.
const memberKind api.Kind = "member"

// manageMembers is what the right to administer is needed for.
const manageMembers = "manage the members of the store"

func (m *members) routes() {
	add := operation.Administer(manageMembers, huma.Operation{
		OperationID: "add-member", Method: http.MethodPost, Path: "/v1/members", Tags: []string{"server"},
		Summary: "Add a server to the cluster of embedded stores", DefaultStatus: http.StatusCreated, MaxBodyBytes: m.api.MaxBody,
		Errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	})
	operation.Register(m.api, add, m.add)
	m.api.DescribeBody(add, m.api.Schema(api.MemberRequest{}), true)
	operation.Register(m.api, operation.Administer(manageMembers, huma.Operation{
		OperationID: "list-members", Method: http.MethodGet, Path: "/v1/members", Tags: []string{"server"},
		Summary: "List the servers of the cluster of embedded stores",
	}), m.list)
	operation.Register(m.api, operation.Administer(manageMembers, huma.Operation{
		OperationID: "remove-member", Method: http.MethodDelete, Path: "/v1/members/{name}", Tags: []string{"server"},
		Summary: "Remove a server from the cluster of embedded stores", Errors: []int{http.StatusConflict, http.StatusNotFound},
	}), m.remove)
}

type addMemberInput struct {
	Payload operation.Payload
}

type addMemberOutput struct {
	Status int
	Body   *api.AddedMember
}

func (m *members) add(ctx context.Context, in *addMemberInput) (*addMemberOutput, error) {
	var request api.MemberRequest
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	if _, err := store.ParsePeer(request.Name + "=" + request.URL); err != nil {
		return nil, problem.Invalid("url", "%s", err)
	}
	added, err := m.store.AddMember(ctx, request.Name, request.URL)
	if err != nil {
		return nil, memberProblem(err)
	}
	m.audit.names(ctx, api.Key{Kind: memberKind, Name: added.Name})
	peers := []string{}
	for _, other := range m.store.Members() {
		if other.ID != added.ID {
			peers = append(peers, other.Name+"="+other.URL)
		}
	}
	peers = append(peers, added.Name+"="+added.URL)
	return &addMemberOutput{Status: http.StatusCreated, Body: &api.AddedMember{StoreMember: added, ClusterPeers: strings.Join(peers, ",")}}, nil
}

type listMembersOutput struct {
	Body *api.MemberList
}

func (m *members) list(ctx context.Context, _ *struct{}) (*listMembersOutput, error) {
	return &listMembersOutput{&api.MemberList{Items: append([]api.StoreMember{}, m.store.Members()...)}}, nil
}

type removeMemberInput struct {
	Name string `path:"name" doc:"Name or ID of the member."`
}

func (m *members) remove(ctx context.Context, in *removeMemberInput) (*struct{}, error) {
	if err := m.store.RemoveMember(ctx, in.Name); err != nil {
		return nil, memberProblem(err)
	}
	m.audit.names(ctx, api.Key{Kind: memberKind, Name: in.Name})
	return nil, nil
}

// memberProblem converts an error of a membership change to a problem.
func memberProblem(err error) error {
	switch {
	case errors.Is(err, store.ErrNoMember):
		return problem.New(api.ProblemNotFound, "%s", err)
	case errors.Is(err, store.ErrMembership):
		return problem.New(api.ProblemConflict, "%s", err)
	}
	return err
}
