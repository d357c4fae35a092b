package api

import (
	"net/url"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of a kubeconfig file that is checked.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server               string `json:"server"`
			ProxyURL             string `json:"proxy-url"`
			CertificateAuthority string `json:"certificate-authority"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			ClientCertificate string `json:"client-certificate"`
			ClientKey         string `json:"client-key"`
			TokenFile         string `json:"tokenFile"`
			Exec              any    `json:"exec"`
			AuthProvider      any    `json:"auth-provider"`
		} `json:"user"`
	} `json:"users"`
}

// checkKubeconfig accepts only a self-contained kubeconfig. If it could refer to files or programs,
// anyone who may write a cluster could make the server read its own files or run programs. Messages
// never repeat any of the text.
func checkKubeconfig(text string) string {
	var k kubeconfig
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		return "is not a kubeconfig: it is not YAML in the form of a kubeconfig"
	}
	if k.CurrentContext == "" {
		return "is not a complete kubeconfig: current-context is missing"
	}
	for _, context := range k.Contexts {
		if context.Name == k.CurrentContext {
			return k.check(context.Context.Cluster, context.Context.User)
		}
	}
	return "is not a complete kubeconfig: contexts has no entry with the name in current-context"
}

func (k *kubeconfig) check(cluster, user string) string {
	found := false
	for _, c := range k.Clusters {
		if c.Name != cluster {
			continue
		}
		found = true
		if u, err := url.Parse(c.Cluster.Server); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !PossiblePort(u) {
			return "is not a complete kubeconfig: the server of its cluster must be an address such as https://host:6443"
		}
	}
	if !found {
		return "is not a complete kubeconfig: clusters has no entry with the name in the current context"
	}
	found = user == ""
	for _, u := range k.Users {
		found = found || u.Name == user
		if u.User.Exec != nil || u.User.AuthProvider != nil {
			return "must not run programs (exec, auth-provider): the server would run them; give a token or a client certificate"
		}
		if u.User.ClientCertificate != "" || u.User.ClientKey != "" || u.User.TokenFile != "" {
			return "must not name files: give client-certificate-data, client-key-data or token in their place (kubectl config view --raw --flatten)"
		}
	}
	for _, c := range k.Clusters {
		if c.Cluster.CertificateAuthority != "" {
			return "must not name files: give certificate-authority-data in place of certificate-authority (kubectl config view --raw --flatten)"
		}
	}
	if !found {
		return "is not a complete kubeconfig: users has no entry with the name in the current context"
	}
	return ""
}
