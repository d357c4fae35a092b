package expression

import (
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Functions of a cluster.
const (
	scoresFunction = "scores"
	metricFunction = "metric"
)

// clusterFunctions declares `scores` and `metric` for both variables.
func clusterFunctions() cel.EnvOption {
	return several(
		cel.Function(scoresFunction,
			cel.MemberOverload("cluster_scores", []*cel.Type{clusterType, cel.StringType}, cel.ListType(scoreType)),
			cel.MemberOverload("managed_cluster_scores", []*cel.Type{managedClusterType, cel.StringType}, cel.ListType(cel.DynType)),
			cel.SingletonBinaryBinding(clusterScores),
		),
		cel.Function(metricFunction,
			cel.MemberOverload("cluster_metric", []*cel.Type{clusterType, cel.StringType}, cel.DoubleType),
			cel.MemberOverload("managed_cluster_metric", []*cel.Type{managedClusterType, cel.StringType}, cel.DoubleType),
			cel.SingletonBinaryBinding(clusterMetric),
		),
	)
}

// several combines options.
func several(options ...cel.EnvOption) cel.EnvOption {
	return func(env *cel.Env) (*cel.Env, error) {
		for _, option := range options {
			var err error
			if env, err = option(env); err != nil {
				return nil, err
			}
		}
		return env, nil
	}
}

// wholeCluster returns the cluster that v stands for, or nil.
func wholeCluster(v ref.Val) Cluster {
	o, ok := v.(*object)
	if !ok || o.shape != &shapes[shapeCluster] && o.shape != &shapes[shapeManagedCluster] {
		return nil
	}
	return o.subject.cluster
}

func clusterScores(target, resource ref.Val) ref.Val {
	c, name := wholeCluster(target), resource
	text, ok := name.(types.String)
	if c == nil || !ok {
		return types.NewErr("scores() is a function of cluster and managedCluster, and takes a name")
	}
	scores, expiredAt := c.Scores(string(text))
	switch {
	case scores == nil && !expiredAt.IsZero():
		return types.NewErr("the cluster's scores of %q expired at %s", string(text), expiredAt.UTC().Format(time.RFC3339))
	case scores == nil:
		return types.NewErr("the cluster has no valid scores of %q", string(text))
	}
	typ := ref.Type(types.MapType)
	if target.Type() == clusterType {
		typ = scoreType
	}
	pairs := make([]pair, len(scores))
	for i, s := range scores {
		pairs[i] = pair{name: s.Name, number: s.Value, score: true, typ: typ}
	}
	return pairList(pairs)
}

func clusterMetric(target, name ref.Val) ref.Val {
	c := wholeCluster(target)
	text, ok := name.(types.String)
	if c == nil || !ok {
		return types.NewErr("metric() is a function of cluster and managedCluster, and takes a name")
	}
	v, ok := c.Metric(string(text))
	if !ok {
		return types.NewErr("the metric %q has no value", string(text))
	}
	return types.Double(v)
}
