package notify

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// jsonEscapes are those of encoding/json for HTML.
var jsonEscapes = strings.NewReplacer(`\u003e`, ">", `\u0026`, "&")

// picky is a receiver that refuses what says something.
type picky struct {
	*receiver

	mu       sync.Mutex
	refused  string
	accepted []string // bodies
}

func newPicky(t testing.TB, refused string, code int) *picky {
	t.Helper()
	p := &picky{receiver: newReceiver(t, nil), refused: refused}
	p.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
		body := jsonEscapes.Replace(string(p.got()[n-1].body))
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.refused != "" && strings.Contains(body, p.refused) {
			w.WriteHeader(code)
			return
		}
		p.accepted = append(p.accepted, body)
	}
	return p
}

// accept refuses nothing more.
func (p *picky) accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = ""
}

// about returns what has been accepted and says something.
func (p *picky) about(text string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.accepted), func(body string) bool { return !strings.Contains(body, text) })
}

// isTold waits until so much that says something has been accepted.
func (p *picky) isTold(t testing.TB, text string, n int) []string {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d that say %q are accepted", n, text), func() bool { return len(p.about(text)) >= n })
	return p.about(text)
}

// inOrder checks that texts say something, one after the other.
func inOrder(t testing.TB, texts, parts []string) {
	t.Helper()
	at, all := 0, strings.Join(texts, "\n")
	for _, part := range parts {
		i := strings.Index(all[at:], part)
		if i < 0 {
			t.Errorf("%q is missing or in the wrong place in %s", part, all)
			return
		}
		at += i + len(part)
	}
}

// What a destination refuses waits, and so does what is told of the same object after it; everything else is delivered. When
// the destination accepts it, what has waited follows in order, also if another leader has taken over meanwhile.
func TestRefusedIsSetAside(t *testing.T) {
	for name, code := range map[string]int{
		"it is refused": http.StatusUnprocessableEntity, "it breaks the receiver": http.StatusInternalServerError, "it may not be told": http.StatusForbidden,
	} {
		t.Run(name, func(t *testing.T) {
			w, to := newWorld(t), newPicky(t, "shop/web moved: a -> b", code)
			w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
			w.run()
			w.is("ops", api.ReasonDelivering)
			web, other := w.placement("web"), w.placement("api")
			for _, cluster := range []string{"a", "b", "c"} {
				w.move(web, []string{cluster})
				w.move(other, []string{cluster})
			}
			to.isTold(t, "shop/api", 3)
			w.is("ops", api.ReasonDeliveryFails)
			if c := w.status("ops").Conditions[0]; !strings.HasPrefix(c.Message, fmt.Sprintf("what is told of 1 of the objects is refused (the destination answered %d", code)) {
				t.Errorf("got %q", c.Message)
			}
			eventually.True(t, "it is in the status", func() bool { return len(w.status("ops").SetAside) == 1 })
			w.run()
			w.move(web, []string{"d"})
			w.move(other, []string{"d"})
			to.isTold(t, "shop/api", 4)
			if got := to.about("shop/web"); len(got) != 1 {
				t.Errorf("told of the object of what is refused: %q", got)
			}
			to.accept()
			w.is("ops", api.ReasonDelivering)
			inOrder(t, to.isTold(t, "shop/web", 4), []string{"was decided: a", "a -> b", "b -> c", "c -> d"})
			w.move(web, []string{"e"})
			to.isTold(t, "d -> e", 1)
			eventually.True(t, "nothing is set aside", func() bool { return len(w.status("ops").SetAside) == 0 })
		})
	}
}

// The state of the destination says nothing about what was sent: everything waits, and nothing is set aside.
func TestWhatIsNoRefusal(t *testing.T) {
	for _, code := range []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusMovedPermanently} {
		w, to := newWorld(t), newPicky(t, "shop/web", code)
		w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
		w.run()
		w.is("ops", api.ReasonDelivering)
		w.move(w.placement("web"), []string{"a"})
		w.move(w.placement("api"), []string{"a"})
		to.await(t, 8)
		if got := to.about("shop/api"); len(got) > 0 || len(w.status("ops").SetAside) > 0 {
			t.Errorf("%d: told of %q, and set aside %v", code, got, w.status("ops").SetAside)
		}
		to.accept()
		inOrder(t, append(to.isTold(t, "shop/web", 1), to.isTold(t, "shop/api", 1)...), []string{"shop/web", "shop/api"})
		w.stop()
	}
}

// Of several events that are sent together, the part that is refused is set aside. What comes after it is sent together again.
func TestPartIsRefused(t *testing.T) {
	for name, spec := range map[string]string{"alertmanager": `"alertmanager":{"url":%q}`, "slack": `"slack":{"url":%q}`} {
		t.Run(name, func(t *testing.T) {
			w, to := newWorld(t), newPicky(t, "shop/web", http.StatusBadRequest)
			w.afterwards(fmt.Sprintf(spec, to.URL), func() {
				w.move(w.placement("web"), []string{"a"})
				w.move(w.placement("api"), []string{"a"})
			})
			to.isTold(t, "shop/api", 1)
			web := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
			eventually.True(t, "it is set aside", func() bool { return len(w.status("ops").SetAside) == 1 })
			w.move(web, []string{"b"})
			w.move(w.placement("third"), []string{"a"})
			to.isTold(t, "shop/third", 1)
			to.accept()
			if name == "slack" {
				inOrder(t, to.isTold(t, "shop/web", 2), []string{"was decided: a", "moved: a -&gt; b"})
			} else {
				to.isTold(t, "shop/web", 2)
			}
			w.is("ops", api.ReasonDelivering)
		})
	}
}

// What is refused is given up in the end, and what follows is told. It stays in the list, and can be sent again.
func TestRefusedIsGivenUp(t *testing.T) {
	w, to := newWorld(t), newPicky(t, "shop/web was decided", http.StatusBadRequest)
	w.notification("ops", fmt.Sprintf(`"retry_for":"1s","webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	w.move(web, []string{"a"})
	w.move(web, []string{"b"})
	to.isTold(t, "a -> b", 1)
	w.is("ops", api.ReasonDelivering)
	list := w.status("ops").Attempts
	i := slices.IndexFunc(list, func(a api.NotificationAttempt) bool { return a.Result == api.DeliveryGivenUp })
	if i < 0 || list[i].Code != http.StatusBadRequest {
		t.Fatalf("got %+v", list)
	}
	to.accept()
	again, err := w.runner.Redeliver(t.Context(), api.Key{Kind: api.KindNotification, Name: "ops"}, list[i].ID)
	if err != nil || again.Result != api.DeliveryDone {
		t.Errorf("got %+v, %v", again, err)
	}
	to.isTold(t, "was decided: a", 1)
}

// What waits goes on at once when it has been sent again on request: here nothing else is tried for an hour.
func TestSentAgainGoesOn(t *testing.T) {
	for name, code := range map[string]int{"set aside": http.StatusBadRequest, "everything waits": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			w, to := newWorld(t), newPicky(t, "shop/web was decided", code)
			w.again.First, w.again.Most = time.Hour, time.Hour
			w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
			w.run()
			w.is("ops", api.ReasonDelivering)
			web := w.placement("web")
			w.move(web, []string{"a"})
			w.move(web, []string{"b"})
			w.is("ops", api.ReasonDeliveryFails)
			key, id := api.Key{Kind: api.KindNotification, Name: "ops"}, w.status("ops").Attempts[0].ID
			result := map[int]api.NotificationResult{http.StatusBadRequest: api.DeliveryRefused, http.StatusServiceUnavailable: api.DeliveryFailed}[code]
			if again, err := w.runner.Redeliver(t.Context(), key, id); err != nil || again.Result != result {
				t.Errorf("got %+v, %v, want it to be %s as before", again, err, result)
			}
			to.accept()
			if again, err := w.runner.Redeliver(t.Context(), key, id); err != nil || again.Result != api.DeliveryDone {
				t.Errorf("got %+v, %v", again, err)
			}
			to.isTold(t, "a -> b", 1)
			if got := to.about("was decided: a"); len(got) != 1 {
				t.Errorf("sent %d times", len(got))
			}
		})
	}
}

// No more is set aside than a limit, and what is set aside is kept in the list.
func TestDestinationThatRefusesEverything(t *testing.T) {
	w, to := newWorld(t), newPicky(t, "shop", http.StatusUnauthorized)
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	for n := range maxAside + 10 {
		w.move(w.placement(fmt.Sprintf("p-%d", n)), []string{"a"})
	}
	eventually.True(t, "the limit is reached", func() bool { return len(w.status("ops").SetAside) == maxAside })
	status := w.status("ops")
	if n := len(status.Listed()); n < maxAside || n > maxAside+maxAttempts {
		t.Errorf("%d are listed", n)
	}
	to.accept()
	to.isTold(t, "shop", maxAside+10)
	w.is("ops", api.ReasonDelivering)
}
