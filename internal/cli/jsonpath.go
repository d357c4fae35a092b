package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// parseJSONPath parses a format with a template, as kubectl does: a path alone needs no braces, and a
// field that does not exist has no text.
func parseJSONPath(format string) (*jsonpath.JSONPath, error) {
	template := strings.TrimPrefix(format, outputJSONPath)
	if template == "" {
		return nil, fmt.Errorf("it needs a template, such as %s{.metadata.name}", outputJSONPath)
	}
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	return path, path.Parse(template)
}

// printJSONPath prints what a template takes from a JSON document.
func printJSONPath(w io.Writer, format string, document []byte) error {
	path, err := parseJSONPath(format)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(document, &value); err != nil { // whole numbers stay whole
		return err
	}
	var text bytes.Buffer
	if err := path.Execute(&text, value); err != nil {
		return usage("--output: %w", err)
	}
	_, err = io.WriteString(w, termtext.Lines(text.String()))
	return err
}
