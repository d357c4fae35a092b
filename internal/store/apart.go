package store

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

const (
	// apartInterval is how often the leading server looks whether its member leads the cluster.
	apartInterval = 500 * time.Millisecond
	// apartTimeout limits a handover of the cluster, during which nothing is written.
	apartTimeout = 2 * time.Second
	// apartPause is how long the server waits after a handover that failed.
	apartPause = time.Minute
	// apartPoll is how often a handover looks whether it is complete.
	apartPoll = 2 * time.Millisecond
)

// keepApart keeps the embedded member of the leading server from leading the cluster of members.
//
// If both leaders died at once, nobody would lead for longer: after the members have elected a new
// leader, it renews the leases of all servers, also that of the dead one, because it does not know
// when they were renewed last. And if both stopped at once, the next server could not write while
// the members hand over.
func (s *Store) keepApart() {
	for pause := apartInterval; backoff.Wait(s.ctx, pause); {
		pause = apartInterval
		if !s.term.Load().isOver() && !s.handOverCluster(s.ctx) {
			pause = apartPause
		}
	}
}

// handOverCluster makes another member lead the cluster of members if the own one does, and reports
// whether that may be tried again soon.
func (s *Store) handOverCluster(ctx context.Context) bool {
	if s.member == nil || s.member.Server.Leader() != s.member.Server.MemberID() {
		return true
	}
	server := s.member.Server
	ctx, cancel := context.WithTimeout(ctx, apartTimeout)
	defer cancel()
	to := s.otherVoter(ctx)
	if to == nil {
		return true
	}
	if err := moveLeader(ctx, server, to.ID); err != nil {
		s.options.Logger.Warn("the embedded store of the leading server leads the cluster of stores as well, and could not hand it over: if this server dies now, the next one takes over later",
			"to", to.Name, "error", err)
		return false
	}
	s.options.Logger.Info("another embedded store now leads the cluster of stores", "member", to.Name)
	return true
}

// moveLeader makes another member lead, and waits until the members have elected a new leader. etcd
// itself looks only every tick.
func moveLeader(ctx context.Context, server *etcdserver.EtcdServer, to types.ID) error {
	before := server.Term()
	ctx, done := context.WithCancel(ctx)
	moved := make(chan error, 1)
	go func() { moved <- server.MoveLeader(ctx, uint64(server.MemberID()), uint64(to)) }()
	for server.Term() == before || server.Leader() == 0 {
		if !backoff.Wait(ctx, apartPoll) {
			break
		}
	}
	done()
	if err := <-moved; server.Term() == before {
		return err
	}
	return nil
}

// otherVoter returns the member of the server that leads last of all that are alive, or nil: two
// members have no majority without this one.
func (s *Store) otherVoter(ctx context.Context) *membership.Member {
	candidates, err := s.Candidates(ctx)
	if err != nil {
		return nil // nothing can be handed over either
	}
	voters := map[string]*membership.Member{}
	for _, m := range s.member.Server.Cluster().Members() {
		if !m.IsLearner {
			voters[m.Name] = m
		}
	}
	if len(voters) < 3 {
		return nil
	}
	for _, c := range slices.Backward(candidates) {
		if m := voters[c.Name]; m != nil && m.ID != s.member.Server.MemberID() {
			return m
		}
	}
	return nil
}
