package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/openstack"
)

// collectConfig is the configuration of collect.
type collectConfig struct {
	ConfigFile string

	Servers        []string
	TokenFile      string
	ServerCAFile   string
	ClientCertFile string
	ClientKeyFile  string

	Cloud                           string
	AuthURL                         string
	Username                        string
	UserID                          string
	UserDomainName                  string
	PasswordFile                    string
	ProjectName                     string
	ProjectID                       string
	ProjectDomainName               string
	ApplicationCredentialID         string
	ApplicationCredentialSecretFile string
	Regions                         []string
	Interval                        time.Duration
	RefreshInterval                 time.Duration
	Timeout                         time.Duration
	CACertFile                      string
	InsecureSkipVerify              bool

	LogLevel  string
	LogFormat string

	// Secrets have no flag, because command lines of processes are readable by other users.
	token    string
	password string
	secret   string
}

// define defines the flags, which are the table of settings. For a secret there is only the flag
// for its file.
func (c *collectConfig) define(flags *pflag.FlagSet) {
	flags.StringVar(&c.ConfigFile, configFlag, "", "YAML or JSON file with settings; every other flag is a key in it, with _ for -")
	defineEndpoints(flags, &c.Servers, "server", "address of the server to push to")
	flags.StringVar(&c.TokenFile, "token-file", "", "file with a token of role agent")
	flags.StringVar(&c.ServerCAFile, "server-ca-file", "", "PEM certificates that the server's certificate must chain to")
	flags.StringVar(&c.ClientCertFile, "client-cert-file", "", "PEM client certificate for the server")
	flags.StringVar(&c.ClientKeyFile, "client-key-file", "", "PEM key of client-cert-file")

	flags.StringVar(&c.Cloud, "cloud", "", "name of the cloud on the server")
	flags.StringVar(&c.AuthURL, "auth-url", "", "address of the OpenStack identity service, such as https://keystone:5000/v3")
	flags.StringVar(&c.Username, "username", "", "user name")
	flags.StringVar(&c.UserID, "user-id", "", "instead of username and user-domain-name")
	flags.StringVar(&c.UserDomainName, "user-domain-name", "", "domain of the user (default \""+api.DefaultOpenStackDomain+"\")")
	flags.StringVar(&c.PasswordFile, "password-file", "", "file with the password of the user")
	flags.StringVar(&c.ProjectName, "project-name", "", "project in which the user has a role")
	flags.StringVar(&c.ProjectID, "project-id", "", "instead of project-name and project-domain-name")
	flags.StringVar(&c.ProjectDomainName, "project-domain-name", "", "domain of the project (default \""+api.DefaultOpenStackDomain+"\")")
	flags.StringVar(&c.ApplicationCredentialID, "application-credential-id", "", "instead of user, password and project")
	flags.StringVar(&c.ApplicationCredentialSecretFile, "application-credential-secret-file", "", "file with the secret of the application credential")
	flags.StringSliceVar(&c.Regions, "regions", nil, "regions to collect (default all that the identity service lists)")
	flags.DurationVar(&c.Interval, "interval", api.DefaultCollectInterval.Or(0), "time between two collections")
	flags.DurationVar(&c.RefreshInterval, "refresh-interval", openstack.DefaultRefresh, "time between two pushes of everything, including what the server should already have")
	flags.DurationVar(&c.Timeout, "timeout", api.DefaultCollectTimeout.Or(0), "time limit for collecting one region")
	flags.StringVar(&c.CACertFile, "ca-cert-file", "", "PEM certificates that OpenStack's certificates must chain to")
	flags.BoolVar(&c.InsecureSkipVerify, "insecure-skip-verify", false, "do not verify OpenStack's certificates")

	flags.StringVar(&c.LogLevel, "log-level", "info", "lowest level to log: debug, info, warn or error")
	flags.StringVar(&c.LogFormat, "log-format", "text", "text or json")
}

// minRefresh is the minimum interval between full pushes.
const minRefresh = time.Second

// Environment variables for the secrets, instead of files.
const (
	tokenVariable    = "SCHEDULER_TOKEN"
	passwordVariable = "SCHEDULER_PASSWORD"
	secretVariable   = "SCHEDULER_APPLICATION_CREDENTIAL_SECRET" //nolint:gosec // a name, not a secret
)

func newCollectCommand() *cobra.Command {
	var c collectConfig
	cmd := &cobra.Command{
		Use:   "collect",
		Short: "Collect the capacity of an OpenStack cloud and push it to a server",
		Long: `Collect the capacity of an OpenStack cloud, by region and availability zone, and
push changes to a server that has no credentials for it. Everything is pushed if the
server does not have it, and at intervals. The command runs until it is stopped.

Every flag can also be set as an environment variable or a configuration file key:
--auth-url is SCHEDULER_AUTH_URL and auth_url. Flags take precedence
over variables, and variables over the file. Secrets have no flags: each is read from a file that a flag
names, or from ` + tokenVariable + `, ` + passwordVariable + ` or
` + secretVariable + `.`,
		Args: cobra.NoArgs,
	}
	c.define(cmd.Flags())
	nameVariables(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		access, err := c.load(cmd.Flags(), os.Getenv)
		if err != nil {
			return err
		}
		logger, _, err := newLogger(config{LogLevel: c.LogLevel, LogFormat: c.LogFormat}, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return c.collect(cmd.Context(), access, logger)
	}
	return cmd
}

// load completes the flags from the environment and the files, and returns the access to OpenStack.
func (c *collectConfig) load(flags *pflag.FlagSet, getenv func(string) string) (*api.OpenStackSpec, error) {
	if err := fill(flags, getenv); err != nil {
		return nil, err
	}
	var errs []error
	read := func(flag, path string) string {
		if path == "" {
			return ""
		}
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
		return strings.TrimRight(string(data), "\r\n")
	}
	c.token = cmp.Or(read("token-file", c.TokenFile), getenv(tokenVariable))
	c.password = cmp.Or(read("password-file", c.PasswordFile), getenv(passwordVariable))
	c.secret = cmp.Or(read("application-credential-secret-file", c.ApplicationCredentialSecretFile), getenv(secretVariable))
	cloud := &api.Cloud{Metadata: api.Metadata{Name: c.Cloud}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{
		AuthURL: c.AuthURL, Username: c.Username, UserID: c.UserID, UserDomainName: c.UserDomainName, Password: api.NewSecret(c.password),
		ProjectName: c.ProjectName, ProjectID: c.ProjectID, ProjectDomainName: c.ProjectDomainName,
		ApplicationCredentialID: c.ApplicationCredentialID, ApplicationCredentialSecret: api.NewSecret(c.secret),
		Regions: c.Regions, Interval: api.Duration(c.Interval.String()), Timeout: api.Duration(c.Timeout.String()),
		CACert: read("ca-cert-file", c.CACertFile), InsecureSkipVerify: c.InsecureSkipVerify,
	}}}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.RefreshInterval < minRefresh {
		return nil, fmt.Errorf("refresh-interval: %q must be at least %s", c.RefreshInterval.String(), minRefresh)
	}
	if c.Cloud == "" {
		return nil, errors.New("cloud: is required: the name of the cloud on the server")
	}
	cloud.SetDefaults()
	if err := cloud.Validate().Err(); err != nil {
		return nil, asSettings(err)
	}
	if !cloud.Spec.OpenStack.HasCredentials() {
		return nil, fmt.Errorf("password-file: is required, unless %s or an application credential is set", passwordVariable)
	}
	return cloud.Spec.OpenStack, nil
}

// asSettings replaces the fields of a cloud in an error by the names of the settings.
func asSettings(err error) error {
	fields, ok := errors.AsType[api.FieldErrors](err)
	if !ok {
		return err
	}
	var out []error
	for _, field := range fields {
		name := strings.TrimPrefix(field.Field, "spec.openstack.")
		if name == "metadata.name" {
			name = "cloud"
		}
		out = append(out, fmt.Errorf("%s: %s", strings.ReplaceAll(name, "_", "-"), field.Message))
	}
	return errors.Join(out...)
}

// collect collects and pushes until ctx is done.
func (c *collectConfig) collect(ctx context.Context, access *api.OpenStackSpec, logger *slog.Logger) error {
	// A report that was not delivered is pushed again together with later changes, so requests are
	// not retried.
	server, err := client.New(client.Options{
		MaxRetries: -1,
		Endpoints:  trimmed(c.Servers), Token: api.NewSecret(c.token), CACertFile: c.ServerCAFile,
		ClientCertFile: c.ClientCertFile, ClientKeyFile: c.ClientKeyFile, UserAgent: "scheduler-server/" + version,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	name := collectorName()
	logger.Info("the collector is starting", "version", version, "cloud", c.Cloud, "auth_url", c.AuthURL, "server", server.Endpoints(), "collector", name)
	err = openstack.Push(ctx, openstack.PushOptions{
		Cloud: c.Cloud, Access: access, Network: addresspolicy.OnLoopback(), Collector: name, Logger: logger, Now: time.Now, Refresh: c.RefreshInterval,
		Send: func(ctx context.Context, report api.CloudReport) error { return push(ctx, server, c.Cloud, report) },
	})
	logger.Info("the collector has stopped")
	return err
}

// push delivers one report.
func push(ctx context.Context, server *client.Client, cloud string, report api.CloudReport) error {
	_, err := server.ReportCloud(ctx, cloud, report)
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		switch {
		case problem.Type == api.ProblemReportOutOfOrder:
			return fmt.Errorf("%w: %w", openstack.ErrOutOfOrder, problem)
		case problem.Status == http.StatusRequestEntityTooLarge: // a proxy may respond like this too
			return fmt.Errorf("%w: %w", openstack.ErrTooLarge, problem)
		}
	}
	return err
}

// collectorName returns a name that is different at every start.
func collectorName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "collector"
	}
	return host + "-" + rand.Text()
}
