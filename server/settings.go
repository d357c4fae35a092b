package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// A setting has one name and three spellings: the flag --data-dir, the variable SCHEDULER_DATA_DIR
// and the configuration key data_dir. The flags of a command are the table of its settings, from
// which the other spellings are derived. It is implemented here because configuration libraries
// ignore unknown keys.

// configFlag names the configuration file, so it is not a key in it.
const configFlag = "config"

// noSetting are flags that exist only on the command line.
var noSetting = []string{"help"}

func variableName(flag string) string {
	return "SCHEDULER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// alternativeVariable is the flag annotation in which alsoNamed stores the name.
const alternativeVariable = "alternative-variable"

// alsoNamed gives a setting a second variable, which can be set instead of the first.
func alsoNamed(flags *pflag.FlagSet, flag, variable string) {
	flags.Lookup(flag).Annotations = map[string][]string{alternativeVariable: {variable}}
}

// variableNames returns all variables of a setting.
func variableNames(f *pflag.Flag) []string {
	return append([]string{variableName(f.Name)}, f.Annotations[alternativeVariable]...)
}

func keyName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// nameVariables adds the variable to the usage of every flag.
func nameVariables(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(noSetting, f.Name) {
			f.Usage += " (" + strings.Join(variableNames(f), " or ") + ")"
		}
	})
}

// readVariables makes a command read its flags from their variables as well.
func readVariables(cmd *cobra.Command) {
	nameVariables(cmd.Flags())
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return fill(cmd.Flags(), os.Getenv) }
}

// fill sets the flags that are not on the command line from their variable or, if that is unset,
// from the configuration file. An empty variable counts as unset.
func fill(flags *pflag.FlagSet, getenv func(string) string) error {
	var errs []error
	fromVariable := func(f *pflag.Flag) bool {
		var set string // the name of the variable that is set
		for _, name := range variableNames(f) {
			text := getenv(name)
			if text == "" {
				continue
			}
			if set != "" {
				errs = append(errs, fmt.Errorf("environment variable %s: must be absent because %s is set", name, set))
				break
			}
			set = name
			if err := f.Value.Set(text); err != nil {
				errs = append(errs, fmt.Errorf("environment variable %s: %w", name, err))
			}
		}
		return set != ""
	}
	var keys map[string]any
	if file := flags.Lookup(configFlag); file != nil {
		if !file.Changed {
			fromVariable(file)
		}
		if path := file.Value.String(); path != "" {
			var err error
			if keys, err = readConfigFile(path, flags); err != nil {
				return err
			}
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == configFlag || slices.Contains(noSetting, f.Name) || fromVariable(f) {
			return
		}
		if value, ok := keys[keyName(f.Name)]; ok {
			if err := setFromFile(f, value); err != nil {
				errs = append(errs, fmt.Errorf("configuration key %s: %w", keyName(f.Name), err))
			}
		}
	})
	return errors.Join(errs...)
}

// readConfigFile reads a YAML or JSON file. An unknown or repeated key is an error: a misspelled
// setting must not be silently ignored.
func readConfigFile(path string, flags *pflag.FlagSet) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	var keys map[string]any
	if err := yaml.UnmarshalStrict(data, &keys, keepNumbers); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	known := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != configFlag && !slices.Contains(noSetting, f.Name) {
			known[keyName(f.Name)] = true
		}
	})
	var errs []error
	for _, key := range sortedKeys(keys) {
		if !known[key] {
			errs = append(errs, fmt.Errorf("configuration file %s: %q is not a known key; the keys are %s", path, key, strings.Join(sortedKeys(known), ", ")))
		}
	}
	return keys, errors.Join(errs...)
}

// keepNumbers keeps numbers as they are written.
func keepNumbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// objectType is the type of settings that are objects in the configuration file. Their flags
// and variables take the same as JSON.
const objectType = "object"

func setFromFile(f *pflag.Flag, value any) error {
	list, isList := f.Value.(pflag.SliceValue)
	switch value := value.(type) {
	case []any:
		if !isList {
			return fmt.Errorf("takes one %s, not a list", f.Value.Type())
		}
		texts := make([]string, len(value))
		for i, element := range value {
			text, ok := element.(string)
			if !ok {
				return fmt.Errorf("element %d must be a string", i)
			}
			texts[i] = text
		}
		return list.Replace(texts)
	case string, bool, json.Number:
		return f.Value.Set(fmt.Sprint(value))
	case nil:
		return errors.New("has no value: set one or remove the key")
	case map[string]any:
		if f.Value.Type() == objectType {
			text, err := json.Marshal(value)
			if err != nil {
				return err
			}
			return f.Value.Set(string(text))
		}
	}
	return fmt.Errorf("takes one %s, not an object", f.Value.Type())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
