// Everything that the page shows follows from these signals; the URL's hash is their other form, so that a link, a reload and
// the Back button bring the same picture. Only the theme is kept elsewhere.
import { computed, effect, signal } from "@preact/signals";
import type { Label, Profile } from "./model/profile";
import { compareDown, scaledBase, scaleOf, type Noise } from "./ops/compare";
import { foldDown, functionTable, invert, kept, sandwich, search as searchTree, type FuncRow } from "./ops/fold";
import type { Order, ViewTree } from "./ops/view_tree";
import { valueOf, weigh } from "./ops/weigh";
import type { Scheme } from "./draw/colors";
import { FILTER_KINDS, isCutMark, toRegExp, type Filter, type FilterKind } from "./ops/filters";

export type Tab = "flame" | "table" | "timeline" | "source" | "sql";
export const TABS: Tab[] = ["flame", "table", "timeline", "source", "sql"];
export type Direction = "down" | "up" | "sandwich";
export type Theme = "auto" | "light" | "dark";

export const profiles = signal<Profile[]>([]);
export const hasServer = signal(false);
export const problem = signal<{ title: string; text: string } | null>(null);
export const loading = signal<{ name: string; phase: string; bytes: number; cancel?: () => void } | null>(null);
export const said = signal("");                            // to those who listen to the page

export const file = signal(0);
export const base = signal<number | null>(null);          // index of the profile to compare with
export const normalise = signal<boolean | null>(null);    // null: when the durations differ by more than 5 %
export const byBase = signal(false);                      // a diff's boxes are as wide as the base has them
export const metricName = signal<string | null>(null);    // by name, so that it survives a change of file
export const threads = signal<Set<number> | null>(null);
export const timeRange = signal<[number, number] | null>(null);
export const filters = signal<Filter[]>([]);
export const labels = signal<Label[]>([]);
export const tab = signal<Tab>("flame");
export const direction = signal<Direction>("down");
export const sandwichName = signal<string | null>(null);
export const order = signal<Order>("heavy");
export const collapseRecursion = signal(false);
export const zoomPath = signal<string[]>([]);
export const selectedPath = signal<string[]>([]);
export const query = signal("");
export const scheme = signal<Scheme>("kind");
export const flameUp = signal(false);
export const theme = signal<Theme>("auto");
export const drawerOpen = signal(typeof innerWidth === "undefined" || innerWidth > 720);
export const compareMetric = signal<string | null>(null);  // a second metric in the table
export const sourceFunc = signal<number | null>(null);
// What the pointer is over, in whichever tree is drawn there.
export const hovered = signal<{ tree: ViewTree; node: number } | null>(null);
export const timelineText = signal("");                    // the same of the timeline, and what one may do there

export const profile = computed<Profile | null>(() => profiles.value[file.value] ?? null);
export const baseProfile = computed<Profile | null>(() => (base.value === null || base.value === file.value ? null : profiles.value[base.value] ?? null));

// What people call a file: its name, with its folders only where two have the same.
export const fileNames = computed(() => {
  const names = profiles.value.map((p) => p.name), base = (name: string) => name.slice(name.lastIndexOf("/") + 1);
  return names.map((name) => (names.filter((other) => base(other) === base(name)).length > 1 ? name : base(name)));
});

export const metric = computed(() => {
  const p = profile.value;
  if (!p) return 0;
  const at = p.metrics.findIndex((m) => m.name === metricName.value);
  return at >= 0 ? at : p.defaultMetric();
});

export const metricUnit = computed(() => profile.value?.metrics[metric.value]?.unit ?? "");
export const selection = computed(() => ({ metric: metric.value, threads: threads.value, time: timeRange.value, labels: labels.value }));
export const weights = computed(() => (profile.value ? weigh(profile.value, selection.value) : new Float64Array()));

// Without the stacks that filters leave out.
export const keptWeights = computed(() => (profile.value ? kept(profile.value, weights.value, filters.value) : new Float64Array()));

// Threads that have anything in this metric, the busiest first, and how much by thread.
export const busyThreads = computed(() => {
  const p = profile.value, sums = new Float64Array(p?.threads.length ?? 0);
  if (!p) return { sums, order: [] as number[] };
  const rows = p.rows, value = valueOf(p, metric.value);
  for (let i = 0; i < rows.size; i++) if (rows.thread[i] >= 0) sums[rows.thread[i]] += value(i);
  return { sums, order: [...sums.keys()].filter((i) => sums[i] !== 0).sort((a, b) => sums[b] - sums[a]) };
});
export const threadName = (p: Profile, i: number) => `${p.threads[i]?.name || p.threads[i]?.process || "thread"} ${p.threads[i]?.tid ?? ""}`;

const foldOptions = computed(() => ({ filters: filters.value, collapseRecursion: collapseRecursion.value, order: order.value, byBase: byBase.value }));

const sumOf = (values: Float64Array) => { let sum = 0; for (const v of values) sum += v; return sum; };

export const isNormalised = computed(() => {
  const p = profile.value, b = baseProfile.value;
  if (!p || !b) return false;
  if (normalise.value !== null) return normalise.value;
  const longer = Math.max(p.meta.duration_ns, b.meta.duration_ns);
  return longer === 0 || Math.abs(p.meta.duration_ns - b.meta.duration_ns) > 0.05 * longer;
});

export const down = computed<{ tree: ViewTree; funcs: Profile["funcs"]; scale: number } | null>(() => {
  const p = profile.value, b = baseProfile.value;
  if (!p) return null;
  if (!b) return { tree: foldDown(p, weights.value, foldOptions.value), funcs: p.funcs, scale: 1 };
  const name = p.metrics[metric.value]?.name, at = b.metrics.findIndex((m) => m.name === name);
  const other = at < 0 ? new Float64Array(b.tree.size) : b.self(at);
  const { tree, funcs } = compareDown(p, weights.value, b, other, foldOptions.value);
  const scale = scaleOf(tree.total[0], tree.base[0], isNormalised.value);
  return { tree: scaledBase(tree, scale), funcs, scale };
});

// How much one sample weighs in a profile; 0: nothing tells how many there are.
function worthOf(p: Profile, metricName: string): number {
  const at = p.metrics.findIndex((m) => m.name === metricName);
  if (at < 0) return 0;
  const total = Math.abs(sumOf(p.self(at))), counted = p.isTimed ? p.meta.samples_metric ?? -1 : p.metrics[at].unit === "count" ? at : p.metrics.findIndex((m) => m.name === "samples");
  const samples = counted < 0 ? 0 : sumOf(p.self(counted));
  return samples > 0 ? total / samples : 0;
}

export const noise = computed<Noise>(() => {
  const p = profile.value, b = baseProfile.value, d = down.value, tree = d?.tree, name = p?.metrics[metric.value]?.name ?? "";
  if (!p || !b || !tree) return { largest: 0, nowWorth: 0, baseWorth: 0 };
  const now = worthOf(p, name), before = worthOf(b, name), scale = d!.scale;
  return { largest: Math.max(Math.abs(tree.total[0]), Math.abs(tree.base[0])), nowWorth: before > 0 ? now : 0, baseWorth: now > 0 ? before * scale : 0 };
});

export const wholeTotal = computed(() => (profile.value ? sumOf(profile.value.self(metric.value)) : 0));

export const up = computed(() => {
  const d = down.value;
  return d ? invert(d.funcs, d.tree, order.value, byBase.value) : null;
});

export const sandwichFunc = computed<number | null>(() => {
  const d = down.value;
  if (!d || sandwichName.value === null) return null;
  const at = d.funcs.findIndex((f) => f.name === sandwichName.value);
  return at < 0 ? null : at;
});

export const sandwiched = computed(() => {
  const d = down.value, f = sandwichFunc.value;
  return d && f !== null ? sandwich(d.funcs, d.tree, f, order.value, byBase.value) : null;
});

export const shown = computed(() => (direction.value === "up" ? up.value : down.value?.tree ?? null));

// The functions by another metric of the same profile, by name.
export const secondTable = computed<Map<number, FuncRow> | null>(() => {
  const p = profile.value, at = p?.metrics.findIndex((m) => m.name === compareMetric.value) ?? -1;
  if (!p || at < 0 || at === metric.value || baseProfile.value) return null;
  const tree = foldDown(p, weigh(p, { ...selection.value, metric: at }), foldOptions.value);
  return new Map(functionTable(tree).map((r) => [r.func, r]));
});

export const table = computed(() => { const d = down.value; return d ? functionTable(d.tree).filter((r) => !isCutMark(d.funcs[r.func])) : []; });

// Which functions the search box finds; null: it is empty.
export const matches = computed<Uint8Array | null>(() => {
  const d = down.value, text = query.value.trim();
  if (!d || text === "") return null;
  const out = new Uint8Array(d.funcs.length), slash = /^\/(.+)\/(i?)$/.exec(text), plain = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "i");
  const re = slash ? toRegExp((slash[2] ? "(?i)" : "") + slash[1]) ?? plain : plain, places = new Map<string, boolean>();  // many functions share a file
  const isPlace = (place: string) => {
    let known = places.get(place);
    if (known === undefined) places.set(place, (known = place !== "" && re.test(place)));
    return known;
  };
  d.funcs.forEach((f, i) => { if (re.test(f.name) || isPlace(f.module) || isPlace(f.file)) out[i] = 1; });
  return out;
});

export const found = computed(() => (matches.value && shown.value ? searchTree(shown.value, matches.value) : null));

// --- paths of names: they survive a reload, another metric and filters ------------------------------------------------

export function pathOf(tree: ViewTree, funcs: Profile["funcs"], node: number): string[] {
  const path: string[] = [];
  for (let i = node; i > 0; i = tree.parent[i]) path.push(funcs[tree.func[i]].name);
  return path.reverse();
}

// The node of a path, as far as it still exists.
export function nodeOf(tree: ViewTree, funcs: Profile["funcs"], path: string[]): number {
  let node = 0;
  for (const name of path) {
    let next = -1;
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child])
      if (funcs[tree.func[child]].name === name) { next = child; break; }
    if (next < 0) return node;
    node = next;
  }
  return node;
}

// --- filters -----------------------------------------------------------------------------------------------------------

export function addFilter(kind: FilterKind, pattern: string) {
  if (!filters.value.some((f) => f.kind === kind && f.pattern === pattern)) filters.value = [...filters.value, { kind, pattern }];
  zoomPath.value = [];
}
// What was chosen in one file (threads, times, a zoom) says nothing of another.
export function showFile(at: number) {
  file.value = at;
  zoomPath.value = selectedPath.value = [];
  threads.value = timeRange.value = sourceFunc.value = null;
  said.value = "";
  if (base.value === at) base.value = null;
}

export function removeFilter(at: number) { filters.value = filters.value.filter((_, i) => i !== at); }
export function clearFilters() {
  filters.value = [];
  labels.value = [];
  threads.value = null;
  timeRange.value = null;
}
export const isFiltered = computed(() => filters.value.length > 0 || labels.value.length > 0 || threads.value !== null || timeRange.value !== null);

export function showSandwich(name: string) {
  sandwichName.value = name;
  direction.value = "sandwich";
  tab.value = "flame";
}

// --- the URL -----------------------------------------------------------------------------------------------------------

const FIELDS: [string, () => string, (text: string) => void][] = [
  ["v", () => (tab.value === "flame" ? "" : tab.value), (t) => { tab.value = TABS.includes(t as Tab) ? (t as Tab) : "flame"; }],
  ["i", () => (file.value ? String(file.value) : ""), (t) => { file.value = Math.max(0, Math.min(Math.trunc(Number(t)) || 0, profiles.value.length - 1)); }],
  ["d", () => (base.value === null ? "" : String(base.value)), (t) => { base.value = t === "" ? null : Number(t); }],
  ["w", () => (byBase.value ? "base" : ""), (t) => { byBase.value = t === "base"; }],
  ["m", () => metricName.value ?? "", (t) => { metricName.value = t || null; }],
  ["m2", () => compareMetric.value ?? "", (t) => { compareMetric.value = t || null; }],
  ["dir", () => (direction.value === "down" ? "" : direction.value), (t) => { direction.value = t === "up" || t === "sandwich" ? t : "down"; }],
  ["s", () => sandwichName.value ?? "", (t) => { sandwichName.value = t || null; }],
  ["ord", () => (order.value === "heavy" ? "" : order.value), (t) => { order.value = t === "name" || t === "time" ? t : "heavy"; }],
  ["z", () => JSON.stringify(zoomPath.value).slice(1, -1), (t) => { zoomPath.value = parsedList(t).filter((name) => typeof name === "string"); }],
  ["q", () => query.value, (t) => { query.value = t; }],
  ["f", () => JSON.stringify(filters.value.map((f) => [f.kind, f.pattern])).slice(1, -1), (t) => {
    filters.value = parsedPairs(t).filter(([kind]) => FILTER_KINDS.includes(kind as FilterKind)).map(([kind, pattern]) => ({ kind: kind as FilterKind, pattern }));
  }],
  ["l", () => JSON.stringify(labels.value.map((l) => [l.key, l.text])).slice(1, -1), (t) => {
    labels.value = parsedPairs(t).map(([key, text]) => ({ key, text }));
  }],
  ["th", () => (threads.value ? [...threads.value].join(",") : ""), (t) => { threads.value = t ? new Set(t.split(",").map(Number)) : null; }],
  ["t", () => (timeRange.value ? timeRange.value.map((n) => Math.round(n)).join("-") : ""), (t) => {
    const m = /^(\d+)-(\d+)$/.exec(t);
    timeRange.value = m ? [Number(m[1]), Number(m[2])] : null;
  }],
  ["c", () => (scheme.value === "kind" ? "" : scheme.value), (t) => { scheme.value = (["module", "heat"].includes(t) ? t : "kind") as Scheme; }],
  ["r", () => (collapseRecursion.value ? "1" : ""), (t) => { collapseRecursion.value = t === "1"; }],
  ["up", () => (flameUp.value ? "1" : ""), (t) => { flameUp.value = t === "1"; }],
];

// Links are cut, quoted and edited: what is not understood is left out.
function parsedList(text: string): unknown[] {
  try { return JSON.parse(`[${text}]`); } catch { return []; }
}
const parsedPairs = (text: string) => parsedList(text).filter((p): p is [string, string] => Array.isArray(p) && p.length === 2 && p.every((part) => typeof part === "string"));

export function hashText(): string {
  const parts: string[] = [];
  for (const [key, get] of FIELDS) {
    const text = get();
    if (text !== "") parts.push(`${key}=${encodeURIComponent(text)}`);
  }
  return parts.join("&");
}

export function readHash(hash: string) {
  const values = new Map(hash.replace(/^#/, "").split("&").filter(Boolean).map((part) => {
    const at = part.indexOf("=");
    try { return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))] as const; } catch { return ["", ""] as const; }
  }));
  for (const [key, , set] of FIELDS) set(values.get(key) ?? "");
}

// Typing replaces the newest entry of the history, everything else adds one.
export function followUrl() {
  readHash(location.hash);
  let last = hashText(), lastQuery = query.value;
  effect(() => {
    const text = hashText();
    if (text === last) return;
    const typing = query.value !== lastQuery;
    lastQuery = query.value;
    last = text;
    const url = text === "" ? location.pathname + location.search : `#${text}`;
    try { history[typing ? "replaceState" : "pushState"](null, "", url); } catch { /* a sandboxed frame keeps its address */ }
  });
  addEventListener("popstate", () => {
    readHash(location.hash);
    last = hashText();
    lastQuery = query.value;
  });
}

export function followTheme() {
  try { theme.value = (localStorage.getItem("cprof-theme") as Theme) ?? "auto"; } catch { /* no storage for file:// */ }
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try { localStorage.setItem("cprof-theme", theme.value); } catch { /* the same */ }
  });
}

const systemDark = signal(false);
if (typeof matchMedia !== "undefined") {
  const media = matchMedia("(prefers-color-scheme: dark)");
  systemDark.value = media.matches;
  media.addEventListener("change", () => { systemDark.value = media.matches; });
}
export const isDark = computed(() => (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
