// Clusters in groups, and what is worth a look in them.
import { selects } from './selector.js';

// groupings are what clusters can be grouped by, with the labels that they have.
export function groupings(clusters) {
  const labels = new Set();
  for (const cluster of clusters) for (const key of Object.keys(cluster.labels)) if (labels.size < 200) labels.add(key);
  return ['region', 'provider', 'set', 'state', 'none', ...[...labels].sort().map((key) => `label:${key}`)];
}

// group returns groups of clusters by name, the one of those that belong to none last.
export function group(clusters, by, sets) {
  const groups = new Map();
  const add = (name, cluster) => {
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(cluster);
  };
  for (const cluster of clusters) {
    for (const name of names(cluster, by, sets)) add(name, cluster);
  }
  return [...groups].map(([name, members]) => ({ name, members })).sort((a, b) => (a.name === '') - (b.name === '') || compare(a.name, b.name));
}

function names(cluster, by, sets) {
  switch (by) {
    case 'region': return [cluster.region];
    case 'provider': return [cluster.provider];
    case 'state': return [cluster.state];
    case 'none': return ['All clusters'];
    case 'set': {
      const list = [...sets].filter(([, set]) => (set.selector ? selects(set.selector, cluster.labels) : (set.clusters ?? []).includes(cluster.name))).map(([name]) => name);
      return list.length > 0 ? list : [''];
    }
    default: return [cluster.labels[by.replace(/^label:/, '')] ?? ''];
  }
}

const collator = new Intl.Collator('en', { numeric: true });

// compare orders names as people do: eu-2 before eu-10.
export const compare = (a, b) => collator.compare(a, b);

// untitled is what the group of clusters without a value is called.
export function untitled(by) {
  return { region: 'No region', provider: 'No provider', set: 'In no set' }[by] ?? `Without ${by.replace(/^label:/, '')}`;
}

// marksOf are what a tile shows besides its fill.
export function marksOf(cluster, now) {
  return {
    down: cluster.state !== 'online',
    paused: cluster.paused,
    tainted: cluster.taints.length > 0,
    spot: cluster.spot,
    // Figures older than ten minutes are history.
    old: Number.isFinite(cluster.heartbeat) && now - cluster.heartbeat > 600_000,
  };
}

// resourcesOf are the resources that clusters have, the usual ones first.
export function resourcesOf(clusters) {
  const found = new Set();
  for (const cluster of clusters) for (const name of Object.keys(cluster.resources)) found.add(name);
  const first = ['cpu', 'memory'].filter((name) => found.has(name));
  return [...first, ...[...found].filter((name) => !first.includes(name)).sort()];
}
