package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// HTTPJSONSpec addresses JSON documents that are read over HTTP.
type HTTPJSONSpec struct {
	URL   string `json:"url" doc:"URL of the document. '${cluster.name}', '${region}', '${labels.x}' and '${claims.x}' stand for those of the cluster that the metric is read for, and '${metric}' for the metric's 'metrics_provider.metric'. Placeholders may be used in the path and in the query, where they are escaped."`
	Value string `json:"value" doc:"JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)) to the value: a number, or a string that holds one. May contain the placeholders of 'url'. If empty, the document itself is the number."`
}

// maxURL is the longest address that is read, in bytes.
const maxURL = 2 << 10

// place is where in a template a placeholder stands, which says how its value is
// escaped.
type place int

const (
	inPath place = iota
	inQuery
	inPointer
)

// escape writes a value so that it is one part of what it stands in.
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

// piece is a part of a template: a text, or a placeholder.
type piece struct {
	text        string
	placeholder string // what is between ${ and }; "" for a text
}

// pieces takes a template apart. The error says what is wrong with a placeholder.
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
	return "is none of ${cluster.name}, ${region}, ${labels.x}, ${claims.x} and ${metric}"
}

// valueOf is what a placeholder stands for. The error says what is missing.
func valueOf(placeholder, metric string, c *Cluster) (string, error) {
	if placeholder == "metric" {
		return metric, nil
	}
	if c == nil {
		return "", fmt.Errorf("${%s} has a value for a cluster only", placeholder)
	}
	what, key, _ := strings.Cut(placeholder, ".")
	var value string
	var there bool
	switch what {
	case "cluster":
		return c.Metadata.Name, nil
	case "region":
		value = cmp.Or(c.Spec.Region, c.Status.Region)
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

// PerCluster reports whether the value of a metric differs from cluster to cluster, as
// the address or the pointer names something of the cluster.
func (s *MetricsProviderSpec) PerCluster() bool {
	return s.Type == ProviderHTTPJSON && s.HTTPJSON != nil && slices.ContainsFunc([]string{s.HTTPJSON.URL, s.HTTPJSON.Value}, func(template string) bool {
		list, err := pieces(template)
		return err == nil && slices.ContainsFunc(list, func(p piece) bool { return p.placeholder != "" && p.placeholder != "metric" })
	})
}

// Document is where the value of a metric is: the address, and the pointer into the
// document there. cluster is the one that it is read for, nil unless PerCluster. No
// value of a placeholder reaches beyond its path segment, its part of the query or its
// step of the pointer.
func (s *HTTPJSONSpec) Document(metric string, cluster *Cluster) (address, pointer string, err error) {
	list, err := pieces(s.URL)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	at, segment, filled := inPath, 0, ""
	end := func() error { // of a path segment
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
		for _, c := range []byte(p.text) { // as it is, whatever it is
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

// checkSegment refuses a path segment that leads elsewhere in the path, as some servers
// and proxies read it, which decode a segment before they look at it.
func checkSegment(placeholder, segment string) error {
	decoded, err := url.PathUnescape(segment)
	if err != nil {
		return fmt.Errorf("%q is not a path segment", segment)
	}
	steps := strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' })
	if len(steps) == 0 || slices.ContainsFunc(steps, func(step string) bool { return step == "." || step == ".." }) {
		return fmt.Errorf("%s would make the path segment %q, which leads elsewhere", placeholder, decoded)
	}
	return nil
}

// expand fills in a pointer.
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

// validate adds what is wrong with the address and the pointer.
func (s *HTTPJSONSpec) validate(errs *FieldErrors) {
	const field = "spec.http_json"
	list, err := pieces(s.URL)
	before, _, templated := strings.Cut(s.URL, "${")
	_, host, _ := strings.Cut(before, "://")
	switch {
	case templated && !strings.ContainsAny(host, "/?"):
		errs.Add(field+".url", "may have placeholders in the path and in the query only: in the scheme, the host or the port they could lead to another server")
	case err != nil:
		errs.Add(field+".url", "%s", err)
	default:
		// Whatever the placeholders stand for, the rest is an address.
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

// checkPointer applies the syntax of RFC 6901.
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
