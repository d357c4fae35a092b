package main

import (
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// configurationName is the name of the file that init writes.
const configurationName = "server.yaml"

// configurationText is the configuration file with its comments, a template over a config.
//
//go:embed server.yaml.tmpl
var configurationText string

var configurationTemplate = template.Must(template.New(configurationName).Funcs(template.FuncMap{
	// JSON strings are YAML strings.
	"quote": func(text string) (string, error) {
		quoted, err := json.Marshal(text)
		return string(quoted), err
	},
}).Parse(configurationText))

// writeConfiguration returns the configuration file that sets what c sets.
func writeConfiguration(c *config) ([]byte, error) {
	var text strings.Builder
	if err := configurationTemplate.Execute(&text, c); err != nil {
		return nil, err
	}
	return []byte(text.String()), nil
}

// initialization is what the command init is told.
type initialization struct {
	dir   string
	hosts []string
	owner string
	config
}

func newInitCommand() *cobra.Command {
	var i initialization
	i.define(pflag.NewFlagSet("serve", pflag.ContinueOnError)) // the defaults
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the configuration of a new server, with TLS and a first token",
		Long: `Write the configuration of a new server into a directory: a configuration file, a
certificate from an authority of its own unless one is given, and data that hold the
hash of a first token with the role admin. The token is printed once, and cannot be shown again. Then print how
to start the server and how clients reach it.

Nothing is overwritten: if a file exists already, or the data directory is not empty,
nothing is written.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&i.DataDir, "data-dir", "", "data directory of the server (default DIR/data)")
	cmd.Flags().StringVar(&i.Listen, "listen", "0.0.0.0:8665", "address to listen on")
	cmd.Flags().StringVar(&i.TLSCertFile, "tls-cert-file", "", "PEM certificate of the server, if an authority of yours issues it (default: init makes an authority and a certificate)")
	cmd.Flags().StringVar(&i.TLSKeyFile, "tls-key-file", "", "PEM key of tls-cert-file")
	defineIssued(cmd, &i.hosts, &i.owner)
	readVariables(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i.dir = args[0]
		return i.run(cmd)
	}
	return cmd
}

// run writes everything, or nothing.
func (i *initialization) run(cmd *cobra.Command) (err error) {
	if err := i.complete(); err != nil {
		return err
	}
	owner, err := findOwner(i.owner)
	if err != nil {
		return err
	}
	files := certificateFiles{dir: i.dir, name: "server"}
	configuration := filepath.Join(i.dir, configurationName)
	own := !i.tls() && i.TLSKeyFile == ""
	paths := []string{configuration}
	if own {
		i.TLSCertFile, i.TLSKeyFile = files.certificate(), files.key()
		paths = append(files.all(), configuration)
	}
	if err := i.check(); err != nil {
		return err
	}
	if err := i.checkNew(paths); err != nil {
		return err
	}
	used := certificateOf{}
	if !own {
		if used, err = i.givenCertificate(); err != nil {
			return err
		}
	}
	made := newFiles{owner: owner}
	defer func() {
		if err != nil {
			made.remove()
		}
	}()
	if err := made.directory(i.dir, readableDirectory); err != nil {
		return err
	}
	if err := made.directory(i.DataDir, privateDirectory); err != nil {
		return err
	}
	if own {
		issued, err := files.issue(&made, i.hosts, time.Now(), certificateLife)
		if err != nil {
			return err
		}
		used = certificateOf{leaf: issued, authority: files.authority()}
	}
	text, err := writeConfiguration(&i.config)
	if err != nil {
		return err
	}
	if err := made.write(configuration, text, readable); err != nil {
		return err
	}
	token, err := i.firstToken(cmd)
	if err != nil {
		return errors.Join(err, i.discardData())
	}
	if err := owner.takeAll(i.DataDir); err != nil {
		return err
	}
	return i.say(cmd, configuration, used, token)
}

// certificateOf is the certificate that the server will present.
type certificateOf struct {
	leaf *x509.Certificate
	// authority is the file that clients must trust, or "" if the certificate was given.
	authority string
}

// givenCertificate reads the certificate that was given.
func (i *initialization) givenCertificate() (certificateOf, error) {
	pair, err := tls.LoadX509KeyPair(i.TLSCertFile, i.TLSKeyFile)
	if err != nil {
		return certificateOf{}, fmt.Errorf("tls-cert-file and tls-key-file: %w", err)
	}
	if len(hostsOf(pair.Leaf)) == 0 {
		return certificateOf{}, fmt.Errorf("tls-cert-file: %s names no host that clients could verify: use a certificate with the names of the server", i.TLSCertFile)
	}
	i.hosts = hostsOf(pair.Leaf)
	return certificateOf{leaf: pair.Leaf}, nil
}

// complete fills in what was not given, and makes paths independent of the working directory.
func (i *initialization) complete() error {
	if i.DataDir == "" {
		i.DataDir = filepath.Join(i.dir, "data")
	}
	for _, path := range []*string{&i.dir, &i.DataDir, &i.TLSCertFile, &i.TLSKeyFile} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if i.TLSCertFile != "" || i.TLSKeyFile != "" {
		if len(i.hosts) > 0 {
			return errors.New("host: must be absent if tls-cert-file is set: the certificate names the hosts")
		}
		return nil
	}
	var err error
	i.hosts, err = namedHosts(i.hosts)
	if err != nil {
		return err
	}
	// A server that listens on one address is reached there.
	if host, _, err := net.SplitHostPort(i.Listen); err == nil && net.ParseIP(host) != nil && !net.ParseIP(host).IsUnspecified() && !slices.Contains(i.hosts, host) {
		i.hosts = append(i.hosts, host)
	}
	return nil
}

// checkNew rejects directories in which something would be overwritten.
func (i *initialization) checkNew(files []string) error {
	var errs []error
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			errs = append(errs, fmt.Errorf("%s exists already, and is not overwritten: choose another directory, or move it away", file))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if name, err := storedIn(i.DataDir); err != nil {
		errs = append(errs, err)
	} else if name != "" {
		errs = append(errs, fmt.Errorf("data-dir: %s is not empty, it holds %s: choose another directory, or move the data away", i.DataDir, name))
	}
	return errors.Join(errs...)
}

// firstToken creates the data, with a token.
func (i *initialization) firstToken(cmd *cobra.Command) (token string, err error) {
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	opened, err := store.Open(cmd.Context(), store.Options{DataDir: i.DataDir, Logger: logger})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	// The server would create the key too; this way it has the right owner from the start.
	if _, err := store.OpenCodec(i.sealFile()); err != nil {
		return "", err
	}
	token, _, _, err = auth.CreateToken(cmd.Context(), opened, auth.TokenRequest{Role: auth.RoleAdmin, Description: "created by scheduler-server init"}, auth.Roles{}, time.Now())
	return token, err
}

// discardData removes what was stored in a data directory that was empty.
func (i *initialization) discardData() error {
	for {
		name, err := storedIn(i.DataDir)
		if name == "" {
			return err
		}
		if err := os.RemoveAll(filepath.Join(i.DataDir, name)); err != nil {
			return err
		}
	}
}

// say prints what was made, the token, and what to do next.
func (i *initialization) say(cmd *cobra.Command, configuration string, used certificateOf, token string) error {
	where, trust := "Then, where clients run:", ""
	if used.authority != "" {
		where = fmt.Sprintf("Then, where clients run (with a copy of %s):", termtext.Text(used.authority))
		trust = " SCHEDULER_CA_CERT_FILE=" + shellWord(used.authority)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `Configuration: %s
Data:          %s
Certificate:   for %s; valid until %s

The first token has the role admin. It is not shown again:

%s

Start the server:

  scheduler-server serve --config %s

%s

  export SCHEDULER_ENDPOINT=%s%s
  export SCHEDULER_TOKEN=<the token>
  scheduler-server token list
`, termtext.Text(configuration), termtext.Text(i.DataDir), strings.Join(i.hosts, ", "), used.leaf.NotAfter.UTC().Format(time.DateOnly), token,
		shellWord(configuration), where, i.endpoint(), trust)
	return err
}

// endpoint is the address at which clients reach the server.
func (i *initialization) endpoint() string {
	host, port, _ := net.SplitHostPort(i.Listen) // it was checked
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = i.hosts[0]
		if named := slices.IndexFunc(i.hosts, func(h string) bool { return !strings.HasPrefix(h, "*.") }); named >= 0 {
			host = i.hosts[named]
		}
	}
	return "https://" + net.JoinHostPort(host, port)
}

// shellWord returns a path as it is written in a command.
func shellWord(path string) string {
	path = termtext.Text(path)
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
