// Label selectors of cluster sets, with the meaning that the server gives them.

// selects reports whether a selector matches labels. An empty selector matches everything.
export function selects(selector, labels) {
  for (const [key, value] of Object.entries(selector.match_labels ?? {})) {
    if (labels[key] !== value) return false;
  }
  return (selector.match_expressions ?? []).every(({ key, operator, values }) => {
    const present = Object.hasOwn(labels, key);
    switch (operator) {
      case 'In': return present && (values ?? []).includes(labels[key]);
      case 'NotIn': return !present || !(values ?? []).includes(labels[key]);
      case 'Exists': return present;
      case 'DoesNotExist': return !present;
      default: return false;
    }
  });
}
