package columns

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// WrittenBy returns who last wrote an object of the fleet; nil if that is not known, or if there is no
// such object.
func (f *Fleet) WrittenBy(key api.Key) *api.Actor {
	switch key.Kind {
	case api.KindCluster:
		if c := clusterNamed(f, key.Name); c != nil {
			return c.Metadata.WrittenBy
		}
	case api.KindMetric:
		if m := f.Metric(key); m != nil {
			return m.Metadata.WrittenBy
		}
	case api.KindClusterSet:
		if s := f.sets[key.Name]; s != nil {
			return s.Set.Metadata.WrittenBy
		}
	case api.KindPlacementScore:
		if row, ok := f.index[key.Namespace]; ok {
			if s := f.scores[key.Name].Object(row); s != nil {
				return s.Metadata.WrittenBy
			}
		}
	default: // is not part of a fleet
	}
	return nil
}
