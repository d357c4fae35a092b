// What was decided before: the moves in the history that the server keeps.
import { Problem, query, request } from './api.js';
import { causeOf } from './cause.js';
import { formatNumber } from './quantity.js';
import { idOf } from './summary.js';

const shown = 8;

// earlierMoveOf makes a move, as the views show it, of an entry.
export function earlierMoveOf({ revision, time, object, after, moved, cause, actor, margin }) {
  const row = { ...object, cause: cause && { ...cause, actor } };
  const names = (side) => moved.filter((m) => m[side]).map((m) => (m.replicas ? `${m[side]} ×${m.replicas}` : m[side]));
  const [from, to] = [names('from'), names('to')];
  return {
    id: `${revision} ${idOf(object)}`, at: time, row, from: from.slice(0, shown), fromCount: from.length, to: to.slice(0, shown), toCount: to.length,
    why: [after ? causeOf(row) : 'it was deleted', margin && `score ${formatNumber(margin.new)}, needed was more than ${formatNumber(margin.needed)}`].filter(Boolean).join('; '),
  };
}

// readHistory returns the newest moves that are kept, newest first, or undefined if this server keeps none.
export async function readHistory(parameters, options) {
  try {
    const page = await request(`v1/history${query({ limit: 200, ...parameters })}`, options);
    return { moves: page.items.map(earlierMoveOf), more: Boolean(page.continue), gaps: page.gaps ?? [], since: page.since };
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return undefined;
    throw error;
  }
}
