// Why a decision changed, in words for people: what the cause, the actor and the margin of an entry of the history say.
import { formatNumber } from './quantity.js';

// causes are the types of causes: what a filter calls them, and how much of a choice a move was.
export const causes = {
  spec: { title: 'written', tone: 'asked' },
  reschedule: { title: 'rescheduled', tone: 'asked' },
  preview: { title: 'committed as previewed', tone: 'asked' },
  cluster: { title: 'cluster changed' },
  policy: { title: 'policy changed', tone: 'asked' },
  cluster_set: { title: 'cluster set changed' },
  metric: { title: 'metric' },
  score: { title: 'placement score' },
  taint: { title: 'taint', tone: 'forced' },
  cluster_offline: { title: 'cluster offline', tone: 'forced' },
  cluster_back: { title: 'cluster back' },
  capacity: { title: 'capacity' },
  preemption: { title: 'preemption', tone: 'forced' },
  fail_back: { title: 'fail-back' },
  health: { title: 'health', tone: 'forced' },
  time: { title: 'time' },
  window_opened: { title: 'window opened', tone: 'allowed' },
  stage: { title: 'stage of a rollout', tone: 'allowed' },
  unknown: { title: 'unknown' },
};

const pathOf = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
const words = (key) => `${key.kind.replaceAll('_', ' ')} ${pathOf(key)}`;
const same = (a, b) => a.kind === b.kind && (a.namespace ?? '') === (b.namespace ?? '') && a.name === b.name;

// The sentences of the types that say more than that something was changed. of is the object that changed, in words.
const sentences = {
  reschedule: () => 'a fresh decision was requested',
  preview: () => 'a decision was committed as it was previewed',
  metric: (of, change, { field }) => (field === 'status.value' ? `the value of ${of ?? 'a metric'} changed${change}` : undefined),
  taint: (of, change) => `the taints of ${of ?? 'a cluster'} changed${change}`,
  cluster_offline: (of) => `${of ?? 'a cluster'} was no longer online`,
  cluster_back: (of) => `${of ?? 'a cluster'} was online again`,
  capacity: (of, change, { field }) => `the room on ${of ?? 'a cluster'} changed${field && change ? ` (${field})${change}` : ''}`,
  preemption: (of) => `${of ?? 'a workload'} of a higher priority took the room`,
  fail_back: (_, change) => `an earlier affinity group had room for long enough${change}`,
  health: (of, change) => `a report about ${of ?? 'the workload'}${change}`,
  time: (of, _, { field, old }) => (field === 'spec.reschedule_after' ? `the decision was older than reschedule_after${old ? ` (${old})` : ''}` : `time ran out${of ? ` for ${of}` : ''}${field ? ` (${field})` : ''}`),
  window_opened: (of) => `a move that was held was allowed${of ? `, by ${of}` : ''}`,
  stage: () => 'the next step of a rollout began',
  unknown: () => 'what changed is not known',
};

// causeOf says the cause of an entry in a sentence.
export function causeOf({ object, before, after, cause }) {
  const own = cause.object && same(cause.object, object);
  const of = cause.object ? (own ? `this ${cause.object.kind.replaceAll('_', ' ')}` : words(cause.object)) : undefined;
  const { old, new: now, field } = cause;
  const change = old || now ? `: ${short(old) || 'none'} → ${short(now) || 'none'}` : '';
  const sentence = sentences[cause.type]?.(of, change, cause);
  if (sentence) return sentence;
  if (!of) return `${({ spec: 'it', score: 'a placement score', policy: 'a policy', cluster_set: 'a cluster set', metric: 'a metric', cluster: 'a cluster' })[cause.type] ?? cause.type} changed`;
  if (own && !field) return after === undefined ? `${of} was deleted` : before === undefined ? `${of} was created` : `${of} was written`;
  return field ? `${field} of ${of} changed${change}` : `${of} was created or deleted, or is another one`;
}

// The longest text of a value in a sentence. Specs have no limit that a sentence would like.
const longest = 120;

function short(text = '') { return text.length > longest ? `${text.slice(0, longest - 1)}…` : text; }

// actorOf says who wrote what changed, '' if nobody did.
export function actorOf({ actor }) {
  if (!actor) return '';
  const who = actor.token ? `by ${actor.token}` : 'by somebody without a token';
  return actor.request_id ? `${who}, request ${actor.request_id}` : who;
}

// marginOf says how close it was, '' if scores did not decide.
export function marginOf({ margin }) {
  if (!margin) return '';
  const needed = margin.needed > 0 ? `, ${formatNumber(margin.needed)} more was needed` : '';
  return `score ${formatNumber(margin.old_score)} → ${formatNumber(margin.new_score)}${needed}`;
}

// wayOf says what moved, from where and to where, as lists of names with replicas.
export function wayOf({ moved = [] }) {
  const amounts = (side) => {
    const found = new Map();
    for (const move of moved) {
      if (move[side]) found.set(move[side], (found.get(move[side]) ?? 0) + (move.replicas ?? 0));
    }
    return [...found].map(([name, replicas]) => (replicas ? `${name} ×${replicas}` : name));
  };
  return { from: amounts('from'), to: amounts('to') };
}

// clustersIn lists the clusters of a decision of the history, with replicas.
export function clustersIn(decision) {
  return (decision?.clusters ?? []).map((name) => (decision.replicas?.[name] === undefined ? name : `${name} ×${decision.replicas[name]}`));
}
