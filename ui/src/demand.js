// Demand: which clusters would give a placement or workload what it lacks.
import { html } from './html.js';
import { Pill } from './parts.js';

const pairs = (values) => Object.entries(values).map(([key, value]) => `${key}=${value}`).join(', ');
const groupOf = (by) => by.replace(/^labels\./, 'label ').replace(/^claims\./, 'claim ').replaceAll('_', ' ');

// factsOf lists what each missing cluster must be and have, as titles and texts.
export function factsOf(demand) {
  const choices = Object.entries(demand.choices ?? {}).map(([by, values]) => `${groupOf(by)}: ${values.join(' or ')}`);
  const spread = (demand.spread ?? []).map((s) => `${s.clusters} in ${groupOf(s.by)} ${s.value ?? 'of its own'}`);
  return [
    ['Free on each', Object.entries({ ...demand.resources }).map(([name, amount]) => `${amount} ${name}`).join(', ')],
    ['Room on each', demand.replicas ? `for ${demand.replicas.toLocaleString()} ${demand.replicas === 1 ? 'replica' : 'replicas'}` : ''],
    ['Labels', pairs(demand.labels ?? {})],
    ['Claims', pairs(demand.claims ?? {})],
    ['Provider', demand.cloud_provider],
    ['Region', demand.region],
    ['Zone', demand.zone],
    ['Names', demand.names?.join(', ')],
    ['Custom resources', demand.custom_resources?.join(', ')],
    ['Resource types', demand.api_resources?.join(', ')],
    ['Kubernetes', demand.kubernetes_version],
    ['Spread', spread.join('; ')],
    ['Also possible', choices.join('; ')],
    ['Besides', demand.requirements?.join('; ')],
  ].filter(([, text]) => text);
}

// Demand shows what would fit.
export function Demand({ demand }) {
  const missing = demand.clusters === 1 ? '1 cluster is missing' : `${demand.clusters.toLocaleString()} clusters are missing`;
  const helps = !(demand.obstacles?.length > 0);
  return html`<section class="card" aria-labelledby="demand">
    <h2 id="demand">What would fit <${Pill} tone="warn">${missing}<//></h2>
    ${helps
      ? html`<dl class="facts">${factsOf(demand).map(([title, text]) => html`<dt key=${title}>${title}</dt><dd>${text}</dd>`)}</dl>`
      : html`<p>No additional cluster helps; something else must change:</p><ul class="plain">${demand.obstacles.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`}
  </section>`;
}
