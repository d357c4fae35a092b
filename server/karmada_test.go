package main

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/karmada"
)

// TestKarmada runs the cases of propagation policies on a server, as simulations.
func TestKarmada(t *testing.T) {
	t.Parallel()
	cases, err := karmada.Cases(karmada.Kinds...)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, testConfig(t.TempDir()))
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			wrong, err := c.Play(t.Context(), s.client.Simulate)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range wrong {
				t.Errorf("%s: %s", c.Name, text)
			}
		})
	}
}
