// Why a decision changed, in words for people.

const pathOf = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
const kindOf = ({ kind }) => kind.replaceAll('_', ' ');
const same = (a, b) => a.kind === b.kind && (a.namespace ?? '') === (b.namespace ?? '') && a.name === b.name;

// The sentences of the types that say more than that something changed. of is the object that changed, in words, where
// the reader may know it.
const sentences = {
  reschedule: () => 'a fresh decision was requested',
  metric: (of, change, { field }) => (field === 'status.value' ? `the value of ${of ?? 'a metric'} changed${change}` : undefined),
  taint: (of, change) => `the taints of ${of ?? 'a cluster'} changed${change}`,
  cluster_offline: (of) => `${of ?? 'a cluster'} is no longer online`,
  cluster_back: (of) => `${of ?? 'a cluster'} is online again`,
  capacity: (of, change, { field }) => `the room on ${of ?? 'a cluster'} changed${field && change ? ` (${field})${change}` : ''}`,
  preemption: (of) => `${of ?? 'a workload'} of a higher priority took the room`,
  fail_back: (_, change) => `an earlier affinity group had room for long enough${change}`,
  health: (of, change) => `there was a report about ${of ?? 'the workload'}${change}`,
  time: (of, _, { field, old }) => (field === 'spec.reschedule_after' ? `the decision was older than reschedule_after${old ? ` (${old})` : ''}` : `time ran out${of ? ` for ${of}` : ''}${field ? ` (${field})` : ''}`),
  window_opened: (of) => `${of ?? 'a move window'} no longer holds it`,
  unknown: () => '',
};

// causeOf says in a clause what made the decision of a row change last, and who did, '' if that is not known.
export function causeOf(row) {
  const change = row.cause ? changeOf(row) : '';
  const by = row.cause?.actor?.token;
  return change && by ? `${change}, by ${short(by)}` : change;
}

function changeOf({ cause, ...row }) {
  const own = cause.object && same(cause.object, row);
  const of = cause.object ? (own ? `this ${kindOf(cause.object)}` : `${kindOf(cause.object)} ${pathOf(cause.object)}`) : undefined;
  const { old, new: now, field } = cause;
  const change = old || now ? `: ${short(old) || 'none'} → ${short(now) || 'none'}` : '';
  const sentence = sentences[cause.type]?.(of, change, cause);
  if (sentence !== undefined) return sentence;
  if (!of) return `a ${cause.type === 'score' ? 'placement score' : cause.type.replaceAll('_', ' ')} changed`;
  if (own && !field) return `${of} was written`;
  return field ? `${field} of ${of} changed${change}` : `${of} was created or deleted`;
}

// The longest text of a value in a clause. Specs have no limit that a sentence would like.
const longest = 120;

function short(text = '') { return text.length > longest ? `${text.slice(0, longest - 1)}…` : text; }
