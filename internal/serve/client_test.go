package serve_test

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

func TestClientAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3:99": "10.1.2.3", "[::ffff:10.1.2.3]:99": "10.1.2.3", "[::1]:9": "::1",
		"[2001:db8:1:2:3:4:5:6]:9": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::]:9": "2001:db8:1:2::/64", "pipe": "pipe", "": "",
	} {
		if got := serve.ClientOf(address); got != want {
			t.Errorf("serve.ClientOf(%q) = %q, want %q", address, got, want)
		}
	}
}
