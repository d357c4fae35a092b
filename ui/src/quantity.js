// Kubernetes quantities as numbers, and numbers as people read them.

const scales = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

// parseQuantity returns the number that a quantity stands for, or NaN.
export function parseQuantity(text) {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)$/.exec(String(text ?? ''));
  return match ? Number(match[1]) * scales[match[2]] : NaN;
}

// isBytes tells from its name whether a resource is counted in bytes.
const isBytes = (resource) => /memory|storage|disk/.test(resource);

// formatQuantity writes an amount of a resource shortly: "1.5 Ti", "12.5k".
export function formatQuantity(amount, resource) {
  if (!Number.isFinite(amount)) return 'unknown';
  const [base, units] = isBytes(resource) ? [1024, ['', ' Ki', ' Mi', ' Gi', ' Ti', ' Pi', ' Ei']] : [1000, ['', 'k', 'M', 'G', 'T', 'P', 'E']];
  let step = 0;
  let value = Math.abs(amount);
  for (; value >= base && step < units.length - 1; step++) value /= base;
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${amount < 0 ? '-' : ''}${Number(value.toFixed(digits))}${units[step]}`;
}

// formatNumber writes a score or the value of a metric with four significant digits.
export function formatNumber(value) {
  return value === undefined || value === null ? '' : String(Number(Number(value).toPrecision(4)));
}
