package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// configuration is the file of contexts: connections to fleets, by name.
type configuration struct {
	Current  string                         `json:"current,omitempty"`
	Contexts map[string]*connectionSettings `json:"contexts,omitempty"`
}

func (c *configuration) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// context returns the settings of a context.
func (c *configuration) context(name string) (*connectionSettings, error) {
	settings := c.Contexts[name]
	if settings == nil {
		return nil, usage("context %q does not exist: the contexts are %s", name, cmp.Or(strings.Join(c.names(), ", "), "none"))
	}
	return settings, nil
}

// configurationPath returns the path of the configuration file.
func (c *connection) configurationPath(env Environment) string {
	return cmp.Or(c.configFile, env.Getenv(configVariable), env.ConfigFile)
}

// configuration reads the file. A missing file is an empty configuration unless somebody named it.
func (c *connection) configuration(env Environment) (*configuration, error) {
	path := c.configurationPath(env)
	if path == "" {
		return &configuration{}, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && path == env.ConfigFile {
		return &configuration{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var config configuration
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	for name, settings := range config.Contexts {
		if settings == nil {
			settings = &connectionSettings{}
			config.Contexts[name] = settings
		}
		if settings.Token != "" && openToOthers(path) {
			return nil, fmt.Errorf("%s: it has the token of context %q, and other users may read it: run chmod 600 %s", path, name, path)
		}
	}
	return &config, nil
}

// openToOthers reports whether other users may read or write a file.
func openToOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// save replaces the file at once, so that a crash leaves the old or the new one.
func (c *connection) save(env Environment, config *configuration) error {
	path := c.configurationPath(env)
	if path == "" {
		return usage("there is no home directory for the configuration: give its path with --config")
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	err = wholefile.Replace(path, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

func (s *session) contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Manage the contexts: which servers there are, and with which token", Args: cobra.NoArgs,
		Long: `Manage the contexts: which servers there are, and with which token.

A context has a name, the addresses of the servers of one fleet, a namespace and a token:

  PROGRAM context add prod --endpoint https://a:8665,https://b:8665 --namespace shop --token-file -
  PROGRAM context use prod

With --token-file -, the token is read from standard input and kept in the file of contexts,
which only you can read. With a path, the token stays in that file. A context's token and
client certificate are only sent to the context's own servers. The file of contexts is
schedulerctl/config.yaml in the directory for configuration of the operating system, such
as ~/.config.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.contextAddCommand(), s.contextUseCommand(), s.contextListCommand(), s.contextDeleteCommand())
	return cmd
}

func (s *session) contextAddCommand() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Create or change a context with the settings of the flags", Args: cobra.ExactArgs(1),
		ValidArgsFunction: s.completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := s.connection.configuration(s.Environment)
			if err != nil {
				return err
			}
			if config.Contexts == nil {
				config.Contexts = map[string]*connectionSettings{}
			}
			added := config.Contexts[args[0]]
			if added == nil {
				added = &connectionSettings{}
				config.Contexts[args[0]] = added
			}
			if err := s.setContext(cmd, added); err != nil {
				return err
			}
			config.Current = cmp.Or(config.Current, args[0])
			return s.connection.save(s.Environment, config)
		},
	}
}

// setContext takes the settings of the flags into a context.
func (s *session) setContext(cmd *cobra.Command, into *connectionSettings) error {
	if cmd.Flags().Changed("endpoint") {
		into.Endpoints = s.connection.given.Endpoints
	}
	for _, setting := range settings {
		if !cmd.Flags().Changed(setting.flag) {
			continue
		}
		value := *setting.value(&s.connection.given)
		if setting.flag == tokenFileFlag {
			into.Token = ""
			if value == standardInput {
				token, err := readSecret(cmd.Context(), standardInput, s.Environment)
				if err != nil {
					return fmt.Errorf("--%s: %w", setting.flag, err)
				}
				into.Token, value = token.Reveal(), ""
			}
		}
		if strings.HasSuffix(setting.flag, "-file") {
			var err error
			if value, err = lastingPath(value); err != nil {
				return fmt.Errorf("--%s: %w", setting.flag, err)
			}
		}
		*setting.value(into) = value
	}
	return nil
}

// lastingPath returns the path of a file that is the same in every directory.
func lastingPath(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, "~/") {
		return path, nil
	}
	return filepath.Abs(path)
}

func (s *session) contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.changeContext(args[0], func(config *configuration) { config.Current = args[0] })
		},
	}
}

func (s *session) contextDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a context, with its token", Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.changeContext(args[0], func(config *configuration) {
				delete(config.Contexts, args[0])
				if config.Current == args[0] {
					config.Current = ""
				}
			})
		},
	}
}

// changeContext changes the configuration, in which a context must exist.
func (s *session) changeContext(name string, change func(*configuration)) error {
	config, err := s.connection.configuration(s.Environment)
	if err != nil {
		return err
	}
	if _, err := config.context(name); err != nil {
		return err
	}
	change(config)
	return s.connection.save(s.Environment, config)
}

func (s *session) contextListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the contexts", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := s.connection.configuration(s.Environment)
			if err != nil {
				return err
			}
			t := table{header: []string{"CURRENT", "NAME", "ENDPOINTS", "NAMESPACE"}}
			for _, name := range config.names() {
				context := config.Contexts[name]
				current := ""
				if name == config.Current {
					current = "*"
				}
				t.add(current, name, strings.Join(context.Endpoints, ","), context.Namespace)
			}
			return t.print(s.Environment, s.Stdout)
		},
	}
}

func (s *session) completeContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := s.connection.configuration(s.Environment)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.names(), cobra.ShellCompDirectiveNoFileComp
}

// longestInput is the maximum size of what is read from standard input.
const longestInput = 64 << 20

func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, longestInput+1))
	if err == nil && len(data) > longestInput {
		err = fmt.Errorf("there are more than %d MiB", longestInput>>20)
	}
	return data, err
}
