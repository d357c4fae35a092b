package main

import (
	"os"
	"strings"
	"testing"
)

func TestQuietUnlessAsked(t *testing.T) {
	for _, test := range []struct{ name, asked, want string }{
		{"not set", "", "OFF"},
		{"for everything", "TF_LOG", ""},
		{"for the provider", "TF_LOG_PROVIDER", ""},
		{"for a file", "TF_LOG_PATH", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, variable := range append(os.Environ(), "TF_LOG_SDK=", "TF_LOG_PROVIDER_SCHEDULER=") {
				if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TF_LOG") {
					t.Setenv(name, value) // restored after the test
					if err := os.Unsetenv(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			if test.asked != "" {
				t.Setenv(test.asked, "TRACE")
			}
			quietUnlessAsked()
			if got := os.Getenv("TF_LOG_SDK"); got != test.want {
				t.Errorf("TF_LOG_SDK is %q, want %q", got, test.want)
			}
		})
	}
}
