package httpapi

import (
	"sync"
	"time"
)

// nonces remembers the nonces of requests for at least relayWindow. The zero value is empty.
type nonces struct {
	mu sync.Mutex
	// recent are those since turned, and before those of the period before it; guarded by mu.
	recent, before map[string]struct{}
	turned         time.Duration
}

// isNew records a nonce, and reports whether it was not known. An empty one never is new.
func (n *nonces) isNew(nonce string, now time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.recent == nil || now-n.turned >= relayWindow {
		n.before, n.recent, n.turned = n.recent, map[string]struct{}{}, now
	}
	_, recent := n.recent[nonce]
	_, before := n.before[nonce]
	n.recent[nonce] = struct{}{}
	return nonce != "" && !recent && !before
}
