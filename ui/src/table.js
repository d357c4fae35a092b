// A table of any length: only the rows in sight exist. It is one stop of the tab key; arrows move through its rows.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { narrow } from './media.js';

const overscan = 6;

// Table shows total rows. columns are { id, title, width, cell(row), sorts, wide }; row(index) returns a row, or undefined
// while it is loading; onRange is told which rows are in sight.
export function Table({ label, columns, total, row, keyOf, onRange, sort, onSort, onOpen, empty, rowHeight = 44, narrowHeight = 64, className = '' }) {
  const scroller = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState(-1);
  const height = narrow.value ? narrowHeight : rowHeight;
  const shown = narrow.value ? columns.filter((c) => !c.wide) : columns;
  const tracks = shown.map((c) => c.width ?? '1fr').join(' ');

  useLayoutEffect(() => {
    const element = scroller.current;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => { observer.disconnect(); element.removeEventListener('scroll', measure); };
  }, []);

  const first = Math.max(0, Math.floor(view.top / height) - overscan);
  const last = Math.min(total, Math.ceil((view.top + view.height) / height) + overscan);
  useEffect(() => { onRange?.(first, last); }, [first, last, total, onRange]);

  const reveal = (index) => {
    const element = scroller.current;
    const head = element.firstElementChild.offsetHeight;
    const top = index * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height + head > element.scrollTop + element.clientHeight) element.scrollTop = top + height + head - element.clientHeight;
  };
  const onKeyDown = (event) => {
    if (event.target !== scroller.current || total === 0) return;
    const page = Math.max(1, Math.floor(view.height / height) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -total, End: total }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = Math.min(total - 1, Math.max(0, active + step));
      setActive(next);
      reveal(next);
    } else if (event.key === 'Enter' && active >= 0 && row(active)) {
      event.preventDefault();
      onOpen?.(row(active));
    }
  };
  const onFocus = (event) => { if (event.target === scroller.current && active < 0 && total > 0) setActive(Math.min(total - 1, Math.ceil(view.top / height))); };

  const rows = [];
  for (let index = first; index < last; index++) {
    const value = row(index);
    rows.push(html`<div key=${value ? keyOf(value) : index} id=${`${label}-${index}`} role="row" aria-rowindex=${index + 2}
        class=${`row ${index === active ? 'active' : ''} ${onOpen ? 'opens' : ''} ${value?.className ?? ''}`}
        style=${{ top: `${index * height}px`, height: `${height}px`, gridTemplateColumns: tracks }}
        onClick=${(event) => { setActive(index); if (value && !event.target.closest('a, button')) onOpen?.(value); }}>
      ${shown.map((column) => html`<div key=${column.id} role="gridcell" class=${column.className ?? ''}>${value ? column.cell(value) : html`<span class="loading"></span>`}</div>`)}
    </div>`);
  }
  return html`<div class=${`table ${className}`}><div class="scroll" role="grid" tabindex="0" ref=${scroller} aria-label=${label} aria-rowcount=${total + 1}
      aria-activedescendant=${active >= first && active < last ? `${label}-${active}` : undefined} onKeyDown=${onKeyDown} onFocus=${onFocus}>
    <div role="row" class="head" aria-rowindex="1" style=${{ gridTemplateColumns: tracks }}>
      ${shown.map((column) => html`<div key=${column.id} role="columnheader" aria-sort=${column.sorts ? ({ [column.sorts]: 'ascending', [`-${column.sorts}`]: 'descending' }[sort] ?? 'none') : undefined}>
        ${column.sorts
          ? html`<button class="sort" onClick=${() => onSort(sort === column.sorts ? `-${column.sorts}` : column.sorts)}>${column.title}<span aria-hidden="true">${{ [column.sorts]: '↑', [`-${column.sorts}`]: '↓' }[sort] ?? ''}</span></button>`
          : column.title}
      </div>`)}
    </div>
    ${total > 0 && html`<div class="body" role="rowgroup" style=${{ height: `${total * height}px` }}>${rows}</div>`}
  </div>${total === 0 && empty && html`<div class="none">${empty}</div>`}</div>`;
}
