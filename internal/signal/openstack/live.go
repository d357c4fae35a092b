package openstack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// maxLive is the maximum timeout of live queries.
const maxLive = 30 * time.Second

// Live queries the OpenStack of a cloud for its projects and cluster templates. ErrNotFound: there
// is no such cloud. ErrNoCredentials: it cannot be queried. *Failure: OpenStack rejects the request
// or does not respond.
func (m *Clouds) Live(ctx context.Context, name string, options api.LiveOptions) (*api.LiveOpenStack, error) {
	m.mu.Lock()
	var spec *api.OpenStackSpec
	c := m.clouds[name]
	if c != nil {
		spec = c.object.Spec.OpenStack
	}
	m.mu.Unlock()
	switch {
	case c == nil:
		return nil, fmt.Errorf("cloud %q: %w", name, ErrNotFound)
	case !spec.HasCredentials():
		return nil, fmt.Errorf("cloud %q: %w", name, ErrNoCredentials)
	}
	ctx, cancel := context.WithTimeout(ctx, min(spec.Timeout.Or(maxLive), maxLive))
	defer cancel()
	s, err := login(ctx, spec, m.Network, m.RoundTripper)
	if err != nil {
		return nil, err
	}
	defer s.close()
	live := &api.LiveOpenStack{}
	if live.Projects, err = s.projects(ctx, options); err != nil {
		return nil, err
	}
	regions := spec.Regions
	if len(regions) == 0 {
		regions = s.regions()
	}
	clusters := map[string]int64{}
	for _, region := range slices.Sorted(slices.Values(regions)) {
		magnum := s.service(region, magnumTypes)
		if magnum == nil {
			continue
		}
		magnum.Microversion = "latest"
		templates, err := s.templates(ctx, magnum, region)
		if err != nil {
			return nil, err
		}
		live.Templates = append(live.Templates, templates...)
		if err := s.countClusters(ctx, magnum, clusters); err != nil {
			return nil, err
		}
	}
	for i := range live.Projects {
		live.Projects[i].Clusters = clusters[live.Projects[i].ID]
	}
	return live, nil
}

// projects lists the projects. Users without permission to list all get those in which they have a
// role.
func (s *session) projects(ctx context.Context, options api.LiveOptions) ([]api.LiveProject, error) {
	type shown struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		DomainID    string   `json:"domain_id"`
		ParentID    string   `json:"parent_id"`
		Enabled     bool     `json:"enabled"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
	keystone := &gophercloud.ServiceClient{ProviderClient: s.provider, Endpoint: s.provider.IdentityBase + "v3/", Type: "identity"}
	query := url.Values{"enabled": {fmt.Sprint(!options.Disabled)}}
	if len(options.Tags) > 0 {
		query.Set("tags", strings.Join(options.Tags, ","))
	}
	all, err := list[shown](ctx, s, keystone, "listing the projects", "projects?"+query.Encode(), "projects")
	if statusOf(err) == http.StatusForbidden {
		all, err = list[shown](ctx, s, keystone, "listing the projects", "auth/projects", "projects")
	}
	if err != nil {
		return nil, err
	}
	out := []api.LiveProject{}
	for _, p := range all {
		slices.Sort(p.Tags)
		lacks := slices.ContainsFunc(options.Tags, func(tag string) bool { return !slices.Contains(p.Tags, tag) })
		if lacks || p.Enabled == options.Disabled {
			continue
		}
		out = append(out, api.LiveProject{
			ID: p.ID, Name: p.Name, DomainID: p.DomainID, ParentID: p.ParentID, Enabled: p.Enabled, Description: p.Description, Tags: p.Tags,
		})
	}
	slices.SortFunc(out, func(a, b api.LiveProject) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// templates lists the Magnum cluster templates of a region.
func (s *session) templates(ctx context.Context, magnum *gophercloud.ServiceClient, region string) ([]api.LiveClusterTemplate, error) {
	type shown struct {
		UUID           string            `json:"uuid"`
		Name           string            `json:"name"`
		ProjectID      string            `json:"project_id"`
		Public         bool              `json:"public"`
		COE            string            `json:"coe"`
		ImageID        string            `json:"image_id"`
		FlavorID       string            `json:"flavor_id"`
		MasterFlavorID string            `json:"master_flavor_id"`
		KeypairID      string            `json:"keypair_id"`
		NetworkDriver  string            `json:"network_driver"`
		Labels         map[string]string `json:"labels"`
	}
	all, err := list[shown](ctx, s, magnum, "listing the cluster templates", "clustertemplates", "clustertemplates")
	if err != nil {
		return nil, err
	}
	out := make([]api.LiveClusterTemplate, len(all))
	for i, t := range all {
		out[i] = api.LiveClusterTemplate{
			ID: t.UUID, Name: t.Name, Region: region, ProjectID: t.ProjectID, Public: t.Public, COE: t.COE, ImageID: t.ImageID,
			FlavorID: t.FlavorID, MasterFlavorID: t.MasterFlavorID, KeypairID: t.KeypairID, NetworkDriver: t.NetworkDriver, Labels: t.Labels,
		}
	}
	slices.SortFunc(out, func(a, b api.LiveClusterTemplate) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// countClusters adds the Magnum clusters of a region to the counts of their projects.
func (s *session) countClusters(ctx context.Context, magnum *gophercloud.ServiceClient, of map[string]int64) error {
	type shown struct {
		ProjectID string `json:"project_id"`
	}
	all, err := list[shown](ctx, s, magnum, "listing the Magnum clusters", "clusters/detail", "clusters")
	if err != nil {
		return err
	}
	for _, c := range all {
		of[c.ProjectID]++
	}
	return nil
}
