// What the reader's screen is like.
import { signal } from '@preact/signals';

function media(query) {
  const list = globalThis.matchMedia?.(query);
  const matches = signal(list?.matches ?? false);
  list?.addEventListener('change', () => { matches.value = list.matches; });
  return matches;
}

// narrow is a phone, dark the reader's preference, still one for no motion.
export const narrow = media('(max-width: 700px)');
export const dark = media('(prefers-color-scheme: dark)');
