package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var (
	// ErrNoMember is returned for an unknown member.
	ErrNoMember = errors.New("there is no such member")

	// ErrMembership is returned for a membership change that is impossible or would put the cluster
	// at risk.
	ErrMembership = errors.New("this change of the cluster's members is not possible")
)

// Members returns the embedded members of the cluster. It is empty for a single member and with an
// external cluster.
func (s *Store) Members() []api.StoreMember {
	if s.member == nil || s.options.alone() {
		return nil
	}
	leader := s.member.Server.Leader()
	var list []api.StoreMember
	for _, m := range s.member.Server.Cluster().Members() {
		list = append(list, toMember(m, leader))
	}
	slices.SortFunc(list, func(a, b api.StoreMember) int { return strings.Compare(a.Name+"="+a.URL, b.Name+"="+b.URL) })
	return list
}

func toMember(m *membership.Member, leader types.ID) api.StoreMember {
	return api.StoreMember{
		ID: m.ID.String(), Name: m.Name, URL: strings.Join(m.PeerURLs, ","), Voter: !m.IsLearner, Joined: wasReady(m), Leader: m.ID == leader,
	}
}

// AddMember adds a server to the cluster. It becomes a voter only once it has caught up, so that it
// cannot cost the others their quorum.
func (s *Store) AddMember(ctx context.Context, name, address string) (api.StoreMember, error) {
	cluster, err := s.clusterToChange()
	if err != nil {
		return api.StoreMember{}, err
	}
	p, err := ParsePeer(name + "=" + address)
	if err != nil {
		return api.StoreMember{}, fmt.Errorf("%w: %w", ErrMembership, err)
	}
	if scheme, _, _ := strings.Cut(p.URL, ":"); scheme != cluster.scheme() {
		return api.StoreMember{}, fmt.Errorf("%w: %s: the members of this cluster have %s addresses", ErrMembership, p, cluster.scheme())
	}
	server := s.member.Server
	for _, m := range server.Cluster().Members() {
		if m.Name == p.Name || slices.Contains(m.PeerURLs, p.URL) {
			return api.StoreMember{}, fmt.Errorf("%w: there is a member %s already: remove it first if it is to be replaced", ErrMembership, memberList([]*membership.Member{m}))
		}
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return api.StoreMember{}, err
	}
	now := time.Now()
	added := membership.NewMemberAsLearner(p.Name, types.URLs{*u}, clusterToken, &now)
	err = s.change(ctx, func(ctx context.Context) error {
		_, err := server.AddMember(ctx, *added)
		return err
	})
	if err != nil {
		return api.StoreMember{}, fmt.Errorf("add %s: %w", p, err)
	}
	return toMember(added, 0), nil
}

// RemoveMember removes a server from the cluster, by its name or member ID. If it is running, it
// exits.
func (s *Store) RemoveMember(ctx context.Context, name string) error {
	if _, err := s.clusterToChange(); err != nil {
		return err
	}
	server := s.member.Server
	members := server.Cluster().Members()
	i := slices.IndexFunc(members, func(m *membership.Member) bool { return m.Name == name || m.ID.String() == name })
	if i < 0 {
		return fmt.Errorf("%w: %q is not one of %s", ErrNoMember, name, memberList(members))
	}
	if len(members) == 1 {
		return fmt.Errorf("%w: %s is the last one: stop its server instead", ErrMembership, memberList(members))
	}
	err := s.change(ctx, func(ctx context.Context) error {
		_, err := server.RemoveMember(ctx, uint64(members[i].ID))
		return err
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", memberList(members[i:i+1]), err)
	}
	return nil
}

// clusterToChange returns the cluster if its members may be changed.
func (s *Store) clusterToChange() (*Cluster, error) {
	if s.member == nil || s.options.alone() {
		return nil, fmt.Errorf("%w: the store of this server is not one of a cluster (--cluster-peers)", ErrMembership)
	}
	return s.options.Cluster, s.leaderless()
}

// changePatience is how long a change waits for members that have just connected: etcd counts those
// that have been connected for five seconds.
const changePatience = 10 * time.Second

// change executes a membership change.
func (s *Store) change(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.RequestTimeout+changePatience)
	defer cancel()
	for deadline := time.Now().Add(changePatience); ; {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, etcderrors.ErrUnhealthy), errors.Is(err, etcderrors.ErrNotEnoughStartedMembers):
			if time.Now().Before(deadline) && again(ctx, err) == nil {
				continue
			}
			return fmt.Errorf("%w: afterwards, too few of the members that answer would be left for a majority: start or remove those that do not answer first", ErrMembership)
		case errors.Is(err, membership.ErrTooManyLearners):
			return fmt.Errorf("%w: another new member has not caught up yet: start it, wait until it votes, or remove it", ErrMembership)
		case errors.Is(err, membership.ErrPeerURLexists), errors.Is(err, membership.ErrIDExists):
			return fmt.Errorf("%w: there is one at this address already", ErrMembership)
		case errors.Is(err, membership.ErrIDRemoved), errors.Is(err, membership.ErrIDNotFound):
			return fmt.Errorf("%w: it has been removed", ErrNoMember)
		}
		return classify(err, true)
	}
}
