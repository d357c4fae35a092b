// A field that finds an object while one types.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { html } from './html.js';

// Picker calls find(text) for options { id, text, more } and pick(option) with the chosen one.
export function Picker({ label, placeholder, find, pick, value = '' }) {
  const id = useId();
  const [text, setText] = useState(value);
  const [options, setOptions] = useState([]);
  const [active, setActive] = useState(-1);
  const [openList, setOpen] = useState(false);
  const asked = useRef(0);
  const chosen = useRef(value);
  chosen.current = value;
  useEffect(() => { setText(value); }, [value]);

  const search = (wanted) => {
    const own = ++asked.current;
    setTimeout(async () => {
      if (own !== asked.current) return;
      const found = await Promise.resolve(find(wanted)).catch(() => []);
      if (own !== asked.current) return;
      setOptions(found);
      setActive(found.length > 0 ? 0 : -1);
      setOpen(true);
    }, 80);
  };
  const choose = (option) => {
    asked.current++;
    setOpen(false);
    setText(value);
    if (option) { setText(option.text); pick(option); }
  };
  const onKeyDown = (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!openList) search(text);
      else setActive((active + (event.key === 'ArrowDown' ? 1 : options.length - 1)) % Math.max(1, options.length));
    } else if (event.key === 'Enter' && openList && options[active]) {
      event.preventDefault();
      choose(options[active]);
    } else if (event.key === 'Escape') {
      setOpen(false);
      if (text && !openList) { setText(''); pick(null); }
    }
  };
  return html`<div class="picker">
    <label for=${id}>${label}</label>
    <input id=${id} type="text" role="combobox" autocomplete="off" spellcheck=${false} placeholder=${placeholder} value=${text}
      aria-expanded=${String(openList)} aria-controls=${`${id}-list`} aria-autocomplete="list" aria-activedescendant=${openList && options[active] ? `${id}-${active}` : undefined}
      onInput=${(event) => { setText(event.target.value); if (event.target.value === '') pick(null); search(event.target.value); }}
      onFocus=${(event) => { event.target.select(); search(''); }} onBlur=${() => setTimeout(() => { asked.current++; setOpen(false); setText(chosen.current); }, 150)} onKeyDown=${onKeyDown} />
    <ul id=${`${id}-list`} role="listbox" aria-label=${label} hidden=${!openList}>
      ${options.map((option, i) => html`<li key=${option.id} id=${`${id}-${i}`} role="option" aria-selected=${String(i === active)} onMouseDown=${(event) => { event.preventDefault(); choose(option); }}>
        <span>${option.text}</span>${option.more && html`<small>${option.more}</small>`}</li>`)}
      ${options.length === 0 && html`<li role="option" aria-disabled="true" aria-selected="false">Nothing found</li>`}
    </ul>
  </div>`;
}
