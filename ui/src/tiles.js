// The tiles of the fleet: where each is, and how it is drawn. Ten thousand of them are one canvas, of which only the
// visible part is drawn; where they are is arithmetic, so that keyboard and pointer find them without elements.

const heading = 34;
const gap = { small: 2, medium: 4, large: 10 };
const extent = { small: [14, 14], medium: [30, 30], large: [168, 76] };

// sizeFor chooses the size of tiles for a number of clusters.
export const sizeFor = (count) => (count > 2000 ? 'small' : count > 150 ? 'medium' : 'large');

// layout places the tiles of groups in a width.
export function layout(groups, width, size) {
  const between = gap[size];
  const [least, height] = extent[size];
  const columns = Math.max(1, Math.floor((width + between) / (least + between)));
  // Large tiles fill the row; small ones keep their size, which the eye compares.
  const tile = size === 'large' ? (width - between * (columns - 1)) / columns : least;
  const sections = [];
  let top = 0;
  let first = 0;
  for (const { name, members } of groups) {
    const rows = Math.ceil(members.length / columns);
    sections.push({ name, members, first, top, body: top + heading, rows });
    first += members.length;
    top += heading + rows * (height + between) + 10;
  }
  return { size, columns, tile, rowHeight: height, between, sections, count: first, height: top };
}

// sectionAt finds the section of an index.
function sectionAt(plan, index) {
  let low = 0;
  let high = plan.sections.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (plan.sections[middle].first <= index) low = middle; else high = middle - 1;
  }
  return plan.sections[low];
}

// at returns the cluster at an index.
export function at(plan, index) {
  if (index < 0 || index >= plan.count) return undefined;
  const section = sectionAt(plan, index);
  return section.members[index - section.first];
}

// boxOf is where the tile of an index is.
export function boxOf(plan, index) {
  const section = sectionAt(plan, index);
  const own = index - section.first;
  return {
    x: (own % plan.columns) * (plan.tile + plan.between),
    y: section.body + Math.floor(own / plan.columns) * (plan.rowHeight + plan.between),
    width: plan.tile, height: plan.rowHeight,
  };
}

// hit returns the index of the tile at a point, or -1.
export function hit(plan, x, y) {
  const section = plan.sections.findLast((s) => s.top <= y);
  if (!section || y < section.body || x < 0) return -1;
  const column = Math.floor(x / (plan.tile + plan.between));
  const own = Math.floor((y - section.body) / (plan.rowHeight + plan.between)) * plan.columns + column;
  return column < plan.columns && own < section.members.length ? section.first + own : -1;
}

// neighbor returns the index that a key leads to.
export function neighbor(plan, index, key) {
  const last = plan.count - 1;
  const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -plan.columns, ArrowDown: plan.columns }[key];
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  if (move === undefined) return index;
  if (Math.abs(move) === 1) return Math.min(last, Math.max(0, index + move));
  // Up and down keep the column, also into the next group.
  const section = sectionAt(plan, index);
  const own = index - section.first;
  const target = own + move;
  if (target >= 0 && target < section.members.length) return section.first + target;
  const place = plan.sections.indexOf(section);
  const column = own % plan.columns;
  if (move > 0) {
    if (Math.floor(own / plan.columns) < section.rows - 1) return section.first + section.members.length - 1;
    const next = plan.sections[place + 1];
    return next ? next.first + Math.min(column, next.members.length - 1) : index;
  }
  const before = plan.sections[place - 1];
  return before ? before.first + Math.min((before.rows - 1) * plan.columns + column, before.members.length - 1) : index;
}

// draw draws the part of the tiles that is visible. style says how: colors, what is filled, what is lit.
export function draw(context, plan, { scroll, width, height, style }) {
  context.clearRect(0, 0, width, height);
  for (const section of plan.sections) {
    const end = section.body + section.rows * (plan.rowHeight + plan.between);
    if (end < scroll || section.top > scroll + height) continue;
    title(context, section, scroll, width, style);
    const from = Math.max(0, Math.floor((scroll - section.body) / (plan.rowHeight + plan.between))) * plan.columns;
    const to = Math.min(section.members.length, (Math.floor((scroll + height - section.body) / (plan.rowHeight + plan.between)) + 1) * plan.columns);
    for (let i = from; i < to; i++) {
      const box = boxOf(plan, section.first + i);
      box.y -= scroll;
      tile(context, box, section.members[i], plan.size, style, section.first + i === style.active);
    }
  }
}

function title(context, section, scroll, width, style) {
  const { colors } = style;
  context.font = style.fonts.heading;
  context.fillStyle = colors.ink;
  context.textBaseline = 'middle';
  const y = section.top - scroll + heading / 2 + 2;
  const text = section.name || style.untitled;
  context.fillText(clip(context, text, width - 160), 0, y);
  const after = context.measureText(clip(context, text, width - 160)).width;
  context.font = style.fonts.small;
  context.fillStyle = colors.muted;
  context.fillText(style.summary(section.members), after + 10, y);
}

// small draws a tile without what is slow and would not be seen: thousands of them are in sight.
function small(context, { x, y, width, height }, cluster, style, marks, used) {
  const { colors } = style;
  context.fillStyle = marks.down ? colors.surface : colors.tile;
  context.fillRect(x, y, width, height);
  if (marks.down) {
    context.strokeStyle = colors.bad;
    context.lineWidth = 1.5;
    context.strokeRect(x + 0.75, y + 0.75, width - 1.5, height - 1.5);
    context.beginPath();
    context.moveTo(x, y + height);
    context.lineTo(x + width, y);
    context.stroke();
  } else if (Number.isFinite(used)) {
    context.fillStyle = level(colors, used);
    context.fillRect(x, y + height * (1 - used), width, height * used);
  }
  if (marks.tainted) {
    context.fillStyle = colors.taint;
    context.beginPath();
    context.moveTo(x + width - 6, y);
    context.lineTo(x + width, y);
    context.lineTo(x + width, y + 6);
    context.fill();
  }
  if (marks.spot) {
    context.fillStyle = colors.spot;
    context.fillRect(x, y, 4, 4);
  }
  if (marks.paused) {
    context.fillStyle = colors.ink;
    context.fillRect(x + 4, y + 4, 2, height - 8);
    context.fillRect(x + 8, y + 4, 2, height - 8);
  }
}

const level = (colors, used) => (used >= 0.95 ? colors.full : used >= 0.8 ? colors.high : colors.fill);

function tile(context, box, cluster, size, style, active) {
  const { x, y, width, height } = box;
  const { colors } = style;
  const used = cluster.resources[style.resource]?.used;
  const marks = style.marks(cluster);
  const radius = { small: 1, medium: 4, large: 8 }[size];
  const lit = style.lit ? style.lit(cluster) : undefined;
  context.globalAlpha = lit === false ? 0.28 : marks.old ? 0.6 : 1;
  if (size === 'small') {
    small(context, box, cluster, style, marks, used);
    outline(context, box, radius, colors, lit, active);
    return;
  }
  rounded(context, x, y, width, height, radius);
  context.fillStyle = marks.down ? colors.surface : colors.tile;
  context.fill();
  context.save();
  context.clip();
  if (!marks.down && Number.isFinite(used)) {
    context.fillStyle = level(colors, used);
    if (size === 'large') context.fillRect(x, y + height - 6, width * used, 6);
    else context.fillRect(x, y + height * (1 - used), width, height * used);
  }
  if (marks.down) {
    context.strokeStyle = colors.bad;
    context.lineWidth = 2;
    if (size !== 'large') {
      context.beginPath();
      context.moveTo(x, y + height);
      context.lineTo(x + width, y);
      context.stroke();
    }
  }
  // Marks have places of their own, so that they are told apart without their colors.
  const mark = 8;
  if (marks.tainted && size !== 'large') {
    context.fillStyle = colors.taint;
    context.beginPath();
    context.moveTo(x + width - mark, y);
    context.lineTo(x + width, y);
    context.lineTo(x + width, y + mark);
    context.fill();
  }
  if (marks.spot && size !== 'large') {
    context.fillStyle = colors.spot;
    context.beginPath();
    context.arc(x + mark * 0.6, y + mark * 0.6, mark * 0.36, 0, 7);
    context.fill();
  }
  if (marks.paused && size !== 'large') {
    context.fillStyle = colors.ink;
    context.fillRect(x + width * 0.32, y + height * 0.3, Math.max(1.5, width * 0.1), height * 0.4);
    context.fillRect(x + width * 0.58, y + height * 0.3, Math.max(1.5, width * 0.1), height * 0.4);
  }
  context.restore();
  if (size === 'large') words(context, { x, y, width }, cluster, style, marks, used);
  rounded(context, x + 0.5, y + 0.5, width - 1, height - 1, radius);
  context.strokeStyle = marks.down ? colors.bad : colors.line;
  context.lineWidth = 1;
  context.stroke();
  outline(context, box, radius, colors, lit, active);
}

// outline marks the tiles that are part of a decision, and the one that the keyboard is at.
function outline(context, { x, y, width, height }, radius, colors, lit, active) {
  context.globalAlpha = 1;
  if (lit || active) {
    rounded(context, x - 1, y - 1, width + 2, height + 2, radius + 1);
    context.strokeStyle = active ? colors.focus : colors.accent;
    context.lineWidth = active ? 3 : 2;
    context.stroke();
  }
}

// words are on large tiles: a name, a sentence, and marks that need no legend.
function words(context, { x, y, width }, cluster, style, marks, used) {
  const { colors } = style;
  context.textBaseline = 'alphabetic';
  context.font = style.fonts.name;
  context.fillStyle = colors.ink;
  context.fillText(clip(context, cluster.name, width - 24), x + 12, y + 26);
  context.font = style.fonts.small;
  context.fillStyle = marks.down ? colors.bad : colors.muted;
  const parts = [];
  if (marks.down) parts.push(cluster.state);
  if (marks.paused) parts.push('paused');
  if (cluster.taints.length > 0) parts.push(cluster.taints.length === 1 ? 'tainted' : `${cluster.taints.length} taints`);
  if (marks.spot) parts.push('spot');
  if (Number.isFinite(used) && !marks.down) parts.push(`${Math.round(used * 100)} % ${style.resource}`);
  if (parts.length === 0) parts.push(cluster.state);
  context.fillText(clip(context, parts.join(' · '), width - 24), x + 12, y + 48);
}

function rounded(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}
