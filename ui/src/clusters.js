// The clusters of the fleet, as far as the page shows them. They are kept in memory, all of them, because the fleet is
// shown as a whole; decisions are not, the server sorts and filters those.
import { signal } from '@preact/signals';
import { pages, pathOf, request } from './api.js';
import { parseQuantity } from './quantity.js';
import { onEvents } from './watch.js';

// clusters are those that are known, by name, and sets the cluster sets. They are changed in place; version says when.
export const clusters = new Map();
export const sets = new Map();
export const version = signal(0);
// loaded says whether they are complete.
export const loaded = signal(false);

const fields = ['metadata.name', 'metadata.labels', 'spec.namespace', 'spec.namespaces', 'spec.description', 'spec.cloud_provider', 'spec.region', 'spec.zones',
  'spec.paused', 'spec.allocatable', 'spec.spot.enabled', 'status.state', 'status.conditions', 'status.allocatable', 'status.available', 'status.taints',
  'status.region', 'status.zones', 'status.labels', 'status.last_heartbeat_at', 'status.capacity_reported_at', 'status.spot'].join(',');

// clusterOf returns what the page shows of a cluster.
export function clusterOf({ metadata, spec = {}, status = {} }) {
  const resources = {};
  const all = { ...spec.allocatable, ...status.allocatable };
  for (const [name, text] of Object.entries(all)) {
    const total = parseQuantity(text);
    const free = parseQuantity(status.available?.[name]);
    resources[name] = { total, free, used: total > 0 && Number.isFinite(free) ? Math.min(1, Math.max(0, 1 - free / total)) : NaN };
  }
  const conditions = (status.conditions ?? []).filter((c) => c.status === 'False' || c.type === 'ResourcesGone' || c.type === 'Faulted');
  return {
    name: metadata.name,
    order: orderOf(metadata.name),
    labels: status.labels ?? metadata.labels ?? {},
    owners: spec.namespaces ?? (spec.namespace ? [spec.namespace] : []),
    description: spec.description ?? '',
    provider: spec.cloud_provider ?? '',
    region: spec.region ?? status.region ?? '',
    zones: spec.zones ?? status.zones ?? [],
    state: status.state ?? 'pending',
    paused: spec.paused === true,
    taints: status.taints ?? [],
    spot: spec.spot?.enabled === true,
    spotStatus: status.spot,
    conditions,
    resources,
    seen: Date.parse(status.capacity_reported_at ?? status.last_heartbeat_at ?? ''),
    heartbeat: Date.parse(status.last_heartbeat_at ?? ''),
  };
}

// orderOf makes a text that sorts names as people do, eu-2 before eu-10: comparing such texts is much faster than comparing
// names by a collation, and ten thousand of them are sorted while the page loads.
export const orderOf = (name) => name.replace(/\d+/g, (digits) => digits.padStart(12, '0'));

// load reads all clusters and sets, and returns the revision that they are of.
export async function load(aborted) {
  loaded.value = false;
  let revision = '';
  const found = new Set();
  for await (const page of pages('clusters', { fields, limit: 2500 }, { signal: aborted })) {
    revision = page.resource_version;
    for (const object of page.items) {
      const cluster = clusterOf(object);
      clusters.set(cluster.name, cluster);
      found.add(cluster.name);
    }
    version.value++;
  }
  for (const name of clusters.keys()) if (!found.has(name)) clusters.delete(name);
  sets.clear();
  try {
    for await (const page of pages('cluster-sets', { fields: 'metadata.name,spec' }, { signal: aborted })) {
      for (const set of page.items) sets.set(set.metadata.name, set.spec ?? {});
    }
  } catch (error) {
    // A token may be limited to what it needs; the fleet is shown without sets, then.
    if (error.status !== 403) throw error;
  }
  loaded.value = true;
  version.value++;
  return revision;
}

// forgetClusters drops what one reader saw before another one looks.
export function forgetClusters() {
  clusters.clear();
  sets.clear();
  loaded.value = false;
  version.value = version.peek() + 1;
}

// The room on a cluster changes with decisions, without a change of the cluster itself: it is read again.
const stale = new Set();
let reading = false;

function refresh(names) {
  for (const name of names) if (clusters.has(name)) stale.add(name);
  if (reading || stale.size === 0) return;
  reading = true;
  setTimeout(async () => {
    const some = [...stale].slice(0, 25);
    for (const name of some) stale.delete(name);
    try {
      for (const name of some) {
        if (!clusters.has(name)) continue;
        clusters.set(name, clusterOf(await request(pathOf({ kind: 'cluster', name }))));
      }
    } catch {
      // Gone, or no longer visible: the watch says so.
    }
    version.value++;
    reading = false;
    refresh([]);
  }, 1000);
}

onEvents((events) => {
  let changed = false;
  const moved = new Set();
  for (const { type, object, from } of events) {
    if (object.kind === 'cluster') {
      if (type === 'put') clusters.set(object.metadata.name, clusterOf(object));
      else clusters.delete(object.metadata.name);
      changed = true;
    } else if (object.kind === 'cluster_set') {
      if (type === 'put') sets.set(object.metadata.name, object.spec ?? {});
      else sets.delete(object.metadata.name);
      changed = true;
    } else if (from) {
      for (const name of [...from.clusters, ...clustersOf(object)].slice(0, 50)) moved.add(name);
    }
  }
  if (changed) version.value++;
  refresh(moved);
});

// clustersOf are the names of the clusters that a placement or workload has.
export function clustersOf({ status = {} }) {
  return (status.clusters ?? []).map((c) => (typeof c === 'string' ? c : c.name));
}
