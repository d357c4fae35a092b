package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// HTTPJSONSpec configures JSON documents that are read over HTTP.
type HTTPJSONSpec struct {
	URL   string `json:"url" doc:"URL of the document. '${cluster.name}', '${region}', '${labels.x}' and '${claims.x}' are replaced by the values of the cluster being rated, and '${metric}' by the metric's 'metrics_provider.metric'. Placeholders may be used in the path and in the query, where they are escaped."`
	Value string `json:"value" doc:"JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)) to the value: a number, or a string that holds one. May contain the placeholders of 'url'. If empty, the document itself is the number."`
}

// maxURL is the maximum length of an address, in bytes.
const maxURL = 2 << 10

// place is the position of a placeholder in a template. It determines how the value is escaped.
type place int

const (
	inPath place = iota
	inQuery
	inPointer
)

// escape escapes a value so that it stays within its place.
func (p place) escape(value string) string {
	switch p {
	case inPath:
		return url.PathEscape(value)
	case inQuery:
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	case inPointer:
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(value)
}

// piece is a part of a template: literal text or a placeholder.
type piece struct {
	text        string
	placeholder string // text between ${ and }; "" for literal text
}

// pieces splits a template. It returns an error if a placeholder is invalid.
func pieces(template string) (list []piece, err error) {
	for template != "" {
		text, rest, found := strings.Cut(template, "${")
		if text != "" {
			list = append(list, piece{text: text})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("the placeholder %q has no closing brace", "${"+rest)
		}
		if problem := checkPlaceholder(name); problem != "" {
			return nil, fmt.Errorf("the placeholder %q %s", "${"+name+"}", problem)
		}
		list, template = append(list, piece{placeholder: name}), after
	}
	return list, nil
}

func checkPlaceholder(name string) string {
	switch name {
	case "cluster.name", "region", "metric":
		return ""
	}
	if key, ok := strings.CutPrefix(name, "labels."); ok {
		return checkLabelKey(key)
	}
	if key, ok := strings.CutPrefix(name, "claims."); ok {
		return checkText(key)
	}
	return "is not one of ${cluster.name}, ${region}, ${labels.x}, ${claims.x} and ${metric}"
}

// valueOf returns the value of a placeholder, or an error if it has none.
func valueOf(placeholder, metric string, c *Cluster) (string, error) {
	if placeholder == "metric" {
		return metric, nil
	}
	if c == nil {
		return "", fmt.Errorf("${%s} only has a value for a cluster", placeholder)
	}
	what, key, _ := strings.Cut(placeholder, ".")
	var value string
	var there bool
	switch what {
	case "cluster":
		return c.Metadata.Name, nil
	case "region":
		value = c.Region()
		if value == "" {
			return "", fmt.Errorf("cluster %q has no region", c.Metadata.Name)
		}
		return value, nil
	case "labels":
		value, there = c.Metadata.Labels[key]
	case "claims":
		value, there = c.Spec.Claims[key]
	}
	if !there {
		return "", fmt.Errorf("cluster %q has no %s %q", c.Metadata.Name, strings.TrimSuffix(what, "s"), key)
	}
	return value, nil
}

// PerCluster reports whether the address or the pointer refers to the cluster, so that each cluster
// has its own value.
func (s *MetricsProviderSpec) PerCluster() bool {
	return s.Type == ProviderHTTPJSON && s.HTTPJSON != nil && slices.ContainsFunc([]string{s.HTTPJSON.URL, s.HTTPJSON.Value}, func(template string) bool {
		list, err := pieces(template)
		return err == nil && slices.ContainsFunc(list, func(p piece) bool { return p.placeholder != "" && p.placeholder != "metric" })
	})
}

// Document returns the address of the JSON document that contains a metric, and the pointer to the
// value in it. cluster is the cluster to read the value for; it is nil unless PerCluster. The value
// of a placeholder never extends beyond its path segment, query part or pointer token.
func (s *HTTPJSONSpec) Document(metric string, cluster *Cluster) (address, pointer string, err error) {
	list, err := pieces(s.URL)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	at, segment, filled := inPath, 0, ""
	end := func() error { // ends a path segment
		defer func() { segment, filled = out.Len(), "" }()
		if filled == "" {
			return nil
		}
		return checkSegment(filled, out.String()[segment:])
	}
	for _, p := range list {
		if p.placeholder != "" {
			value, err := valueOf(p.placeholder, metric, cluster)
			if err != nil {
				return "", "", err
			}
			filled = "${" + p.placeholder + "}"
			out.WriteString(at.escape(value))
			continue
		}
		for _, c := range []byte(p.text) { // literal text is copied unchanged
			if at == inPath && (c == '/' || c == '?') {
				if err := end(); err != nil {
					return "", "", err
				}
			}
			out.WriteByte(c)
			switch {
			case at == inPath && c == '?':
				at = inQuery
			case at == inPath && c == '/':
				segment = out.Len()
			}
		}
	}
	if at == inPath {
		if err := end(); err != nil {
			return "", "", err
		}
	}
	if out.Len() > maxURL {
		return "", "", fmt.Errorf("the address is longer than %d bytes", maxURL)
	}
	pointer, err = expand(s.Value, metric, cluster)
	return out.String(), pointer, err
}

// checkSegment rejects a path segment that may change the path. Some servers and proxies decode a
// segment before they interpret it.
func checkSegment(placeholder, segment string) error {
	decoded, err := url.PathUnescape(segment)
	if err != nil {
		return fmt.Errorf("%q is not a path segment", segment)
	}
	steps := strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' })
	if len(steps) == 0 || slices.ContainsFunc(steps, func(step string) bool { return step == "." || step == ".." }) {
		return fmt.Errorf("%s would make the path segment %q, which changes the path", placeholder, decoded)
	}
	return nil
}

// expand replaces the placeholders of a pointer.
func expand(template, metric string, cluster *Cluster) (string, error) {
	list, err := pieces(template)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, p := range list {
		text := p.text
		if p.placeholder != "" {
			value, err := valueOf(p.placeholder, metric, cluster)
			if err != nil {
				return "", err
			}
			text = inPointer.escape(value)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// validate checks the address and the pointer.
func (s *HTTPJSONSpec) validate(errs *FieldErrors) {
	const field = "spec.http_json"
	list, err := pieces(s.URL)
	before, _, templated := strings.Cut(s.URL, "${")
	_, host, _ := strings.Cut(before, "://")
	switch {
	case templated && !strings.ContainsAny(host, "/?"):
		errs.Add(field+".url", "may only have placeholders in the path and the query: in the scheme, host or port they could lead to another server")
	case err != nil:
		errs.Add(field+".url", "%s", err)
	default:
		// The address must be valid whatever the values of the placeholders are.
		var plain strings.Builder
		for _, p := range list {
			plain.WriteString(cmp.Or(p.text, "x"))
		}
		errs.check(field+".url", checkURL(plain.String()))
		if strings.Contains(plain.String(), "#") {
			errs.Add(field+".url", `must not contain "#": what follows it is never sent`)
		}
	}
	if list, err = pieces(s.Value); err != nil {
		errs.Add(field+".value", "%s", err)
		return
	}
	var plain strings.Builder
	for _, p := range list {
		plain.WriteString(p.text)
		if p.placeholder != "" && plain.Len() == 0 {
			errs.Add(field+".value", "must begin with \"/\", or be empty: it is a JSON pointer")
			return
		}
	}
	errs.check(field+".value", checkPointer(plain.String()))
}

// checkPointer checks the syntax of RFC 6901.
func checkPointer(pointer string) string {
	switch rest := strings.NewReplacer("~0", "", "~1", "").Replace(pointer); {
	case pointer != "" && pointer[0] != '/':
		return fmt.Sprintf("%q must begin with \"/\", or be empty: it is a JSON pointer, such as \"/data/0/price\"", pointer)
	case strings.Contains(rest, "~"):
		return fmt.Sprintf("%q has a \"~\" that is not written as \"~0\", nor a \"/\" as \"~1\"", pointer)
	case len(pointer) > maxURL:
		return fmt.Sprintf("is longer than %d bytes", maxURL)
	}
	return ""
}
