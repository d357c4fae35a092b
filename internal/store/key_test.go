package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestCompareNamespacesIsTheOrderOfPages compares with the order of the keys.
func TestCompareNamespacesIsTheOrderOfPages(t *testing.T) {
	t.Parallel()
	namespaces := []string{"", "a", "a-b", "a-b-c", "a0", "ab", "a-0", "a--b", "b", "0", "0-0", "z"}
	slices.SortFunc(namespaces, CompareNamespaces)
	var places []string
	for _, namespace := range namespaces {
		key := api.Key{Kind: api.KindMetric, Namespace: namespace, Name: "x"}
		place := PageAfter(key)
		places = append(places, place)
		if before, name, _ := strings.Cut(place, "/"); PageKey(key.Kind, before, name) != key {
			t.Errorf("PageKey() of %s = %s", place, PageKey(key.Kind, before, name))
		}
	}
	if !slices.IsSorted(places) {
		t.Errorf("places %v, want the order of the keys", places)
	}
}
