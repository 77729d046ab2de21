// Draws what threads did: one lane each, states as coloured pieces; where many fall on one pixel, their shares of it. A lane
// that is opened shows its stacks too. The cost follows what is in sight.
import type { Profile } from "../model/profile";
import type { Lanes } from "../model/timeline";
import { fillOf, STATE_COLORS } from "./colors";
import { drawable } from "./text";

export const LANE = 22, STACK_ROW = 15, MAX_STACK_ROWS = 48, LABEL = 190, SPAN_ROW = 15;

export interface TimelineView {
  profile: Profile;
  lanes: Lanes;
  from: number; to: number;       // ns
  scroll: number;                 // px
  open: Set<number>;              // threads whose stacks are shown
  hovered: number;                // thread; -1 none
  brush: [number, number] | null;
  dark: boolean;
  threads: Set<number> | null;
}

export interface LanePlace { thread: number; y: number; height: number; stackRows: number; spanRows: number }

const spanDepths = new WeakMap<Profile, Map<number, number>>();

function spanRows(p: Profile, thread: number): number {
  let depths = spanDepths.get(p);
  if (!depths) {
    depths = new Map();
    const spans = p.spans();
    for (let i = 0; i < spans.size; i++) if (spans.thread[i] >= 0) depths.set(spans.thread[i], Math.max(depths.get(spans.thread[i]) ?? 0, spans.depth[i] + 1));
    spanDepths.set(p, depths);
  }
  return Math.min(depths.get(thread) ?? 0, 12);
}

const stackDepths = new WeakMap<Profile, Int32Array>();

export function depthsOf(p: Profile): Int32Array {
  let depths = stackDepths.get(p);
  if (!depths) {
    depths = new Int32Array(p.tree.size);
    for (let i = 1; i < p.tree.size; i++) depths[i] = depths[p.tree.parent[i]] + 1;
    stackDepths.set(p, depths);
  }
  return depths;
}

export function placeLanes(v: TimelineView): { places: LanePlace[]; height: number } {
  const places: LanePlace[] = [], depths = depthsOf(v.profile);
  let y = 0;
  for (const thread of v.lanes.order) {
    const spans = spanRows(v.profile, thread);
    let stackRows = 0;
    if (v.open.has(thread)) {
      for (const row of v.lanes.rowsOf(thread)) stackRows = Math.max(stackRows, depths[v.profile.rows.node[row]]);
      stackRows = Math.min(stackRows, MAX_STACK_ROWS);
    }
    const height = LANE + spans * SPAN_ROW + stackRows * STACK_ROW;
    places.push({ thread, y, height, stackRows, spanRows: spans });
    y += height + 2;
  }
  return { places, height: y };
}

export const stateName = (p: Profile, state: number) => (state === 0 ? "running" : state === 1 ? "runnable" : state === 2 ? "unknown" : p.meta.wait_classes[state - 3] ?? "other");

export function stateColor(p: Profile, state: number, dark: boolean): string {
  const colors = dark ? STATE_COLORS.dark : STATE_COLORS.light;
  if (state === 0) return colors.running;
  if (state === 1) return colors.runnable;
  return state === 2 ? colors.unknown : colors.waits[p.meta.wait_classes[state - 3]] ?? colors.waits.other;
}

// The first of the sorted rows whose end lies after `time`.
function firstAfter(rows: Int32Array, endOf: (row: number) => number, time: number): number {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endOf(rows[middle]) <= time) low = middle + 1; else high = middle;
  }
  return low;
}

export function drawTimeline(ctx: CanvasRenderingContext2D, width: number, height: number, v: TimelineView, places: LanePlace[]) {
  ctx.clearRect(0, 0, width, height);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  const text = v.dark ? "#efebe4" : "#1f1c18", muted = v.dark ? "#aaa398" : "#645e55";
  for (const place of places) {
    const y = place.y - v.scroll;
    if (y + place.height < 0 || y > height) continue;
    const t = v.profile.threads[place.thread], isOut = v.threads !== null && !v.threads.has(place.thread);
    ctx.globalAlpha = isOut ? 0.35 : 1;
    if (place.thread === v.hovered) { ctx.fillStyle = v.dark ? "#2d2a26" : "#f1ede4"; ctx.fillRect(0, y, width, place.height); }
    ctx.fillStyle = muted;
    if (v.lanes.rowsOf(place.thread).length) ctx.fillText(v.open.has(place.thread) ? "▾" : "▸", 6, y + LANE / 2);
    ctx.fillStyle = text;
    ctx.save();
    ctx.beginPath();
    ctx.rect(18, y, LABEL - 24, LANE);
    ctx.clip();
    ctx.fillText(`${t.name || t.process || "thread"} ${t.tid}`, 20, y + LANE / 2);
    ctx.restore();
    ctx.save();
    ctx.beginPath();
    ctx.rect(LABEL, y, width - LABEL, place.height);
    ctx.clip();
    drawStates(ctx, v, place.thread, y + 3, LANE - 6, width);
    if (place.spanRows) drawSpans(ctx, v, place.thread, y + LANE, width, place.spanRows);
    if (place.stackRows) drawStacks(ctx, v, place, y + LANE + place.spanRows * SPAN_ROW, width);
    ctx.restore();
  }
  ctx.globalAlpha = 1;
}

function drawStates(ctx: CanvasRenderingContext2D, v: TimelineView, thread: number, y: number, h: number, width: number) {
  const rows = v.lanes.statesOf(thread), s = v.profile.states, scale = (width - LABEL) / (v.to - v.from);
  if (rows.length === 0) { drawTicks(ctx, v, thread, y, h, width); return; }
  const kinds = 3 + v.profile.meta.wait_classes.length, pixels = Math.ceil(width - LABEL), shares = new Float32Array(pixels * kinds);
  const touched = new Uint8Array(pixels);
  for (let k = firstAfter(rows, (r) => s.start[r] + s.duration[r], v.from); k < rows.length; k++) {
    const r = rows[k], x = (s.start[r] - v.from) * scale, w = s.duration[r] * scale;
    if (s.start[r] > v.to) break;
    if (w >= 1) {
      ctx.fillStyle = stateColor(v.profile, s.state[r], v.dark);
      const left = Math.max(0, x);
      ctx.fillRect(LABEL + left, y, Math.min(x + w, pixels) - left - (w > 4 ? 0.5 : 0), h);
    } else if (x >= 0 && x < pixels) {
      const pixel = Math.floor(x);
      touched[pixel] = 1;
      shares[pixel * kinds + s.state[r]] += w;
    }
  }
  for (let pixel = 0; pixel < pixels; pixel++) {
    if (!touched[pixel]) continue;
    let sum = 0, at = y + h;
    for (let k = 0; k < kinds; k++) sum += shares[pixel * kinds + k];
    for (let k = 0; k < kinds; k++) {
      const part = (shares[pixel * kinds + k] / Math.max(sum, 1)) * h;
      if (part <= 0) continue;
      ctx.fillStyle = stateColor(v.profile, k, v.dark);
      ctx.fillRect(LABEL + pixel, (at -= part), 1, part);
    }
  }
}

// Without switch records: where samples were taken, darker where they are denser.
function drawTicks(ctx: CanvasRenderingContext2D, v: TimelineView, thread: number, y: number, h: number, width: number) {
  const rows = v.lanes.rowsOf(thread), time = v.profile.rows.time, scale = (width - LABEL) / (v.to - v.from), least = Math.max(1, v.profile.meta.interval_ns * scale);
  ctx.fillStyle = stateColor(v.profile, 0, v.dark);
  ctx.globalAlpha *= 0.8;
  for (let k = firstAfter(rows, (r) => time[r], v.from); k < rows.length; k++) {
    if (time[rows[k]] > v.to) break;
    ctx.fillRect(LABEL + (time[rows[k]] - v.from) * scale - least, y, least, h);
  }
}

function drawSpans(ctx: CanvasRenderingContext2D, v: TimelineView, thread: number, y: number, width: number, rowsShown: number) {
  const spans = v.profile.spans(), scale = (width - LABEL) / (v.to - v.from);
  for (let i = 0; i < spans.size; i++) {
    if (spans.thread[i] !== thread || spans.depth[i] >= rowsShown) continue;
    const x = (spans.start[i] - v.from) * scale, w = spans.duration[i] * scale;
    if (x + w < 0 || x > width || w < 0.3) continue;
    drawPiece(ctx, v, spans.name[i], LABEL + x, LABEL + x + w, y + spans.depth[i] * SPAN_ROW, v.dark ? "#4d6b58" : "#b9dcc5");
  }
}

function drawPiece(ctx: CanvasRenderingContext2D, v: TimelineView, name: string, left: number, right: number, y: number, fill: string) {
  ctx.fillStyle = fill;
  const from = Math.max(left, LABEL - 2), w = right - from;
  ctx.fillRect(from, y, Math.max(0.5, w > 3 ? w - 0.5 : w), STACK_ROW - 1);
  if (w < 28) return;
  ctx.fillStyle = v.dark ? "#f4f1ec" : "#1b1815";
  const chars = Math.floor((Math.min(right, from + 2000) - from - 6) / 6.2), clean = drawable(name.slice(0, chars));
  if (chars > 2) ctx.fillText(clean.length < name.length ? `${clean.slice(0, -1)}…` : clean, from + 3, y + STACK_ROW / 2);
}

// Stackdiff: a frame goes on while the next sample has it at the same place; samples closer than a pixel are skipped.
function drawStacks(ctx: CanvasRenderingContext2D, v: TimelineView, place: LanePlace, y: number, width: number) {
  const p = v.profile, rows = v.lanes.rowsOf(place.thread), time = p.rows.time, depths = depthsOf(p), scale = (width - LABEL) / (v.to - v.from);
  const open: { func: number; x: number }[] = [], x = (t: number) => LABEL + (t - v.from) * scale;
  const close = (depth: number, at: number) => {
    for (let d = open.length - 1; d >= depth; d--) {
      const o = open[d], f = p.funcs[o.func];
      if (d < place.stackRows && at > LABEL) drawPiece(ctx, v, f.name, o.x, at, y + d * STACK_ROW, fillOf(f, "kind", v.dark, 0).fill);
    }
    open.length = depth;
  };
  let last = -1;
  const path: number[] = [];
  for (let k = Math.max(0, firstAfter(rows, (r) => time[r], v.from) - 1); k < rows.length; k++) {
    const row = rows[k], at = x(time[row]);
    if (last >= 0 && at - last < 0.6 && k + 1 < rows.length) continue;
    last = at;
    path.length = 0;
    for (let n = p.rows.node[row]; n > 0; n = p.tree.parent[n]) path.push(p.tree.func[n]);
    const depth = depths[p.rows.node[row]];
    let common = 0;
    while (common < open.length && common < depth && open[common].func === path[depth - 1 - common]) common++;
    close(common, at);
    for (let d = common; d < depth; d++) open.push({ func: path[depth - 1 - d], x: at });
    if (time[row] > v.to) break;
  }
  close(0, Math.min(last + Math.max(p.meta.interval_ns * scale, 1), LABEL + (v.lanes.end - v.from) * scale));
}

// CPUs in use over time, and the part that is chosen.
export function drawOverview(ctx: CanvasRenderingContext2D, width: number, height: number, use: Float32Array, v: TimelineView) {
  ctx.clearRect(0, 0, width, height);
  const most = Math.max(...use, 1e-9);
  ctx.fillStyle = stateColor(v.profile, 0, v.dark);
  for (let i = 0; i < use.length; i++) {
    const h = (use[i] / most) * (height - 4);
    ctx.fillRect(LABEL + i, height - h, 1, h);
  }
  const all = v.lanes.end - v.lanes.start, x = (t: number) => LABEL + ((t - v.lanes.start) / all) * (width - LABEL);
  if (v.brush) {
    ctx.fillStyle = v.dark ? "rgba(124,183,255,.25)" : "rgba(11,98,196,.16)";
    ctx.fillRect(x(v.brush[0]), 0, Math.max(1, x(v.brush[1]) - x(v.brush[0])), height);
  }
  ctx.strokeStyle = v.dark ? "#efebe4" : "#1f1c18";
  ctx.lineWidth = 1;
  if (v.from > v.lanes.start || v.to < v.lanes.end) ctx.strokeRect(x(v.from) + 0.5, 0.5, Math.max(2, x(v.to) - x(v.from)) - 1, height - 1);
}

export function cpuUse(v: { profile: Profile; lanes: Lanes }, pixels: number): Float32Array {
  const use = new Float32Array(pixels), s = v.profile.states, scale = pixels / (v.lanes.end - v.lanes.start);
  const add = (from: number, to: number) => {
    const a = Math.max(0, (from - v.lanes.start) * scale), b = Math.min(pixels, (to - v.lanes.start) * scale);
    for (let i = Math.floor(a); i < b; i++) use[i] += Math.min(i + 1, b) - Math.max(i, a);
  };
  if (s.size && v.profile.meta.has_switches) {
    for (let i = 0; i < s.size; i++) if (s.state[i] === 0) add(s.start[i], s.start[i] + s.duration[i]);
  } else {
    const rows = v.profile.rows, step = Math.max(v.profile.meta.interval_ns, 1);
    for (let i = 0; i < rows.size; i++) if (rows.isSample[i] && rows.time[i]) add(rows.time[i] - step, rows.time[i]);
  }
  return use;
}
