package movement

import (
	"cmp"
	"slices"
	"strconv"
)

// ByRank has all clusters in one group.
func ByRank(string) (place int, name string) { return 0, "" }

// ByLabel orders clusters by the value of a label: as numbers if all values are, otherwise as text.
// Clusters without the label come last.
func ByLabel(key string, seats []Seat, labels func(cluster string) map[string]string) func(cluster string) (place int, name string) {
	var values []string
	numbers := true
	for _, s := range seats {
		if value, ok := labels(s.Cluster)[key]; ok && !slices.Contains(values, value) {
			_, err := strconv.ParseInt(value, 10, 64)
			numbers = numbers && err == nil
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int {
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		if !numbers {
			x, y = 0, 0
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	place := make(map[string]int, len(values))
	for i, value := range values {
		place[value] = i
	}
	return func(cluster string) (int, string) {
		value, ok := labels(cluster)[key]
		if !ok {
			return len(values), ""
		}
		return place[value], value
	}
}
