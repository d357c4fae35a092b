package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// liveWorld has one cloud with credentials, and one without.
func liveWorld(t *testing.T, stack *recorded) *world {
	w := newWorld(t, stack)
	w.put("paris", access())
	w.put("rome", &api.OpenStackSpec{AuthURL: keystoneURL})
	return w
}

func projectNames(live *api.LiveOpenStack) string {
	var names []string
	for _, p := range live.Projects {
		names = append(names, fmt.Sprint(p.Name, " ", p.Tags, " ", p.Clusters))
	}
	return strings.Join(names, ", ")
}

func TestLiveProjects(t *testing.T) {
	const all = "admin [] 0, service [] 0, team-blue [ocm team:blue] 1, team-empty [] 0, team-red [ocm region:eu team:red] 1"
	const mine = "admin [] 0, team-blue [ocm team:blue] 1, team-empty [] 0, team-red [ocm region:eu team:red] 1"
	for name, c := range map[string]struct {
		options api.LiveOptions
		member  bool
		want    string
	}{
		"all":               {want: all},
		"with a tag":        {options: api.LiveOptions{Tags: []string{"ocm"}}, want: "team-blue [ocm team:blue] 1, team-red [ocm region:eu team:red] 1"},
		"with two tags":     {options: api.LiveOptions{Tags: []string{"ocm", "team:red"}}, want: "team-red [ocm region:eu team:red] 1"},
		"disabled":          {options: api.LiveOptions{Disabled: true}, want: "team-old [archived] 0"},
		"none":              {options: api.LiveOptions{Tags: []string{"nothing"}}, want: ""},
		"member":            {member: true, want: mine},
		"member with a tag": {member: true, options: api.LiveOptions{Tags: []string{"team:red"}}, want: "team-red [ocm region:eu team:red] 1"},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newRecorded(t)
			if c.member {
				stack.answer("/v3/projects", "error-403-member-projects")
			}
			live, err := liveWorld(t, stack).Live(t.Context(), "paris", c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := projectNames(live); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(live.Templates) != 2 || live.Templates[0].Name != "k8s-blue" || live.Templates[1].Name != "k8s-red" {
				t.Fatalf("got the templates %+v", live.Templates)
			}
			red := live.Templates[1]
			if red.ID == "" || red.Region != "RegionOne" || !red.Public || red.COE != "kubernetes" || red.FlavorID != "k8s.node" || red.MasterFlavorID != "m1.large" ||
				red.ImageID != "ubuntu-k8s" || red.KeypairID != "red-key" || red.NetworkDriver != "calico" || red.Labels["kube_tag"] != "v1.26.8" || red.ProjectID == "" {
				t.Errorf("got the template %+v", red)
			}
		})
	}
}

func TestLiveRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cloud string
		set   func(*recorded)
		want  string
		is    error
	}{
		"no cloud":       {cloud: "berlin", is: ErrNotFound, want: `cloud "berlin": there is no such cloud`},
		"no credentials": {cloud: "rome", is: ErrNoCredentials, want: `cloud "rome": the cloud has no credentials`},
		"wrong password": {
			cloud: "paris", set: func(o *recorded) { o.setPassword("another") },
			want: `logging in at http://127.0.0.1:5000/v3: the user "admin" of the domain "Default" is rejected: correct openstack.password, or the names of the user and of the project`,
		},
		"Magnum forbids access": {
			cloud: "paris", set: func(o *recorded) { o.reply("/v1/clusters/detail", says(500, "")) },
			want: "listing the Magnum clusters: the response is 500 Internal Server Error",
		},
		"hangs": {cloud: "paris", set: func(o *recorded) { o.reply("/v1/clustertemplates", hangs) }, want: "listing the cluster templates: no response in time"},
	} {
		inBubble(t, name, func(t *testing.T) {
			stack := newRecorded(t)
			if c.set != nil {
				c.set(stack)
			}
			begun := time.Now()
			_, err := liveWorld(t, stack).Live(t.Context(), c.cloud, api.LiveOptions{})
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if _, failure := errors.AsType[*Failure](err); c.is != nil && !errors.Is(err, c.is) || failure != (c.is == nil) {
				t.Errorf("error %v of the wrong kind", err)
			}
			if d := time.Since(begun); d > maxLive {
				t.Errorf("took %s, want at most maxLive", d)
			}
		})
	}
}

// TestLiveRotates checks that the credentials of the present spec are used.
func TestLiveRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := newRecorded(t)
		w := liveWorld(t, stack)
		stack.setPassword("another")
		rotated := access()
		rotated.Password = api.NewSecret("another")
		w.put("paris", rotated)
		if _, err := w.Live(t.Context(), "paris", api.LiveOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestLiveWithoutMagnum checks that projects are listed nevertheless.
func TestLiveWithoutMagnum(t *testing.T) {
	stack := newRecorded(t)
	stack.reply("/v3/projects", func(r *http.Request) (int, []byte) {
		return 200, []byte(`{"projects":[{"id":"1","name":"only","enabled":true,"tags":["b","a"]}]}`)
	})
	stack.without = "container-infra"
	live, err := liveWorld(t, stack).Live(t.Context(), "paris", api.LiveOptions{})
	if err != nil || projectNames(live) != "only [a b] 0" || live.Templates != nil {
		t.Errorf("got %+v, %v", live, err)
	}
}
