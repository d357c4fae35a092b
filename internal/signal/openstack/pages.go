package openstack

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

const (
	// maxPages and maxItems exceed any real OpenStack; they stop a server that always returns a
	// next page.
	maxPages = 1000
	maxItems = 200_000
)

// list reads a collection page by page. key is the name of the list in the response.
func list[T any](ctx context.Context, s *session, service *gophercloud.ServiceClient, doing, path, key string) ([]T, error) {
	address := service.Endpoint + path
	var out []T
	for range maxPages {
		var body map[string]json.RawMessage
		if err := get(ctx, service, address, &body); err != nil {
			return nil, s.refused(doing, err)
		}
		var items []T
		raw, ok := body[key]
		if !ok {
			return nil, failed("%s: the response has no %q", doing, key)
		}
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, s.refused(doing, err)
		}
		out = append(out, items...)
		next := nextPage(body, key)
		if next == "" || len(items) == 0 {
			return out, nil
		}
		if len(out) > maxItems {
			break
		}
		address = next
	}
	return nil, failed("%s: the list never ends", doing)
}

// get reads one response.
func get(ctx context.Context, service *gophercloud.ServiceClient, address string, into any) error {
	resp, err := service.Get(ctx, address, into, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // read to its end, or unusable
	}
	return err
}

// nextPage returns the address of the next page, for which services use three different places.
func nextPage(body map[string]json.RawMessage, key string) string {
	type link struct {
		Rel  string `json:"rel"`
		Href string `json:"href"`
	}
	var links []link
	if json.Unmarshal(body[key+"_links"], &links) == nil {
		for _, l := range links {
			if l.Rel == "next" {
				return l.Href
			}
		}
	}
	var next string
	if json.Unmarshal(body["next"], &next) == nil {
		return next
	}
	var identity struct {
		Next string `json:"next"`
	}
	if json.Unmarshal(body["links"], &identity) == nil {
		return identity.Next
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), strings.Compare)
}
