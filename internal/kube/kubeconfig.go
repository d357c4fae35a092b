// Package kube connects to Kubernetes clusters with the kubeconfigs of users.
package kube

import (
	"errors"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ErrKubeconfig is wrapped by every error about a kubeconfig, none of which repeats a part of it.
var ErrKubeconfig = errors.New("the kubeconfig cannot be used")

// Load parses a kubeconfig. It must be self-contained: users must not be able to make the server
// read its own files or run programs.
func Load(kubeconfig api.Secret) (*rest.Config, error) {
	config, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		return nil, invalid("it is not YAML in the form of a kubeconfig, or its base64 data is invalid")
	}
	for _, user := range config.AuthInfos {
		if reason := refused(user); reason != "" {
			return nil, invalid(reason)
		}
	}
	for _, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, invalid("it names a file (certificate-authority)")
		}
	}
	rested, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, invalid("it is not complete")
	}
	return rested, nil
}

func refused(user *clientcmdapi.AuthInfo) string {
	switch {
	case user.Exec != nil || user.AuthProvider != nil:
		return "it runs programs (exec, auth-provider)"
	case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
		return "it names files (client-certificate, client-key, tokenFile)"
	}
	return ""
}

func invalid(reason string) error { return &kubeconfigError{reason} }

// kubeconfigError says what is wrong with a kubeconfig.
type kubeconfigError struct{ reason string }

// Error implements error.
func (e *kubeconfigError) Error() string { return ErrKubeconfig.Error() + ": " + e.reason }

// Unwrap returns ErrKubeconfig.
func (e *kubeconfigError) Unwrap() error { return ErrKubeconfig }
