// Numbers in words: one place, so that every view says the same of the same value.
const locale = "en-US";
const plain = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });

function scaled(value: number, steps: [number, string][]): string {
  const size = Math.abs(value);
  for (const [scale, unit] of steps)
    if (size >= scale) {
      const n = value / scale;
      return `${n.toLocaleString(locale, { maximumFractionDigits: Math.abs(n) >= 100 ? 0 : Math.abs(n) >= 10 ? 1 : 2 })} ${unit}`;
    }
  return `${plain.format(value)}${steps.length ? ` ${steps[steps.length - 1][1]}` : ""}`;
}

export function formatNs(ns: number): string {
  const size = Math.round(Math.abs(ns) / 1e9);
  if (size >= 60) {  // "1 min 23 s": nobody reads parts of a minute in tenths
    const [large, small] = size >= 3600 ? [[3600, "h"], [60, "min"]] as const : [[60, "min"], [1, "s"]] as const, rest = Math.floor((size % large[0]) / small[0]);
    return `${ns < 0 ? "-" : ""}${plain.format(Math.floor(size / large[0]))} ${large[1]}${rest ? ` ${rest} ${small[1]}` : ""}`;
  }
  return scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
}

export function formatValue(value: number, unit: string): string {
  if (value === 0) return "0";
  switch (unit) {
    case "nanoseconds": return formatNs(value);
    case "microseconds": return formatNs(value * 1e3);
    case "milliseconds": return formatNs(value * 1e6);
    case "seconds": return formatNs(value * 1e9);
    case "bytes": return scaled(value, [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"], [1, "B"]]);
    case "count": case "": return plain.format(value);
    default: return `${value.toLocaleString(locale)} ${unit}`;
  }
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "0 %";
  const share = (100 * part) / whole;
  if (share === 0 || Math.abs(share) === 100) return `${share} %`;
  const digits = Math.abs(share) < 9.995 ? 2 : 1;  // always as many, so that columns of them line up
  return `${share.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })} %`;
}

export const count = (n: number) => plain.format(n);

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// "3 hours ago", of seconds.
export function ago(seconds: number): string {
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [[86400 * 365, "year"], [86400 * 30, "month"], [86400 * 7, "week"], [86400, "day"], [3600, "hour"], [60, "minute"]];
  for (const [size, unit] of steps) if (seconds >= size) return relative.format(-Math.floor(seconds / size), unit);
  return "just now";
}

// "1.2s", "300ms", "17us" to ns; null: not a time.
export function parseTime(text: string): number | null {
  const m = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min)?\s*$/.exec(text);
  if (!m) return null;
  const unit: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9 };
  return Math.round(Number(m[1]) * unit[m[2] ?? "s"]);
}
