// What the timeline needs to find quickly: for each lane its states, samples, spans, marks and counter values in order of
// time. A lane is a thread, or a track that a program made for itself. Made once a profile.
import type { Profile } from "./profile";

export interface Lanes {
  order: number[];            // lanes that have anything: threads, the busiest first, then tracks
  threads: number;            // lanes below this are threads, the others tracks
  tells: boolean;             // whether anything tells running from waiting
  busy: Float64Array;         // by thread: ns on a CPU, or samples where nothing tells
  statesOf: (thread: number) => Int32Array;  // row numbers of profile.states, by start
  rowsOf: (thread: number) => Int32Array;    // row numbers of profile.rows that carry a stack, by time
  spansOf: (lane: number) => Int32Array[];   // row numbers of profile.spans, by depth, then start
  marksOf: (lane: number) => Int32Array;
  countersOf: (lane: number) => Int32Array;
  start: number;
  end: number;
}

export const UNKNOWN = 2;  // of the numbers of states

type Groups = (key: number) => Int32Array;

function grouped(size: number, count: number, keyOf: (i: number) => number): Groups {
  const first = new Int32Array(count + 1);
  for (let i = 0; i < size; i++) { const key = keyOf(i); if (key >= 0) first[key + 1]++; }
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const rows = new Int32Array(first[count]), next = first.slice();
  for (let i = 0; i < size; i++) { const key = keyOf(i); if (key >= 0) rows[next[key]++] = i; }
  return (key) => (key < count ? rows.subarray(first[key], first[key + 1]) : rows.subarray(0, 0));
}

// Spans of one depth never overlap, so that the first in sight can be looked for.
function byDepth(p: Profile, spans: Groups): (lane: number) => Int32Array[] {
  const known = new Map<number, Int32Array[]>(), s = p.spans();
  return (lane) => {
    let rows = known.get(lane);
    if (!rows) {
      const depths: number[][] = [];
      for (const row of spans(lane)) (depths[s.depth[row]] ??= []).push(row);
      rows = Array.from(depths, (list) => Int32Array.from((list ?? []).sort((a, b) => s.start[a] - s.start[b])));
      known.set(lane, rows);
    }
    return rows;
  };
}

export function lanesOf(p: Profile): Lanes {
  const rows = p.rows, states = p.states, n = p.threads.length, tracks = p.tracks(), all = n + tracks.length;
  const spans = p.spans(), marks = p.marks(), counters = p.counters(), busy = new Float64Array(n);
  for (let i = 0; i < states.size; i++) if (states.state[i] === 0) busy[states.thread[i]] += states.duration[i];
  if (!p.meta.has_switches)
    for (let i = 0; i < rows.size; i++) if (rows.thread[i] >= 0 && rows.time[i] > 0) busy[rows.thread[i]] += rows.isSample[i];
  const lane = (thread: number, track: number) => (track >= 0 ? n + track : thread);
  const statesOf = grouped(states.size, n, (i) => states.thread[i]), rowsOf = grouped(rows.size, n, (i) => (rows.time[i] > 0 ? rows.thread[i] : -1));
  const spansIn = grouped(spans.size, all, (i) => lane(spans.thread[i], spans.track[i])), marksOf = grouped(marks.size, all, (i) => lane(marks.thread[i], marks.track[i]));
  const countersOf = grouped(counters.size, all, (i) => n + counters.track[i]);
  const has = (l: number) => (l < n && (statesOf(l).length > 0 || rowsOf(l).length > 0)) || spansIn(l).length > 0 || marksOf(l).length > 0 || countersOf(l).length > 0;
  const used = [...Array(all).keys()].filter(has), firstTime = rows.time.find((t) => t > 0) ?? 0;
  const order = used.filter((l) => l < n).sort((a, b) => busy[b] - busy[a] || a - b).concat(used.filter((l) => l >= n));
  return {
    order, threads: n, tells: states.state.some((s) => s !== UNKNOWN), busy, statesOf, rowsOf, spansOf: byDepth(p, spansIn), marksOf, countersOf,
    start: states.size || spans.size || marks.size || counters.size ? 0 : Math.max(0, firstTime - p.meta.interval_ns), end: Math.max(1, p.duration),
  };
}

// The first of the rows, which are in order, whose end lies after `time`.
export function firstAfter(rows: Int32Array, endOf: (row: number) => number, time: number): number {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endOf(rows[middle]) <= time) low = middle + 1; else high = middle;
  }
  return low;
}

// Times for an axis: round steps of 1, 2 or 5, at most `most` of them.
export function ticks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? power * 10, out: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return out;
}
