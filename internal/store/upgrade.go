package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A program opens a store with the format of the previous version and keeps writing that format, so
// that both versions can run side by side, and the program can be downgraded. The upgrade ends when
// the store gets the new format: after all servers have been able to read it for some time, or when
// an operator requests it.

// OlderServerError says that the program of a running server cannot read the newest format.
type OlderServerError struct{ Server Candidate }

// Error implements error.
func (e *OlderServerError) Error() string {
	return fmt.Sprintf("the server %q at %s (version %s) reads formats of the store up to %d, not %d: upgrade it or stop it first",
		e.Server.Name, e.Server.URL, e.Server.Version, e.Server.Format, formatVersion)
}

// FinishUpgrade switches the store to the newest format. Programs that do not know it can no longer
// open the store. It returns an *OlderServerError if such a server is running.
func (s *Store) FinishUpgrade(ctx context.Context) error {
	for {
		if err := s.raiseFormat(ctx); err != nil || s.written() == formatVersion {
			return err
		}
	}
}

// raiseFormat starts the newest format, unless there is a server that cannot read it. It returns
// nil if another server was faster, or a server has started in the meantime. further are additional
// conditions.
func (s *Store) raiseFormat(ctx context.Context, further ...clientv3.Cmp) error {
	bounded, cancel := s.requestContext(ctx)
	defer cancel()
	resp, err := s.client.Txn(bounded).Then(clientv3.OpGet(formatKey), clientv3.OpGet(candidatePrefix, clientv3.WithPrefix())).Commit()
	if err != nil {
		return fmt.Errorf("read which servers there are: %w", classify(err, false))
	}
	format := resp.Responses[0].GetResponseRange().GetKvs()
	if err := s.sawFormat(format); err != nil || s.written() == formatVersion {
		return err
	}
	if len(format) == 0 {
		return fmt.Errorf("%w: it could not be set up, and has to be opened again", ErrUnavailable)
	}
	if older := olderServers(parseCandidates(resp.Responses[1].GetResponseRange().GetKvs())); len(older) > 0 {
		return &OlderServerError{older[0]}
	}
	ifs := append([]clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(formatKey), "=", format[0].ModRevision),
		clientv3.Compare(clientv3.CreateRevision(candidatePrefix), "<", resp.Header.Revision+1).WithPrefix(),
	}, further...)
	raised, err := s.commit(ctx, 0, true, func(t clientv3.Txn) clientv3.Txn { return t.If(ifs...).Then(putFormat()) })
	if err != nil {
		return fmt.Errorf("set the format of the store: %w", err)
	}
	if raised.Succeeded {
		s.format.Store(formatVersion)
		s.options.Logger.Info("the upgrade is finished: programs that do not know the new format cannot open the store any more", "format", formatVersion)
	}
	return nil
}

// olderServers returns the servers whose program cannot read the newest format.
func olderServers(list []Candidate) (older []Candidate) {
	for _, c := range list {
		if c.Format < formatVersion {
			older = append(older, c)
		}
	}
	return older
}

// upgradeInterval is the interval between checks of the servers' programs.
const upgradeInterval = 2 * time.Second

// upgrade ends an upgrade whose window has passed, while this server leads.
func (s *Store) upgrade() {
	ticker := time.NewTicker(upgradeInterval)
	defer ticker.Stop()
	var w window
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		s.lookAtPrograms(&w)
	}
}

// window tracks the time in which programs of two formats may be running.
type window struct {
	// began is when all servers were first found to support the newest format, by the clock of the
	// guard; 0 while they do not.
	began int64
	// turnedAway are the servers that started too late, by ID.
	turnedAway map[string]bool
}

// lookAtPrograms is one check. Failures are retried with the next one.
func (s *Store) lookAtPrograms(w *window) {
	term := s.term.Load()
	if term == nil || term.isOver() {
		*w = window{}
		return
	}
	list, err := s.Candidates(s.ctx)
	if err != nil {
		return
	}
	older := olderServers(list)
	switch now := s.guard.clock.now(); {
	case s.written() == formatVersion:
		s.turnAway(term, w, older)
	case len(older) > 0:
		w.began = 0
	case w.began == 0:
		w.began = now
		s.options.Logger.Info("every server reads a newer format of the store than is written; programs that do not know it can still take its place",
			"written", s.written(), "newest", formatVersion, "window", s.options.UpgradeWindow.String())
	case s.options.UpgradeWindow > 0 && now-w.began >= int64(s.options.UpgradeWindow):
		if err := s.raiseFormat(s.ctx, term.fence.intact()); err != nil {
			s.options.Logger.Warn("the upgrade cannot be finished now; it is tried again", "error", err)
		}
	}
}

// turnAway terminates servers that opened the store just before their program no longer could. They
// take a store in the newest format for damaged, but exit at once if its identity changes: so the
// identity gets another suffix, which only they check.
func (s *Store) turnAway(term *Term, w *window, older []Candidate) {
	fresh := false
	for _, c := range older {
		if !w.turnedAway[c.ID] {
			fresh = true
			s.options.Logger.Error("a server whose program does not know the format of the store is made to end", "server", c.Name, "url", c.URL, "version", c.Version, "format", c.Format)
		}
	}
	if !fresh {
		return
	}
	identity := append([]byte(s.guard.identity), identityEnding+rand.Text()...)
	resp, err := s.commit(s.ctx, 0, true, func(t clientv3.Txn) clientv3.Txn {
		return t.If(term.fence.intact()).Then(enclose(identityKey, identity))
	})
	if err != nil || !resp.Succeeded {
		return
	}
	w.turnedAway = make(map[string]bool, len(older))
	for _, c := range older {
		w.turnedAway[c.ID] = true
	}
}

// identityEnding starts the suffix that turnAway adds to an identity.
const identityEnding = "/"

// identityIn returns the identity in the value of identityKey.
func identityIn(value []byte) string {
	identity, _, _ := bytes.Cut(value, []byte(identityEnding))
	return string(identity)
}
