package api

import "testing"

func TestInvalidPorts(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://host": true, "http://host:1/x": true, "https://[::1]:65535": true,
		"http://host:0": false, "http://host:99999": false, "https://[::1]:65536/x": false,
	} {
		if message := checkURL(text); (message == "") != ok {
			t.Errorf("%s: %q", text, message)
		}
	}
}
