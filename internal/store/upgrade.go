package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A program opens a store of the format of the one before it and goes on writing that
// format, so that the two can work side by side, and either can follow on the other.
// The upgrade ends when the store gets the new format: every server reads it, and for a
// time nobody has gone back, or an operator says so.

// OlderServerError says that a server is up whose program does not read the newest
// format.
type OlderServerError struct{ Server Candidate }

// Error implements error.
func (e *OlderServerError) Error() string {
	return fmt.Sprintf("the server %q at %s (version %s) reads formats of the store up to %d, not %d: upgrade it or stop it first",
		e.Server.Name, e.Server.URL, e.Server.Version, e.Server.Format, formatVersion)
}

// FinishUpgrade has the store written in the newest format from now on. Programs that do
// not know it cannot open it any more. It returns an *OlderServerError where a server is
// up that does not know it.
func (s *Store) FinishUpgrade(ctx context.Context) error {
	for {
		if err := s.raiseFormat(ctx); err != nil || s.envelopes.written() == formatVersion {
			return err
		}
	}
}

// raiseFormat begins the newest format, unless there is a server that does not read it.
// It returns nil where another one was faster, or a server has come meanwhile; what
// further has to hold is compared with it.
func (s *Store) raiseFormat(ctx context.Context, further ...clientv3.Cmp) error {
	bounded, cancel := s.requestContext(ctx)
	defer cancel()
	resp, err := s.client.Txn(bounded).Then(clientv3.OpGet(formatKey), clientv3.OpGet(candidatePrefix, clientv3.WithPrefix())).Commit()
	if err != nil {
		return fmt.Errorf("read which servers there are: %w", classify(err, false))
	}
	format := resp.Responses[0].GetResponseRange().GetKvs()
	if err := s.sawFormat(format); err != nil || s.envelopes.written() == formatVersion {
		return err
	}
	if len(format) == 0 || s.envelopes.since == noEnvelopes {
		return fmt.Errorf("%w: it could not be set up, and has to be opened again", ErrUnavailable)
	}
	if older := olderServers(parseCandidates(resp.Responses[1].GetResponseRange().GetKvs())); len(older) > 0 {
		return &OlderServerError{older[0]}
	}
	ifs := append([]clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(formatKey), "=", format[0].ModRevision),
		clientv3.Compare(clientv3.CreateRevision(candidatePrefix), "<", resp.Header.Revision+1).WithPrefix(),
	}, further...)
	puts := s.envelopes.putFormat(formatVersion)
	raised, err := s.commit(ctx, 0, true, func(t clientv3.Txn) clientv3.Txn { return t.If(ifs...).Then(puts...) })
	if err != nil {
		return fmt.Errorf("set the format of the store: %w", err)
	}
	if raised.Succeeded {
		s.envelopes.begin(formatVersion, raised.Header.Revision)
		s.options.Logger.Info("the upgrade is finished: programs that do not know the new format cannot open the store any more", "format", formatVersion)
	}
	return nil
}

// olderServers are those whose program does not read the newest format.
func olderServers(list []Candidate) (older []Candidate) {
	for _, c := range list {
		if c.Format < formatVersion {
			older = append(older, c)
		}
	}
	return older
}

// upgradeInterval is the time between two looks at the programs of the servers.
const upgradeInterval = 2 * time.Second

// upgrade ends an upgrade whose window is over, while this server leads.
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

// window is what is known of the time in which programs of two formats may be up.
type window struct {
	// began is when the servers last turned out to be all of the newest format, by the
	// clock of the guard; 0 while they are not.
	began int64
	// turnedAway are the servers that came too late, by their ID.
	turnedAway map[string]bool
}

// lookAtPrograms is one look. What fails is tried again with the next.
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
	case s.envelopes.written() == formatVersion:
		s.turnAway(term, w, older)
	case len(older) > 0:
		w.began = 0
	case w.began == 0:
		w.began = now
		s.options.Logger.Info("every server reads a newer format of the store than is written; programs that do not know it can still take its place",
			"written", s.envelopes.written(), "newest", formatVersion, "window", s.options.UpgradeWindow.String())
	case s.options.UpgradeWindow > 0 && now-w.began >= int64(s.options.UpgradeWindow):
		if err := s.raiseFormat(s.ctx, term.fence.intact()); err != nil {
			s.options.Logger.Warn("the upgrade cannot be finished now; it is tried again", "error", err)
		}
	}
}

// turnAway ends servers that opened the store just before their program could not any
// more. They take the store for damaged where it is in the newest format, but end at
// once where its identity is another one: it gets another ending, which only they look
// at.
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

// identityEnding begins what turnAway adds to an identity.
const identityEnding = "/"

// identityIn is the identity in the value of identityKey.
func identityIn(value []byte) string {
	identity, _, _ := bytes.Cut(value, []byte(identityEnding))
	return string(identity)
}
