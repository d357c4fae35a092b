package api

import "crypto/x509"

// OpenStackSpec configures access to OpenStack: the address of the identity service and the
// credentials. Without credentials, the server does not query OpenStack; a collector outside the
// server then pushes the data of a cloud.
type OpenStackSpec struct {
	AuthURL                     string   `json:"auth_url" doc:"URL of the identity service, such as 'https://keystone:5000/v3'."`
	Username                    string   `json:"username,omitempty" doc:"Name of the user. A password and a project are required with it."`
	UserID                      string   `json:"user_id,omitempty" doc:"ID of the user, instead of 'username' and 'user_domain_name'."`
	UserDomainName              string   `json:"user_domain_name,omitempty" defaultBy:"username *=Default" doc:"Domain of the user."`
	Password                    Secret   `json:"password,omitzero" doc:"Password of the user. It is kept only while the user, 'auth_url' and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
	ProjectName                 string   `json:"project_name,omitempty" doc:"Name of the project in which the user has a role."`
	ProjectID                   string   `json:"project_id,omitempty" doc:"ID of the project, instead of 'project_name' and 'project_domain_name'."`
	ProjectDomainName           string   `json:"project_domain_name,omitempty" defaultBy:"project_name *=Default" doc:"Domain of the project."`
	ApplicationCredentialID     string   `json:"application_credential_id,omitempty" doc:"ID of an application credential, instead of a user, password and project."`
	ApplicationCredentialSecret Secret   `json:"application_credential_secret,omitzero" doc:"Secret of the application credential. It is kept only while the application credential, 'auth_url' and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
	Regions                     []string `json:"regions,omitempty" absent:"all regions that the identity service lists" doc:"Regions to use."`
	Interval                    Duration `json:"interval,omitempty" default:"60s" shortest:"100ms" doc:"Time between two collections."`
	Timeout                     Duration `json:"timeout,omitempty" default:"60s" shortest:"1ms" doc:"Time limit for collecting one region."`
	CACert                      string   `json:"ca_cert,omitempty" doc:"PEM certificates that the servers' certificates must chain to."`
	InsecureSkipVerify          bool     `json:"insecure_skip_verify,omitempty" default:"false" doc:"If true, the servers' certificates are not verified."`
}

// Defaults of OpenStackSpec.
const (
	DefaultOpenStackDomain          = "Default"
	DefaultCollectInterval Duration = "60s"
	DefaultCollectTimeout  Duration = "60s"
	MaxUnreachableFailures int64    = 5
)

// HasCredentials reports whether the server has credentials to query OpenStack.
func (s *OpenStackSpec) HasCredentials() bool {
	return s != nil && (!s.Password.IsZero() || !s.ApplicationCredentialSecret.IsZero())
}

const openStackField = "spec.openstack"

func (s *OpenStackSpec) validate(errs *FieldErrors) {
	if s == nil {
		return
	}
	errs.check(openStackField+".auth_url", checkURL(s.AuthURL))
	s.validateCredentials(errs)
	checkUnique(errs, openStackField+".regions", s.Regions)
	for i, region := range s.Regions {
		errs.check(index(openStackField+".regions", i), checkText(region))
	}
	if s.CACert != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CACert)) {
		errs.Add(openStackField+".ca_cert", "contains no PEM certificate: it must have a block that begins with -----BEGIN CERTIFICATE-----")
	}
}

// validateCredentials accepts an application credential, a user with password and project, or
// neither.
func (s *OpenStackSpec) validateCredentials(errs *FieldErrors) {
	application := s.ApplicationCredentialID != "" || !s.ApplicationCredentialSecret.IsZero()
	user := s.Username != "" || s.UserID != "" || !s.Password.IsZero()
	project := s.ProjectName != "" || s.ProjectID != ""
	absent := func(field, value, because string) {
		if value != "" {
			errs.Add(openStackField+"."+field, "must be absent because %s is set", because)
		}
	}
	if application {
		if s.ApplicationCredentialID == "" {
			errs.Add(openStackField+".application_credential_id", "is required with application_credential_secret")
		}
		absent("username", s.Username, "an application credential")
		absent("user_id", s.UserID, "an application credential")
		absent("password", s.Password.Reveal(), "an application credential")
		absent("project_name", s.ProjectName, "an application credential")
		absent("project_id", s.ProjectID, "an application credential")
		return
	}
	if s.Username != "" {
		absent("user_id", s.UserID, "username")
	}
	if s.ProjectName != "" {
		absent("project_id", s.ProjectID, "project_name")
	}
	if !user {
		return
	}
	if s.Username == "" && s.UserID == "" {
		errs.Add(openStackField+".username", "is required with a password")
	}
	if !project {
		errs.Add(openStackField+".project_name", "is required with a user: the project in which the user has a role")
	}
}

func (s *OpenStackSpec) secrets(out map[string]Secret) {
	if s == nil {
		return
	}
	if !s.Password.IsZero() {
		out[openStackField+".password"] = s.Password
	}
	if !s.ApplicationCredentialSecret.IsZero() {
		out[openStackField+".application_credential_secret"] = s.ApplicationCredentialSecret
	}
}

// receiver returns the identity service. A password is bound to its user, and the secret of an
// application credential to that credential.
func (s *OpenStackSpec) receiver(field string) receiver {
	if s == nil {
		return receiver{absent: true}
	}
	absent := s.Username == "" && s.UserID == ""
	if field == openStackField+".application_credential_secret" {
		absent = s.ApplicationCredentialID == ""
	}
	return receiver{absent: absent, address: origin(s.AuthURL), trust: trustOf(s.CACert, s.InsecureSkipVerify)}
}

// withSecret returns a copy with one of the secrets set.
func (s *OpenStackSpec) withSecret(field string, secret Secret) *OpenStackSpec {
	copied := OpenStackSpec{}
	if s != nil {
		copied = *s
	}
	switch field {
	case openStackField + ".password":
		copied.Password = secret
	case openStackField + ".application_credential_secret":
		copied.ApplicationCredentialSecret = secret
	default:
		return s
	}
	return &copied
}
