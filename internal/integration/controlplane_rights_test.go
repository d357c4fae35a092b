//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// yamlBlock matches an example in YAML in a guide.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// grantDocumented gives the server's user exactly the roles in the guides, and returns its kubeconfig.
func (p *controlPlane) grantDocumented() api.Secret {
	p.t.Helper()
	roles := 0
	for _, guide := range []string{"kubernetes-clusters", "spot"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "templates", "guides", guide+".md.tmpl"))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
			for document := range strings.SplitSeq(string(block[1]), "\n---\n") {
				roles += p.grant([]byte(document))
			}
		}
	}
	if roles < 3 {
		p.t.Fatalf("the guides contain only %d roles", roles)
	}
	return p.kubeconfigIn(userServer)
}

// grant creates a role and binds the server's user to it. It returns the number of roles in the document: one or none.
func (p *controlPlane) grant(document []byte) int {
	p.t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		p.t.Fatalf("%v in\n%s", err, document)
	}
	rbac := p.client.RbacV1()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: userServer, APIGroup: rbacv1.GroupName}}
	var err error
	switch kind.Kind {
	case "ClusterRole":
		var role rbacv1.ClusterRole
		decodeRole(p.t, document, &role)
		if _, err = rbac.ClusterRoles().Create(p.t.Context(), &role, metav1.CreateOptions{}); err == nil {
			_, err = rbac.ClusterRoleBindings().Create(p.t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind.Kind, Name: role.Name},
			}, metav1.CreateOptions{})
		}
	case "Role":
		var role rbacv1.Role
		decodeRole(p.t, document, &role)
		if _, err = rbac.Roles(role.Namespace).Create(p.t.Context(), &role, metav1.CreateOptions{}); err == nil {
			_, err = rbac.RoleBindings(role.Namespace).Create(p.t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind.Kind, Name: role.Name},
			}, metav1.CreateOptions{})
		}
	default:
		return 0
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 1
}

func decodeRole(t *testing.T, document []byte, role any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, role); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}
