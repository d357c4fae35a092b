package main

// testCode are the folders of packages that are test code.
var testCode = []string{
	"internal/certtest", "internal/conformance", "internal/cputime", "internal/engine/enginetest", "internal/eventually", "internal/faketime",
	"internal/logtest", "internal/proxytest", "internal/store/storetest", "internal/terraform/terraformtest",
	"internal/testkit/seeded", "internal/testkit/servertest", "internal/testkit/tempstore", "internal/tracing/otlptest",
}

// exceptions are exported although no production code outside of their package uses
// them: by reason, as folder.Name or folder.Type.Member.
var exceptions = map[string][]string{
	"the client offers every operation, also those that only agents and tests call": {
		"internal/client.Client.Endpoint", "internal/client.Client.Heartbeat", "internal/client.Client.Interrupt",
		"internal/client.Client.ReportHealth",
		"internal/client.Client.WithdrawInterruption", "internal/client.IsPreconditionFailed",
	},
	"the JSON library calls it": {
		"internal/api.ClusterAffinity.IsZero", "internal/api.PropagationPlacement.IsZero",
	},
	"huma fills it in, and takes only what is exported": {
		"internal/httpapi.Node", "internal/httpapi.PutInput.Payload", "internal/httpapi.PutInput.Target",
		"internal/httpapi/arktos.Payload", "internal/httpapi/arktos.Payload.Data",
	},
	"it belongs to a value of which others use the rest": {
		"internal/api.DefaultBy.Cases", "internal/api.DefaultCase", "internal/api.DefaultCase.Value", "internal/api.DefaultCase.When",
		"internal/api.Field.Absent", "internal/api.Field.MaxLength", "internal/api.Field.Ref", "internal/api.Field.Shortest",
		"internal/fleet.Damage.Spec", "internal/fleet.Damage.Status",
		"internal/spot.Requirement.Key", "internal/spot.Requirement.Operator",
		"internal/spot/webhook.Creation.GenerateName", "internal/store.Finding.File", "internal/store.Finding.Key",
		"internal/store.Finding.Part", "internal/store.Finding.What", "internal/store.Peer.Name", "internal/store.Peer.URL",
		"internal/workloadidentity.Auto", "internal/workloadidentity.Identity.Source",
		"internal/workloadidentity.None",
	},
	"it is what an error says": {
		"internal/auth/jwt.RejectedError", "internal/constraint.ErrorKind", "internal/constraint.SyntaxError", "internal/reconcile.ErrNotFound",
		"internal/store.Conflict.Expected",
		"internal/store.Conflict.Part", "internal/terraform.ImportIDError",
	},
	"others implement it": {
		"internal/httpapi/operation.Streamed",
	},
	"tests of other packages make random objects of all its values, or compare with it": {
		"internal/api.BuiltinPrioritizers", "internal/api.DynamicWeightAvailable", "internal/api.MaxScore", "internal/api.MinScore",
		"internal/api.SpreadRegion", "internal/api.TaintEffects", "internal/api.WorkloadStatus.HealthOn",
		"internal/auth.Roles.Names", "internal/httpapi/arktos.PodBound", "internal/httpapi/arktos.PodPending",
	},
	"the tests of rights go through every field that refers to an object": {
		"internal/api.ReferenceField", "internal/api.ReferenceField.Field", "internal/api.ReferenceField.In",
		"internal/api.ReferenceField.Kind", "internal/api.ReferenceField.Optional", "internal/api.ReferenceField.To",
		"internal/api.ReferenceFields", "internal/api.ReferenceNamespace",
	},
	"tests of packages that rest on it look into it": {
		"internal/auth.Sessions.UnderWay", "internal/keyed.Group.Faults", "internal/kube.Load",
		"internal/kube/feed.AmountOf", "internal/kube/feed.Feed.Attach", "internal/kube/feed.ListsAtOnce", "internal/kube/feed.NodeOf",
		"internal/kube/feed.PageSize", "internal/kube/feed.PodOf", "internal/kube/feed.Table.Len", "internal/kube/feed.Table.Put", "internal/kube/feed.Table.Remove", "internal/store.NewCodec",
		"internal/store.Store.Client", "internal/store.Store.Compact", "internal/terraform.Session.Connected",
		"internal/terraform.Session.Namespace",
	},
	"the external tests of its own package use it": {
		"internal/terraform.DecisionWait", "internal/terraform.DecisionWait.Created", "internal/terraform.DecisionWait.Limit",
		"internal/terraform.DecisionWait.Object", "internal/terraform.DecisionWait.Plan",
	},
}
