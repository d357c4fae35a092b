// Times as people read them, relative to a clock that ticks once in a while.
import { signal } from '@preact/signals';

// now is the server's time in milliseconds: ages must not depend on the clock of the reader.
export const now = signal(Date.now());

let ahead = 0;

// setServerTime takes over the clock of the server.
export function setServerTime(text) {
  const at = Date.parse(text);
  if (Number.isFinite(at)) ahead = at - Date.now();
  now.value = Date.now() + ahead;
}

setInterval(() => { now.value = Date.now() + ahead; }, 5000).unref?.();

// serverNow is the server's time at this moment.
export const serverNow = () => Date.now() + ahead;

// duration writes a length of time with its two largest units: "3 d 4 h".
export function duration(milliseconds) {
  let seconds = Math.max(0, Math.round(milliseconds / 1000));
  const parts = [];
  for (const [unit, length] of [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]) {
    const amount = Math.floor(seconds / length);
    seconds -= amount * length;
    if (amount > 0) parts.push(`${amount} ${unit}`);
    if (parts.length === 2 || (parts.length === 1 && (unit === 'min' || amount === 0))) break;
  }
  return parts.join(' ') || '0 s';
}

// ago writes how long ago a time was.
export function ago(text, at = now.value) {
  const time = typeof text === 'number' ? text : Date.parse(text ?? '');
  if (!Number.isFinite(time)) return '';
  return at - time < 5000 ? 'just now' : `${duration(at - time)} ago`;
}

// clock writes the time of day, with the date if it is another one.
export function clock(text, at = now.value) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return '';
  const day = new Date(at).toDateString() === time.toDateString() ? '' : `${time.toLocaleDateString(undefined, { month: 'short', day: 'numeric' })} `;
  return day + time.toLocaleTimeString(undefined, { hour12: false });
}
