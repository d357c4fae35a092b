// Decisions in one row: as the server lists them, and out of the object of an event.
import { clustersOf } from './clusters.js';

export const idOf = ({ kind, namespace, name }) => `${kind}/${namespace}/${name}`;

// summarize makes the row of a placement or workload as GET /v1/decisions does.
export function summarize({ kind, metadata, spec = {}, status = {} }) {
  const conditions = status.conditions ?? [];
  const satisfied = conditions.find((c) => c.type === (kind === 'placement' ? 'Satisfied' : 'Scheduled'));
  const held = ['Faulted', 'MoveHeld', 'FailoverHeld'].map((type) => conditions.find((c) => c.type === type && c.status === 'True')).find(Boolean);
  const names = clustersOf({ status });
  return {
    kind, namespace: metadata.namespace, name: metadata.name,
    clusters: names.slice(0, 8), cluster_count: names.length,
    wanted: spec.number_of_clusters, replicas: spec.replicas, policy: status.policy,
    satisfied: satisfied?.status ?? 'Unknown', reason: satisfied?.reason, message: satisfied?.message, held: held?.message,
    scheduled_at: status.scheduled_at, decision_revision: status.decision_revision, cause: status.cause, resource_version: metadata.resource_version,
  };
}

// whatAsked says in a word what was asked for.
export function whatAsked(row) {
  if (row.kind === 'workload') return row.replicas === undefined ? 'one copy each' : row.replicas === 1 ? '1 replica' : `${row.replicas} replicas`;
  return row.wanted === undefined ? 'all that fit' : row.wanted === 1 ? '1 cluster' : `${row.wanted} clusters`;
}
