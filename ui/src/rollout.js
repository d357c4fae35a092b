// A rollout: a decision that changes in steps. What stands, what is meant, what the current step waits for, and its approval.
import { useState } from 'preact/hooks';
import { pathOf, request } from './api.js';
import { html } from './html.js';
import { Failure, Names, Pill, Since, waitOf } from './parts.js';

// What a rollout of thousands of clusters shows: the steps around the current one, and so many clusters of each.
const around = 3;
const shown = 12;

// stateOf says in a word how far one cluster of a rollout is.
export function stateOf(move) {
  if (move.done_at) return { tone: 'good', title: move.leaves ? 'left' : 'done' };
  if (move.healthy_since) return { tone: 'good', title: 'healthy', at: move.healthy_since };
  if (move.failed_at) return { tone: 'bad', title: 'failed', at: move.failed_at };
  if (move.started_at) return { tone: 'warn', title: 'not healthy yet', at: move.started_at };
  return { tone: 'quiet', title: move.leaves ? 'to be left' : 'to come' };
}

// stepsOf returns the steps around the current one, each with what changes in it.
export function stepsOf({ step, total_steps: total, moves }) {
  const steps = new Map();
  for (const move of moves) {
    if (move.step < step - around || move.step > step + around) continue;
    if (!steps.has(move.step)) steps.set(move.step, []);
    steps.get(move.step).push(move);
  }
  const list = [...steps].sort(([a], [b]) => a - b).map(([number, of]) => ({
    number, moves: of.slice(0, shown), more: Math.max(0, of.length - shown), current: number === step,
    groups: [...new Set(of.map((m) => m.group).filter(Boolean))], needsApproval: of.some((m) => m.needs_approval),
  }));
  return { steps: list, before: Math.max(0, (list[0]?.number ?? 1) - 1), after: Math.max(0, total - (list.at(-1)?.number ?? total)) };
}

const named = (move) => (move.replicas ? `${move.cluster} ×${move.replicas}` : move.cluster);
const listed = (names) => (names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', '));

// approvalOf says what an approval of the current step would approve, exactly; undefined if nothing is to be approved.
export function approvalOf(rollout) {
  const { revision, step, total_steps: total, waiting_for: waiting } = rollout;
  const own = rollout.moves.filter((move) => move.step === step);
  const body = { revision, step };
  if (waiting === 'retry') {
    const failed = rollout.moves.filter((m) => m.failed_at && !m.healthy_since && !m.done_at);
    return { body, text: `Try step ${step} of ${total} again: ${listed(failed.map(named))}` };
  }
  if (waiting !== 'approval') return undefined;
  const gained = own.filter((m) => !m.leaves);
  const left = own.filter((m) => m.leaves);
  const parts = [gained.length > 0 && `to ${listed(gained.map(named))}`, left.length > 0 && `leave ${listed(left.map(named))}`].filter(Boolean);
  return { body, text: `Approve step ${step} of ${total}: ${parts.join(', ')}` };
}

// Rollout shows how far a decision has come. stands are the clusters of the decision itself; of is the object, or absent
// where nothing can be approved because it is the past.
export function Rollout({ rollout, stands, of }) {
  const wait = waitOf(rollout);
  const { steps, before, after } = stepsOf(rollout);
  const meant = rollout.target.map((t) => (t.replicas ? `${t.cluster} ×${t.replicas}` : t.cluster));
  return html`<section class="card rollout" aria-labelledby="rollout">
    <h2 id="rollout">Rollout ${rollout.revision}: step ${rollout.step} of ${rollout.total_steps} <${Pill} tone=${wait.tone}>${wait.title}<//>
      ${rollout.failures > 0 && html`<${Pill} tone="bad">${rollout.failures.toLocaleString()} failed<//>`}</h2>
    <dl class="facts">
      ${stands && html`<dt>Stands</dt><dd><${Names} names=${stands.slice(0, shown)} count=${stands.length} /></dd>`}
      <dt>Meant</dt><dd><${Names} names=${meant.slice(0, shown)} count=${meant.length} /></dd>
      ${rollout.started_at && html`<dt>Began</dt><dd><${Since} at=${rollout.started_at} /></dd>`}
    </dl>
    <ol class="steps" aria-label="Steps">
      ${before > 0 && html`<li class="muted">${before === 1 ? '1 step is' : `${before.toLocaleString()} steps are`} done</li>`}
      ${steps.map((s) => html`<li key=${s.number} aria-current=${s.current ? 'step' : undefined}>
        <strong>${s.number}</strong>${s.groups.length > 0 && html` <span class="muted">${s.groups.join(', ')}</span>`}
        ${s.moves.map((m) => html`<${Cluster} key=${`${m.cluster} ${m.leaves}`} move=${m} />`)}
        ${s.more > 0 && html`<span class="muted">and ${s.more.toLocaleString()} more</span>`}
        ${s.needsApproval && s.number >= rollout.step && !(rollout.approved_step >= s.number) && html`<span class="muted">needs approval</span>`}</li>`)}
      ${after > 0 && html`<li class="muted">${after === 1 ? '1 step follows' : `${after.toLocaleString()} steps follow`}</li>`}
    </ol>
    ${of && html`<${Approve} rollout=${rollout} of=${of} key=${`${rollout.revision} ${rollout.step} ${rollout.waiting_for}`} />`}
  </section>`;
}

function Cluster({ move }) {
  const state = stateOf(move);
  return html`<span class="moves">${move.leaves ? 'leave ' : ''}${named(move)} <${Pill} tone=${state.tone}>${state.title}<//>${state.at && html` <small class="muted"><${Since} at=${state.at} /></small>`}</span>`;
}

// Approve approves the step that the rollout waits with. Another rollout or step is another button: what has changed in the
// meantime is never approved, and the server refuses it too.
function Approve({ rollout, of }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const [refused, setRefused] = useState(false);
  const approval = approvalOf(rollout);
  if (!approval) return null;
  const approve = async () => {
    setBusy(true);
    setError('');
    try {
      await request(`${pathOf(of)}/approve?wait=0s`, { method: 'POST', body: approval.body });
    } catch (e) {
      setError(e.message);
      // Who may not write the object may not approve.
      if (e.status === 403) setRefused(true);
    }
    setBusy(false);
  };
  return html`<div class="approve">${error && html`<${Failure} error=${error} />`}
    ${!refused && html`<button onClick=${approve} disabled=${busy}>${approval.text}</button>`}</div>`;
}
