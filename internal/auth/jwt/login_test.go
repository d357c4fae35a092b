package jwt

import (
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Only issuers with a login are listed, and nothing that their configuration keeps to itself.
func TestLogins(t *testing.T) {
	list := []Issuer{
		{Name: "ci", Issuer: "https://ci.example.com", TokenFile: "/secret"},
		{Name: "people", Issuer: "https://login.example.com", Login: &Login{ClientID: "page", Scopes: []string{"groups", "openid"}}},
		{Name: "others", Issuer: "https://others.example.com", Login: &Login{ClientID: "x"}},
	}
	want := []api.LoginOption{
		{Name: "people", Issuer: "https://login.example.com", ClientID: "page", Scopes: []string{"openid", "groups"}},
		{Name: "others", Issuer: "https://others.example.com", ClientID: "x", Scopes: []string{"openid"}},
	}
	if got := Logins(list); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
