package certificate

import (
	"context"
	"crypto/x509"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// history records the bundles that clusters could fetch, and how long each was served.
type history struct {
	pools map[string]*x509.CertPool
	until map[string]time.Time
	// verified maps a verified certificate to the time until which it is valid: the earliest expiry in its chain.
	verified map[[2]string]time.Time // by certificate and bundle
}

func newHistory() *history {
	return &history{map[string]*x509.CertPool{}, map[string]time.Time{}, map[[2]string]time.Time{}}
}

// note records what a server would return to a cluster now. last is what it returned the last time, and may have
// returned until just now.
func (h *history) note(t *testing.T, a *Authority, last string, now time.Time) (bundle string) {
	t.Helper()
	bundle = bundleOf(a)
	if h.pools[bundle] == nil {
		h.pools[bundle] = pool(t, []byte(bundle))
	}
	h.until[bundle] = now
	if last != "" {
		h.until[last] = now
	}
	return bundle
}

// trusted checks the served certificate against every bundle that a cluster may have fetched recently.
func (h *history) trusted(t *testing.T, a *Authority, now time.Time, before time.Duration) {
	t.Helper()
	pair, err := a.TLSConfig().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for bundle, until := range h.until {
		if until.Before(now.Add(-before)) {
			continue
		}
		pairing := [2]string{string(pair.Leaf.Raw), bundle}
		if now.Before(h.verified[pairing]) {
			continue
		}
		chains, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: h.pools[bundle], CurrentTime: now, DNSName: "127.0.0.1"})
		if err != nil {
			t.Fatalf("at %s a client with the bundle until %s does not trust the webhook: %v", now, until, err)
		}
		ends := pair.Leaf.NotAfter
		for _, c := range chains[0] {
			if c.NotAfter.Before(ends) {
				ends = c.NotAfter
			}
		}
		h.verified[pairing] = ends
	}
}

// Of two servers, a cluster may call either, and may have fetched the bundle from either up to 22 hours ago. It must
// trust the certificate that it sees.
func TestServedCertificateIsAlwaysTrusted(t *testing.T) {
	const years, step, before = 15, 11 * time.Hour, 22 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		s := &memory{}
		bundles := newHistory()
		var last [2]string
		var servers [2]*Authority
		var stops [2]func()
		start := func(i int) {
			servers[i] = opened(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := servers[i].Run(ctx); err != nil {
					t.Error(err)
				}
			}()
			stops[i] = func() { cancel(); <-done }
		}
		start(0)
		start(1)
		secret := servers[0].Secret("uid")
		served, authorities := map[string]bool{}, map[string]bool{}
		most := 0
		begin := time.Now()
		for n := 0; time.Since(begin) < years*365*day; n++ {
			faketime.Sleep(step)
			synctest.Wait()
			if n%637 == 636 { // a restart every 290 days
				stops[n%2]()
				start(n % 2)
			}
			now := time.Now()
			for i := range servers {
				last[i] = bundles.note(t, servers[i], last[i], now)
			}
			for i := range servers {
				bundles.trusted(t, servers[i], now, before)
				served[servers[i].serving.pair.Leaf.SerialNumber.String()] = true
				most = max(most, len(servers[i].ring.authorities))
				for _, a := range servers[i].ring.authorities {
					authorities[a.serial()] = true
				}
				if servers[i].Secret("uid") != secret {
					t.Fatal("the secret of a cluster changed")
				}
			}
		}
		stops[0]()
		stops[1]()
		// In 15 years there are two authorities and the third; a certificate lasts 60 days.
		if len(authorities) != 3 || most != 2 {
			t.Errorf("%d authorities, %d at a time, want 3 and 2", len(authorities), most)
		}
		if n := len(served); n < 2*years*6 || n > 2*years*8 {
			t.Errorf("%d certificates, want 6 to 8 a year", n)
		}
		if s.commits != 5 { // created, then an authority added and removed twice
			t.Errorf("%d writes, want 5", s.commits)
		}
	})
}

func TestBundleSaysWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := opened(t, &memory{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = a.Run(ctx) }()
		before, changed := a.Bundle()
		begin := time.Now()
		<-changed
		if age := time.Since(begin); age < authorityLife*2/3-day || age > authorityLife*2/3+day {
			t.Errorf("the second authority was announced after %s", age)
		}
		after, changed := a.Bundle()
		if len(after) <= len(before) {
			t.Error("the new bundle does not contain the old authority")
		}
		announced := time.Now()
		<-changed
		if age := time.Since(announced); age < announcement+servingLife {
			t.Errorf("the old authority was removed after %s", age)
		}
		cancel()
		synctest.Wait()
	})
}

// However long no server ran, the one that starts serves what its bundle trusts.
func TestAfterALongStop(t *testing.T) {
	for _, days := range []int{1, 89, 365, 2433, 2434, 3500, 3649, 3650, 3651, 9000} {
		t.Run(fmt.Sprintf("%d days", days), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memory{}
				secret := opened(t, s).Secret("uid")
				faketime.Sleep(time.Duration(days) * day)
				a := opened(t, s)
				if a.Secret("uid") != secret {
					t.Error("the secret of a cluster changed")
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = a.Run(ctx) }()
				for range 100 {
					now := time.Now()
					h := newHistory()
					h.note(t, a, "", now)
					h.trusted(t, a, now, 0)
					faketime.Sleep(day)
					synctest.Wait()
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestCertificateIsRenewedWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memory{}
		a := opened(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = a.Run(ctx) }()
		s.do(func() { s.fail = store.ErrUnavailable })
		for range 130 {
			faketime.Sleep(day)
			synctest.Wait()
			now := time.Now()
			h := newHistory()
			h.note(t, a, "", now)
			h.trusted(t, a, now, 0)
		}
		cancel()
		synctest.Wait()
	})
}

func TestUncertainWriteIsReadBack(t *testing.T) {
	s := &memory{lose: store.ErrUncertain}
	a := opened(t, s)
	if s.commits != 1 || bundleOf(a) != bundleOf(opened(t, s)) {
		t.Errorf("%d writes after one with an unknown outcome, or a different bundle", s.commits)
	}
}

func TestRefusingStoreIsReported(t *testing.T) {
	s := &memory{fail: store.ErrFull}
	a, err := New(Options{Store: s, Sealer: newSealer(t, 1), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Open(t.Context()); err == nil {
		t.Fatal("Open() succeeded")
	}
	if bundle, _ := a.Bundle(); len(bundle) > 0 {
		t.Error("the bundle contains an authority that is not stored")
	}
}

// Conflicts with other servers that are always faster do not go on forever.
func TestEndlessConflictsEnd(t *testing.T) {
	s := &hidden{memory{value: []byte("{}"), revision: 1}}
	a, err := New(Options{Store: s, Sealer: newSealer(t, 1), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Open(t.Context()); err == nil {
		t.Error("Open() succeeded without a write")
	}
}

func TestDeletedRecordIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memory{}
		a := opened(t, s)
		bundle, secret := bundleOf(a), a.Secret("uid")
		s.do(func() { s.value = nil })
		if err := a.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := opened(t, s); bundleOf(again) != bundle || again.Secret("uid") != secret {
			t.Error("the authority that clusters trust was replaced")
		}
	})
}
