package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Variables of an expression.
const (
	clusterVariable        = "cluster"
	managedClusterVariable = "managedCluster"
)

// Objects of a cluster, by index in shapes.
const (
	shapeCluster = iota
	shapeClusterMetadata
	shapeClusterSpec
	shapeManagedCluster
	shapeManagedClusterMetadata
	shapeManagedClusterSpec
	shapeManagedClusterStatus
	shapeManagedClusterVersion
	shapeCount
)

// Types of `cluster`. Their names appear in errors.
var (
	clusterType         = cel.ObjectType("Cluster")
	clusterMetadataType = cel.ObjectType("Cluster.metadata")
	clusterSpecType     = cel.ObjectType("Cluster.spec")
	scoreType           = cel.ObjectType("Score")

	managedClusterType = cel.MapType(cel.StringType, cel.DynType)
	stringsType        = cel.ListType(cel.StringType)
	stringMapType      = cel.MapType(cel.StringType, cel.StringType)
)

// shapes lists the fields of each object.
var shapes = [shapeCount]shape{
	shapeCluster: {clusterType, []field{
		{"metadata", clusterMetadataType, part(shapeClusterMetadata)},
		{"spec", clusterSpecType, part(shapeClusterSpec)},
	}},
	shapeClusterMetadata: {clusterMetadataType, []field{
		{"name", cel.StringType, func(s *subject) ref.Val { return types.String(s.cluster.Name()) }},
		{"labels", stringMapType, func(s *subject) ref.Val { return stringMap(s.cluster.Labels()) }},
	}},
	shapeClusterSpec: {clusterSpecType, []field{
		{"claims", stringMapType, func(s *subject) ref.Val { return stringMap(s.cluster.Claims()) }},
		{"region", cel.StringType, func(s *subject) ref.Val { return types.String(s.cluster.Region()) }},
		{"zones", stringsType, func(s *subject) ref.Val { return stringList(s.cluster.Zones()) }},
		{"cloud_provider", cel.StringType, func(s *subject) ref.Val { return types.String(s.cluster.CloudProvider()) }},
		{"custom_resources", stringsType, func(s *subject) ref.Val { return stringList(s.cluster.CustomResources()) }},
		{"capacity", stringMapType, func(s *subject) ref.Val { return stringMap(s.cluster.Capacity()) }},
		{"allocatable", stringMapType, func(s *subject) ref.Val { return stringMap(s.cluster.Allocatable()) }},
	}},
	shapeManagedCluster:         {types.MapType, managedClusterFields},
	shapeManagedClusterMetadata: {types.MapType, managedClusterMetadataFields},
	shapeManagedClusterSpec:     {types.MapType, managedClusterSpecFields},
	shapeManagedClusterStatus:   {types.MapType, managedClusterStatusFields},
	shapeManagedClusterVersion:  {types.MapType, managedClusterVersionFields},
}

func part(index int) func(s *subject) ref.Val {
	return func(s *subject) ref.Val { return &s.objects[index] }
}

func stringList(values []string) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, values)
}
