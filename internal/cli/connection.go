package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// connection says how to reach the server. Flags come first, then the context that --context or its
// variable names, then the variables of the other settings, then the current context.
type connection struct {
	configFile  string
	contextFlag string
	// given are the settings from flags.
	given connectionSettings

	// The rest is set by load. sources are the settings in their order of precedence, and used are
	// those in force.
	loaded      bool
	contextName string
	sources     []*connectionSettings
	used        connectionSettings
}

// connectionSettings are the settings of a context.
type connectionSettings struct {
	Endpoints      []string `json:"endpoints,omitempty"`
	Namespace      string   `json:"namespace,omitempty"`
	TokenFile      string   `json:"token_file,omitempty"`
	CACertFile     string   `json:"ca_cert_file,omitempty"`
	ClientCertFile string   `json:"client_cert_file,omitempty"`
	ClientKeyFile  string   `json:"client_key_file,omitempty"`

	// Token is in the file of contexts or in a variable.
	Token string `json:"token,omitempty"`
}

// setting is a connection setting: a flag, its variable, and where its value is. The variables are
// those of the provider and of scheduler-server.
type setting struct {
	flag, variable, usage string
	value                 func(*connectionSettings) *string
}

var settings = []setting{
	{"namespace", "SCHEDULER_NAMESPACE", "namespace of the objects", func(c *connectionSettings) *string { return &c.Namespace }},
	{tokenFileFlag, "SCHEDULER_TOKEN_FILE", "file with the token, - for standard input", func(c *connectionSettings) *string { return &c.TokenFile }},
	{"ca-cert-file", "SCHEDULER_CA_CERT_FILE", "PEM certificates that the server's certificate must chain to", func(c *connectionSettings) *string { return &c.CACertFile }},
	{"client-cert-file", "SCHEDULER_CLIENT_CERT_FILE", "PEM client certificate for the server", func(c *connectionSettings) *string { return &c.ClientCertFile }},
	{"client-key-file", "SCHEDULER_CLIENT_KEY_FILE", "PEM key of client-cert-file", func(c *connectionSettings) *string { return &c.ClientKeyFile }},
}

// Variables without a flag of the same name.
const (
	endpointVariable  = "SCHEDULER_ENDPOINT"
	endpointsVariable = "SCHEDULER_ENDPOINTS"
	// tokenVariable has no flag: other users of the machine see the command line.
	tokenVariable   = "SCHEDULER_TOKEN"
	retriesVariable = "SCHEDULER_MAX_RETRIES"
	timeoutVariable = "SCHEDULER_REQUEST_TIMEOUT"
	configVariable  = "SCHEDULERCTL_CONFIG"
	contextVariable = "SCHEDULERCTL_CONTEXT"
)

func (c *connection) define(flags *pflag.FlagSet) {
	flags.StringVar(&c.configFile, "config", "", "file with the contexts ("+configVariable+")")
	flags.StringVar(&c.contextFlag, "context", "", "context to use ("+contextVariable+")")
	flags.StringSliceVar(&c.given.Endpoints, "endpoint", nil, "address of the server, or of several that share a store, separated by commas: if one fails, the next one is used ("+endpointVariable+" or "+endpointsVariable+", default "+client.DefaultEndpoint+")")
	for _, s := range settings {
		short := ""
		if s.flag == "namespace" {
			short = "n"
		}
		flags.StringVarP(s.value(&c.given), s.flag, short, "", s.usage+" ("+s.variable+")")
	}
}

// load determines the settings in force.
func (c *connection) load(env Environment) error {
	if c.loaded {
		return nil
	}
	configured, err := c.configuration(env)
	if err != nil {
		return err
	}
	variables, err := fromVariables(env)
	if err != nil {
		return err
	}
	named := cmp.Or(c.contextFlag, env.Getenv(contextVariable))
	c.contextName = cmp.Or(named, configured.Current)
	fromContext := &connectionSettings{}
	if c.contextName != "" {
		if fromContext, err = configured.context(c.contextName); err != nil {
			return err
		}
	}
	c.sources = []*connectionSettings{&c.given, variables, fromContext}
	if named != "" {
		c.sources = []*connectionSettings{&c.given, fromContext, variables}
	}
	for _, source := range c.sources {
		if len(c.used.Endpoints) == 0 {
			c.used.Endpoints = source.Endpoints
		}
	}
	// A context is about its own servers: if a flag or variable names others, they get neither its
	// token nor its client certificate.
	if slices.ContainsFunc(c.used.Endpoints, func(e string) bool { return !slices.Contains(fromContext.Endpoints, e) }) {
		*fromContext = connectionSettings{Namespace: fromContext.Namespace}
	}
	for _, s := range settings {
		for _, source := range c.sources {
			*s.value(&c.used) = cmp.Or(*s.value(&c.used), *s.value(source))
		}
	}
	c.loaded = true
	return nil
}

// fromVariables returns the settings of the environment variables.
func fromVariables(env Environment) (*connectionSettings, error) {
	one, several := env.Getenv(endpointVariable), env.Getenv(endpointsVariable)
	if one != "" && several != "" {
		return nil, usage("%s: must be absent because %s is set", endpointVariable, endpointsVariable)
	}
	c := &connectionSettings{}
	for endpoint := range strings.SplitSeq(cmp.Or(one, several), ",") {
		if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
			c.Endpoints = append(c.Endpoints, endpoint)
		}
	}
	c.Token = strings.TrimSpace(env.Getenv(tokenVariable))
	for _, s := range settings {
		*s.value(c) = env.Getenv(s.variable)
	}
	return c, nil
}

// namespace returns the namespace of objects that are named without one. It is called after
// connect.
func (c *connection) namespace() string { return cmp.Or(c.used.Namespace, api.DefaultNamespace) }

func (c *connection) connect(ctx context.Context, env Environment) (*client.Client, error) {
	if err := c.load(env); err != nil {
		return nil, err
	}
	var token api.Secret
	for _, source := range c.sources {
		var err error
		if token, err = source.readToken(ctx, env); err != nil {
			return nil, err
		}
		if !token.IsZero() {
			break
		}
	}
	return c.connectWith(token, env)
}

// connectWith connects to the server in force with a token, which may be empty.
func (c *connection) connectWith(token api.Secret, env Environment) (*client.Client, error) {
	retries, timeout, err := patience(env)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{
		Endpoints: c.used.Endpoints, Token: token, RequestTimeout: timeout, CACertFile: expandHome(c.used.CACertFile, env),
		ClientCertFile: expandHome(c.used.ClientCertFile, env), ClientKeyFile: expandHome(c.used.ClientKeyFile, env),
		UserAgent: env.Program + "/" + env.Version, MaxRetries: retries,
	})
}

// defaultRetries is how often a request is repeated. People wait less long than Terraform.
const defaultRetries = 2

// patience returns how often requests are repeated, and how long an attempt may take, 0 for the
// client's default.
func patience(env Environment) (retries int, timeout time.Duration, err error) {
	retries = defaultRetries
	if text := env.Getenv(retriesVariable); text != "" {
		if retries, err = strconv.Atoi(text); err != nil || retries < 0 {
			return 0, 0, usage("%s: %q is not a number of retries, such as 2", retriesVariable, text)
		}
		if retries == 0 {
			retries = -1 // none; 0 is the client's default
		}
	}
	if text := env.Getenv(timeoutVariable); text != "" {
		if timeout, err = time.ParseDuration(text); err != nil || timeout <= 0 {
			return 0, 0, usage("%s: %q is not a duration, such as 30s", timeoutVariable, text)
		}
	}
	return retries, timeout, nil
}

// readToken returns the token of these settings, from a variable, the file of contexts, or a file of its
// own. It may be empty.
func (c *connectionSettings) readToken(ctx context.Context, env Environment) (api.Secret, error) {
	if c.Token != "" || c.TokenFile == "" {
		return api.NewSecret(c.Token), nil
	}
	token, err := readSecret(ctx, c.TokenFile, env)
	if err != nil {
		return api.Secret{}, fmt.Errorf("token-file: %w", err)
	}
	return token, nil
}

// errEmptyToken says that a token has no text.
var errEmptyToken = errors.New("there is no token in it")

// tokenFileFlag is the flag of the file with the token.
const tokenFileFlag = "token-file"

// standardInput is the path of standard input.
const standardInput = "-"

// readSecret reads a token from a file or from standard input. A terminal does not show what is
// typed.
func readSecret(ctx context.Context, path string, env Environment) (api.Secret, error) {
	var data []byte
	var err error
	terminal, isFile := env.Stdin.(*os.File)
	switch {
	case path != standardInput:
		data, err = os.ReadFile(expandHome(path, env))
	case isFile && term.IsTerminal(int(terminal.Fd())):
		data, err = readHidden(ctx, terminal, env)
	default:
		data, err = readLimited(env.Stdin)
	}
	if err != nil {
		return api.Secret{}, err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return api.Secret{}, fmt.Errorf("%s: %w", path, errEmptyToken)
	}
	return api.NewSecret(text), nil
}

// readHidden reads a line from a terminal without echo. If the context ends before, the terminal is
// as it was.
func readHidden(ctx context.Context, terminal *os.File, env Environment) ([]byte, error) {
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return nil, err
	}
	fmt.Fprint(env.Stderr, "Token: ")
	defer fmt.Fprintln(env.Stderr)
	type input struct {
		line []byte
		err  error
	}
	read := make(chan input, 1)
	go func() {
		line, err := term.ReadPassword(int(terminal.Fd()))
		read <- input{line, err}
	}()
	select {
	case in := <-read:
		return in.line, in.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(int(terminal.Fd()), before))
	}
}

// expandHome expands "~/" at the beginning of a path of the configuration.
func expandHome(path string, env Environment) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && env.Getenv("HOME") != "" {
		return filepath.Join(env.Getenv("HOME"), rest)
	}
	return path
}
