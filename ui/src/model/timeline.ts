// What the timeline needs to find quickly: the states and samples of each thread in order of time. Made once a profile.
import type { Profile } from "./profile";

export interface Lanes {
  order: number[];            // threads that have anything, the busiest first
  busy: Float64Array;         // by thread: ns on a CPU, or samples where nothing tells
  statesOf: (thread: number) => Int32Array;  // row numbers of profile.states, by start
  rowsOf: (thread: number) => Int32Array;    // row numbers of profile.rows that carry a stack, by time
  start: number;
  end: number;
}

function grouped(keys: ArrayLike<number>, count: number, isWanted: (i: number) => boolean): (key: number) => Int32Array {
  const first = new Int32Array(count + 1);
  for (let i = 0; i < keys.length; i++) if (keys[i] >= 0 && isWanted(i)) first[keys[i] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const rows = new Int32Array(first[count]), next = first.slice();
  for (let i = 0; i < keys.length; i++) if (keys[i] >= 0 && isWanted(i)) rows[next[keys[i]]++] = i;
  return (key) => rows.subarray(first[key], first[key + 1]);
}

export function lanesOf(p: Profile): Lanes {
  const rows = p.rows, states = p.states, n = p.threads.length, busy = new Float64Array(n), has = new Uint8Array(n);
  for (let i = 0; i < states.size; i++) {
    has[states.thread[i]] = 1;
    if (states.state[i] === 0) busy[states.thread[i]] += states.duration[i];
  }
  for (let i = 0; i < rows.size; i++) {
    const t = rows.thread[i];
    if (t < 0 || rows.time[i] === 0) continue;
    has[t] = 1;
    if (!p.meta.has_switches) busy[t] += rows.isSample[i];
  }
  const spans = p.spans();
  for (let i = 0; i < spans.size; i++) if (spans.thread[i] >= 0) has[spans.thread[i]] = 1;
  const order = [...Array(n).keys()].filter((t) => has[t]).sort((a, b) => busy[b] - busy[a] || a - b);
  const firstTime = rows.time.find((t) => t > 0) ?? 0;
  return {
    order, busy, statesOf: grouped(states.thread, n, () => true), rowsOf: grouped(rows.thread, n, (i) => rows.time[i] > 0),
    start: states.size ? 0 : Math.max(0, firstTime - p.meta.interval_ns), end: Math.max(1, p.duration),
  };
}
