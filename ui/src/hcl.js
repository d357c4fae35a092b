// Objects as Terraform writes them. The attributes of a resource have the names of the API's fields.

const resources = { placement: 'scheduler_placement', workload: 'scheduler_workload', cluster: 'scheduler_cluster' };

const quote = (text) => `"${text
  .replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')
  .replace(/\$\{/g, '$$$${').replace(/%\{/g, '%%{')}"`;

// A word that HCL reads differently must be quoted as a key of an object.
const plain = (key) => /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) && !['for', 'null', 'true', 'false'].includes(key);

function expression(value, indent) {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return quote(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    if (value.every((v) => typeof v !== 'object' || v === null)) {
      const line = `[${value.map((v) => expression(v, inner)).join(', ')}]`;
      if (line.length <= 80) return line;
    }
    return `[\n${value.map((v) => `${inner}${expression(v, inner)},\n`).join('')}${indent}]`;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return '{}';
  return `{\n${attributes(entries, inner)}${indent}}`;
}

// attributes writes lines whose equals signs are aligned, as terraform fmt does: a value of several lines starts over.
function attributes(entries, indent) {
  const lines = entries.map(([key, value]) => [plain(key) ? key : quote(key), expression(value, indent)]);
  let text = '';
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length && !lines[end][1].includes('\n')) end++;
    const block = lines.slice(i, Math.max(end, i + 1));
    const width = Math.max(...block.map(([key]) => key.length));
    for (const [key, value] of block) text += `${indent}${key.padEnd(width)} = ${value}\n`;
    i += block.length;
  }
  return text;
}

// toHCL writes an object as a resource.
export function toHCL(object) {
  const { name, namespace, labels } = object.metadata;
  const meta = Object.entries({ name, namespace, labels }).filter(([, value]) => value !== undefined);
  const spec = Object.entries(object.spec ?? {});
  return `resource "${resources[object.kind] ?? `scheduler_${object.kind}`}" ${quote(name)} {\n${attributes(meta, '  ')}${spec.length ? `\n${attributes(spec, '  ')}` : ''}}\n`;
}
