// The weight of every node of the tree itself: whole, or of chosen threads, times and labels only. Pure.
import type { Label, Profile } from "../model/profile";

export interface Selection {
  metric: number;
  threads: Set<number> | null;       // null: all
  time: [number, number] | null;     // ns since the start
  labels: Label[];                   // every one of them must be there
}

export function isWhole(s: Selection): boolean { return s.threads === null && s.time === null && s.labels.length === 0; }

export function weigh(profile: Profile, selection: Selection): Float64Array {
  if (isWhole(selection) || !profile.meta.has_rows) return profile.self(selection.metric);
  const self = new Float64Array(profile.tree.size), rows = profile.rows, value = valueOf(profile, selection.metric);
  const threads = selection.threads && flags(profile.threads.length, selection.threads), labels = labelFlags(profile, selection.labels);
  let from = 0, to = rows.size;
  if (selection.time) [from, to] = [lowerBound(rows.time, selection.time[0]), lowerBound(rows.time, selection.time[1])];
  for (let i = from; i < to; i++) {
    if (threads && (rows.thread[i] < 0 || !threads[rows.thread[i]])) continue;
    if (labels && (rows.labels[i] < 0 || !labels[rows.labels[i]])) continue;
    self[rows.node[i]] += value(i);
  }
  return self;
}

// What a row counts for in a metric.
export function valueOf(profile: Profile, metric: number): (row: number) => number {
  const rows = profile.rows;
  if (metric === profile.meta.samples_metric) return (i) => rows.isSample[i];
  if (metric === profile.meta.wall_metric) return (i) => rows.wall[i];
  return (i) => (rows.metric[i] === metric ? rows.value[i] : 0);
}

function flags(size: number, set: Set<number>): Uint8Array {
  const out = new Uint8Array(size);
  for (const i of set) out[i] = 1;
  return out;
}

function labelFlags(profile: Profile, wanted: Label[]): Uint8Array | null {
  if (wanted.length === 0) return null;
  const sets = profile.labelSets(), out = new Uint8Array(sets.length);
  sets.forEach((set, i) => {
    if (wanted.every((w) => set.some((l) => l.key === w.key && l.text === w.text))) out[i] = 1;
  });
  return out;
}

export function lowerBound(sorted: Float64Array, value: number): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
