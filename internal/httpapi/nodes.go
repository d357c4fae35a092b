package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Spot is the part of the spot runner that the API needs. Errors wrap spot.ErrNotEnabled,
// spot.ErrNotConnected or spot.ErrNoNode.
type Spot interface {
	// Interrupt announces that a node of a cluster will be terminated. A later call replaces the
	// deadline.
	Interrupt(ctx context.Context, cluster, node string, deadline time.Time) error
	// Withdraw withdraws the announcement; it succeeds if there is none.
	Withdraw(ctx context.Context, cluster, node string) error
	// Distributions returns the workloads whose pods are split in a cluster, unordered.
	Distributions(cluster string) ([]api.DistributedWorkload, error)
}

// noSpot is the Spot of a server without a spot runner.
type noSpot struct{}

func (noSpot) Interrupt(context.Context, string, string, time.Time) error {
	return spot.ErrNotConnected
}

func (noSpot) Withdraw(context.Context, string, string) error { return spot.ErrNotConnected }

func (noSpot) Distributions(string) ([]api.DistributedWorkload, error) {
	return nil, spot.ErrNotConnected
}

// maxNotice is how far ahead a termination may be announced. Anything later is a mistake, or a
// matter for the cluster's own maintenance.
const maxNotice = 24 * time.Hour

// Node is the node of a cluster in a path.
type Node struct{ cluster, name string }

// Resolve implements huma.Resolver.
func (n *Node) Resolve(ctx huma.Context) []error {
	n.cluster, n.name = ctx.Param("cluster"), ctx.Param("node")
	return nil
}

type interruptInput struct {
	Node    Node
	Payload operation.Payload
}

type withdrawInput struct{ Node Node }

type distributionsInput struct{ Target operation.Target }

type interruptionOutput struct{ Body api.Interruption }

type distributionsOutput struct{ Body distributionList }

// distributionList is the body of a list of distributions.
type distributionList struct {
	Items []api.DistributedWorkload `json:"items" doc:"Sorted by namespace, kind and name."`
}

// nodes serves requests about the on-demand and spot nodes of clusters.
type nodes struct {
	api    *operation.API
	rights auth.Rights
	view   *view
	spot   Spot
	now    func() time.Time
}

// routes adds the routes of clusters with spot nodes.
func (n *nodes) routes() {
	clusters, _ := api.LookupKind(api.KindCluster)
	path := collectionPath(clusters, false) + "/{cluster}"
	describe := func(method, path, id, summary string) huma.Operation {
		op := n.api.OfKind(clusters, method, path, id, summary, nil)
		op.OperationID, op.Errors = id, []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
		return op
	}
	interrupt := operation.Declare(auth.AccessReport, describe(http.MethodPost, path+"/nodes/{node}/interruption", "announce-interruption", "Announce that a node is about to terminate, so that its pods are replaced in time"))
	interrupt.Description = "The response contains the deadline that now applies. 503 means that the cluster is not connected at present."
	interrupt.Responses["200"] = operation.JSONResponse("OK", n.api.Schema(api.Interruption{}))
	interrupt.MaxBodyBytes = n.api.MaxBody
	operation.Register(n.api, operation.AtLeader(interrupt), n.interrupt)
	n.api.DescribeBody(interrupt, n.api.Schema(api.Interruption{}), false)

	withdraw := operation.Declare(auth.AccessReport, describe(http.MethodDelete, path+"/nodes/{node}/interruption", "withdraw-interruption", "Cancel the announced termination of a node"))
	operation.Register(n.api, operation.AtLeader(withdraw), n.withdraw)

	list := describe(http.MethodGet, path+"/distributions", "list-distributions", "List the workloads whose pods are split over on-demand and spot nodes in a cluster")
	operation.Register(n.api, operation.AtLeader(list), n.listDistributions)
}

func (n *nodes) interrupt(ctx context.Context, in *interruptInput) (*interruptionOutput, error) {
	if err := n.mayAnnounce(ctx, in.Node.cluster); err != nil {
		return nil, err
	}
	var wanted api.Interruption
	if len(bytes.TrimSpace(in.Payload.Data)) > 0 {
		if err := operation.Decode(in.Payload.Data, &wanted); err != nil {
			return nil, err
		}
	}
	now := n.now().UTC()
	deadline := now.Add(spot.NoticeTime) // the usual notice of clouds
	if wanted.Deadline != nil {
		deadline = wanted.Deadline.UTC()
	}
	switch {
	case deadline.Before(now):
		return nil, problem.Invalid("deadline", "%s is in the past: it is %s now", deadline.Format(time.RFC3339), now.Format(time.RFC3339))
	case deadline.Sub(now) > maxNotice:
		return nil, problem.Invalid("deadline", "%s is more than a day ahead: announce it within a day of the end", deadline.Format(time.RFC3339))
	}
	if err := askOfNode(in.Node, func() error { return n.spot.Interrupt(ctx, in.Node.cluster, in.Node.name, deadline) }); err != nil {
		return nil, err
	}
	return &interruptionOutput{Body: api.Interruption{Deadline: &deadline}}, nil
}

func (n *nodes) withdraw(ctx context.Context, in *withdrawInput) (*struct{}, error) {
	if err := n.mayAnnounce(ctx, in.Node.cluster); err != nil {
		return nil, err
	}
	return nil, askOfNode(in.Node, func() error { return n.spot.Withdraw(ctx, in.Node.cluster, in.Node.name) })
}

// mayAnnounce checks who may announce the termination of a node: those who may write clusters, and
// the cluster's agent.
func (n *nodes) mayAnnounce(ctx context.Context, name string) error {
	who := auth.Of(ctx)
	if err := who.MayReportAtAll(api.KindCluster); err != nil {
		return err
	}
	cluster := n.view.cluster(name)
	if cluster == nil {
		return n.view.notFound(auth.ClusterKey(name))
	}
	if err := who.MayReport(cluster); err != nil {
		return err
	}
	return splits(cluster)
}

// splits returns an error if nothing is split in a cluster.
func splits(cluster *api.Cluster) error {
	key := api.KeyOf(cluster)
	switch {
	case !cluster.SpotEnabled():
		return problem.New(api.ProblemSpotDisabled, "spot is not enabled for %s: set spec.spot.enabled", key)
	case !cluster.HasKubeconfig():
		return problem.New(api.ProblemSpotDisabled, "%s has no kubeconfig: set spec.kubernetes.kubeconfig, so that the server can watch its nodes and pods", key)
	}
	return nil
}

// nodeShape is the form of node names: DNS-1123 subdomains.
var nodeShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// askOfNode calls the spot runner about a node, and converts the error.
func askOfNode(node Node, ask func() error) error {
	err := spot.ErrNoNode
	if nodeShape.MatchString(node.name) {
		err = ask()
	}
	if errors.Is(err, spot.ErrNoNode) {
		return problem.New(api.ProblemNotFound, "%s has no node %q", auth.ClusterKey(node.cluster), node.name)
	}
	return spotProblem(node.cluster, err)
}

// spotProblem converts an error about a cluster to a problem.
func spotProblem(cluster string, err error) error {
	key := auth.ClusterKey(cluster)
	switch {
	case errors.Is(err, spot.ErrNotEnabled):
		return problem.New(api.ProblemSpotDisabled, "spot is not enabled for %s: set spec.spot.enabled", key)
	case errors.Is(err, spot.ErrNotConnected):
		return problem.Unavailable(key.String() + " is not connected at present: its condition SpotReady says why; repeat the request")
	}
	return err
}

func (n *nodes) listDistributions(ctx context.Context, in *distributionsInput) (*distributionsOutput, error) {
	key := auth.ClusterKey(in.Target.Namespace)
	who := auth.Of(ctx)
	if err := n.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	cluster := n.view.cluster(key.Name)
	if cluster == nil {
		return nil, n.view.notFound(key)
	}
	if err := who.MayRead(cluster); err != nil {
		return nil, err
	}
	if err := splits(cluster); err != nil {
		return nil, err
	}
	found, err := n.spot.Distributions(key.Name)
	if err != nil {
		return nil, spotProblem(key.Name, err)
	}
	items := make([]api.DistributedWorkload, 0, len(found))
	for _, w := range found {
		if who.Reads(api.KindWorkload, auth.OwnersIn(w.Namespace)...) {
			items = append(items, w)
		}
	}
	slices.SortFunc(items, func(a, b api.DistributedWorkload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return &distributionsOutput{Body: distributionList{Items: items}}, nil
}
