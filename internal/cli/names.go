package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// shortNames are the short forms of kinds.
var shortNames = map[api.Kind]string{
	api.KindCluster: "cl", api.KindClusterSet: "cs", api.KindCloud: "cd", api.KindOpenStackProject: "op",
	api.KindMagnumCluster: "mc", api.KindMetricsProvider: "mp", api.KindMetric: "m", api.KindPlacementScore: "ps",
	api.KindPlacement: "pl", api.KindPropagationPolicy: "pp", api.KindWorkload: "wl", api.KindMoveWindow: "mw", api.KindRole: "ro", api.KindRoleBinding: "rb",
}

// parseKind finds a kind by its name, plural or short form, with "-" or "_".
func parseKind(text string) (api.KindInfo, error) {
	wanted := strings.ToLower(strings.ReplaceAll(text, "_", "-"))
	for _, info := range api.Kinds {
		if wanted == info.Collection || wanted == singular(info) || wanted == singular(info)+"s" || wanted == shortNames[info.Kind] {
			return info, nil
		}
	}
	return api.KindInfo{}, usage("%q is not a kind; the kinds are %s", text, strings.Join(kindNames(), ", "))
}

// singular returns the name of a kind as people write it: "metrics-provider".
func singular(info api.KindInfo) string { return strings.ReplaceAll(string(info.Kind), "_", "-") }

// kindNames returns the names of all kinds.
func kindNames() []string {
	names := make([]string, len(api.Kinds))
	for i, info := range api.Kinds {
		names[i] = singular(info)
	}
	slices.Sort(names)
	return names
}

// kindList returns a line for each kind, with its short form.
func kindList() string {
	var lines []string
	for _, info := range api.Kinds {
		lines = append(lines, fmt.Sprintf("  %-20s %s", singular(info), shortNames[info.Kind]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// parseKey returns the key of an object: NAME or NAMESPACE/NAME, where objects of a cluster have the
// cluster in place of the namespace.
func parseKey(info api.KindInfo, text, namespace string) (api.Key, error) {
	key := api.Key{Kind: info.Kind, Name: text}
	before, after, qualified := strings.Cut(text, "/")
	switch {
	case qualified && info.Scope == api.Global:
		return key, usage("%q: a %s has no namespace", text, singular(info))
	case qualified:
		key.Namespace, key.Name = before, after
	case info.Scope == api.OfCluster:
		return key, usage("%q: write CLUSTER/NAME, because a %s belongs to a cluster", text, singular(info))
	case info.Scope == api.Namespaced:
		key.Namespace = namespace
	}
	return key, nil
}

// parseKeys returns the keys of objects, in the order of their names.
func parseKeys(info api.KindInfo, names []string, namespace string) ([]api.Key, error) {
	keys := make([]api.Key, len(names))
	for i, name := range names {
		var err error
		if keys[i], err = parseKey(info, name, namespace); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// completeKinds completes the name of a kind.
func completeKinds(wanted func(api.KindInfo) bool) []string {
	var names []string
	for _, info := range api.Kinds {
		if wanted(info) {
			names = append(names, info.Collection)
		}
	}
	return names
}

// completeObjects completes a kind, then names of objects of that kind on the server.
func (s *session) completeObjects(wanted func(api.KindInfo) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return completeKinds(wanted), cobra.ShellCompDirectiveNoFileComp
		}
		info, err := parseKind(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return s.namesOf(cmd, info), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeClusters completes the name of a cluster.
func (s *session) completeClusters(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	info, _ := api.LookupKind(api.KindCluster)
	return s.namesOf(cmd, info), cobra.ShellCompDirectiveNoFileComp
}

// completed limits how many names are completed.
const completed = 200

// namesOf returns names of objects for completion: without a server, none.
func (s *session) namesOf(cmd *cobra.Command, info api.KindInfo) []string {
	server, err := s.connect(cmd.Context())
	if err != nil {
		return nil
	}
	options := client.ListOptions{PageSize: completed}
	if info.Scope == api.Namespaced {
		options.Namespace = s.connection.namespace()
	}
	var names []string
	for object, err := range server.List(cmd.Context(), info.Kind, options) {
		if err != nil || len(names) == completed {
			break
		}
		names = append(names, objectName(info, object))
	}
	return names
}

// objectName returns the name of an object as parseKey reads it.
func objectName(info api.KindInfo, object api.Object) string {
	key := api.KeyOf(object)
	if info.Scope == api.Namespaced || key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// complete completes the value of a flag.
func complete(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		cobra.CompDebugln(err.Error(), false) // the flag is not defined, or is completed twice
	}
}

func anyKind(api.KindInfo) bool { return true }

// explained reports whether the server explains objects of a kind.
func explained(info api.KindInfo) bool {
	return slices.Contains(api.ExplainedKinds, info.Kind)
}

// rescheduled reports whether objects of a kind can be decided again on request.
func rescheduled(info api.KindInfo) bool {
	return slices.Contains(api.DecidedKinds, info.Kind)
}
