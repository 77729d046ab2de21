// Draws what threads did: one lane each, states as coloured pieces; where many fall on one pixel, their shares of it. A lane
// that is opened shows its stacks too. The cost follows what is in sight.
import type { Profile } from "../model/profile";
import { firstAfter, ticks, UNKNOWN, type Lanes } from "../model/timeline";
import { formatNs, formatValue } from "../model/units";
import { fillOf, STATE_COLORS } from "./colors";
import { Fitter } from "./text";

export const LANE = 22, STACK_ROW = 15, MAX_STACK_ROWS = 48, SPAN_ROW = 15, AXIS = 20;
const names = new Fitter();
const MAX_SPAN_ROWS = 24, COUNTER = 30, FONT = "system-ui, sans-serif";

export interface TimelineView {
  profile: Profile;
  lanes: Lanes;
  from: number; to: number;       // ns
  scroll: number;                 // px
  label: number;                  // px at the left that hold names
  open: Set<number>;              // threads whose stacks are shown
  hovered: number;                // lane; -1 none
  brush: [number, number] | null;
  dark: boolean;
  threads: Set<number> | null;
}

export interface LanePlace { lane: number; y: number; height: number; stackRows: number; spanRows: number; bar: number }

const INK = { light: { text: "#1f1c18", muted: "#645e55", line: "#e9e5dc", hover: "#f1ede4", lane: "#f3f0e8", span: "#b9dcc5" },
  dark: { text: "#efebe4", muted: "#aaa398", line: "#2b2824", hover: "#2d2a26", lane: "#211f1c", span: "#3f5f4c" } };
const ink = (v: TimelineView) => (v.dark ? INK.dark : INK.light);

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
  for (const lane of v.lanes.order) {
    const spans = Math.min(v.lanes.spansOf(lane).length, MAX_SPAN_ROWS), isThread = lane < v.lanes.threads;
    let stackRows = 0;
    if (v.open.has(lane)) {
      for (const row of v.lanes.rowsOf(lane)) stackRows = Math.max(stackRows, depths[v.profile.rows.node[row]]);
      stackRows = Math.min(stackRows, MAX_STACK_ROWS);
    }
    const bar = isThread ? LANE : v.lanes.countersOf(lane).length ? COUNTER : spans ? 2 : LANE;
    const height = Math.max(LANE, bar + spans * SPAN_ROW + stackRows * STACK_ROW);
    places.push({ lane, y, height, stackRows, spanRows: spans, bar });
    y += height + 2;
  }
  return { places, height: y };
}

export const stateName = (p: Profile, state: number) => (state === 0 ? "running" : state === 1 ? "runnable" : state === UNKNOWN ? "unknown" : p.meta.wait_classes[state - 3] ?? "other");

export function stateColor(p: Profile, state: number, dark: boolean): string {
  const colors = dark ? STATE_COLORS.dark : STATE_COLORS.light;
  if (state === 0) return colors.running;
  if (state === 1) return colors.runnable;
  return state === UNKNOWN ? colors.unknown : colors.waits[p.meta.wait_classes[state - 3]] ?? colors.waits.other;
}

const scaleOf = (v: TimelineView, width: number) => (width - v.label) / (v.to - v.from);

function inside(ctx: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, draw: () => void) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  draw();
  ctx.restore();
}

export function drawTimeline(ctx: CanvasRenderingContext2D, width: number, height: number, v: TimelineView, places: LanePlace[]) {
  ctx.clearRect(0, 0, width, height);
  ctx.font = `12px ${FONT}`;
  ctx.textBaseline = "middle";
  const colors = Array.from({ length: 3 + v.profile.meta.wait_classes.length }, (_, k) => stateColor(v.profile, k, v.dark));
  for (const place of places) {
    const y = place.y - v.scroll + AXIS;
    if (y + place.height < AXIS || y > height) continue;
    ctx.globalAlpha = v.threads !== null && !v.threads.has(place.lane) ? 0.35 : 1;
    if (place.lane === v.hovered) { ctx.fillStyle = ink(v).hover; ctx.fillRect(0, y - 1, width, place.height + 2); }
    drawName(ctx, v, place.lane, y);
    inside(ctx, v.label, y, width - v.label, place.height, () => drawLane(ctx, v, place, y, width, colors));
  }
  ctx.globalAlpha = 1;
  drawAxis(ctx, width, height, v);
}

export function nameOfLane(v: { profile: Profile; lanes: Lanes }, lane: number): string {
  if (lane >= v.lanes.threads) return v.profile.tracks()[lane - v.lanes.threads].name || "track";
  const t = v.profile.threads[lane];
  return t.name || t.process || "thread";
}

function drawName(ctx: CanvasRenderingContext2D, v: TimelineView, lane: number, y: number) {
  const isThread = lane < v.lanes.threads, middle = y + LANE / 2;
  const busy = isThread && v.label > 150 ? (v.profile.meta.has_switches ? formatNs(v.lanes.busy[lane]) : v.lanes.busy[lane].toLocaleString("en-US")) : "";
  ctx.fillStyle = ink(v).muted;
  if (isThread && v.lanes.rowsOf(lane).length) ctx.fillText(v.open.has(lane) ? "▾" : "▸", 6, middle);
  const room = v.label - 28 - (busy ? ctx.measureText(busy).width + 10 : 0);
  if (busy) { ctx.textAlign = "right"; ctx.fillText(busy, v.label - 10, middle); ctx.textAlign = "left"; }
  const tid = isThread && v.label > 150 ? ` ${v.profile.threads[lane].tid}` : "", tidWidth = ctx.measureText(tid).width, name = names.fit(ctx, nameOfLane(v, lane), room - tidWidth);
  ctx.fillStyle = ink(v).text;
  ctx.fillText(name, 20, middle);
  ctx.fillStyle = ink(v).muted;
  ctx.fillText(tid, 22 + ctx.measureText(name).width, middle);
}

function drawLane(ctx: CanvasRenderingContext2D, v: TimelineView, place: LanePlace, y: number, width: number, colors: string[]) {
  const isThread = place.lane < v.lanes.threads;
  if (isThread) {
    const t = v.profile.threads[place.lane], scale = scaleOf(v, width), left = v.label + ((t.start || 0) - v.from) * scale;
    const right = t.end ? v.label + (t.end - v.from) * scale : width;
    ctx.fillStyle = ink(v).lane;
    ctx.fillRect(Math.max(v.label, left), y + 3, Math.max(0, Math.min(width, right) - Math.max(v.label, left)), LANE - 6);
    drawStates(ctx, v, place.lane, y + 3, LANE - 6, width, colors);
  } else if (place.bar === COUNTER) {
    drawCounter(ctx, v, place.lane, y + 2, COUNTER - 4, width);
  }
  if (place.spanRows) drawSpans(ctx, v, place, y + place.bar, width);
  drawMarks(ctx, v, place.lane, y, width);
  if (place.stackRows) drawStacks(ctx, v, place, y + place.bar + place.spanRows * SPAN_ROW, width);
}

function drawAxis(ctx: CanvasRenderingContext2D, width: number, height: number, v: TimelineView) {
  const scale = scaleOf(v, width), colors = ink(v);
  ctx.clearRect(0, 0, width, AXIS);
  ctx.font = `11px ${FONT}`;
  for (const t of ticks(v.from, v.to, Math.max(2, (width - v.label) / 110))) {
    const x = Math.round(v.label + (t - v.from) * scale) + 0.5;
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x - 0.5, AXIS - 4, 1, 4);
    ctx.globalAlpha = v.dark ? 0.16 : 0.1;
    ctx.fillRect(x - 0.5, AXIS, 1, height - AXIS);
    ctx.globalAlpha = 1;
    const text = t === 0 ? "0" : formatNs(t), w = ctx.measureText(text).width;
    if (x + w + 4 < width) ctx.fillText(text, x + 3, AXIS / 2);
  }
  if (v.brush) {
    const from = Math.max(v.label, v.label + (v.brush[0] - v.from) * scale), to = Math.min(width, v.label + (v.brush[1] - v.from) * scale);
    ctx.fillStyle = v.dark ? "rgba(20,18,16,.55)" : "rgba(251,250,247,.62)";
    if (from > v.label) ctx.fillRect(v.label, AXIS, from - v.label, height);
    if (to < width) ctx.fillRect(Math.max(to, v.label), AXIS, width - Math.max(to, v.label), height);
  }
}

function drawStates(ctx: CanvasRenderingContext2D, v: TimelineView, thread: number, y: number, h: number, width: number, colors: string[]) {
  const rows = v.lanes.statesOf(thread), s = v.profile.states, scale = scaleOf(v, width);
  if (!v.lanes.tells) { drawTicks(ctx, v, thread, y, h, width, colors[0]); return; }
  const kinds = colors.length, pixels = Math.ceil(width - v.label), shares = new Float32Array(pixels * kinds), touched = new Uint8Array(pixels);
  for (let k = firstAfter(rows, (r) => s.start[r] + s.duration[r], v.from); k < rows.length; k++) {
    const r = rows[k], x = (s.start[r] - v.from) * scale, w = s.duration[r] * scale;
    if (s.start[r] > v.to) break;
    if (w >= 1) {
      ctx.fillStyle = colors[s.state[r]] ?? colors[2];
      const left = Math.max(0, x);
      ctx.fillRect(v.label + left, y, Math.min(x + w, pixels) - left - (w > 4 ? 0.5 : 0), h);
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
      ctx.fillStyle = colors[k];
      ctx.fillRect(v.label + pixel, (at -= part), 1, part);
    }
  }
}

// Without switch records: where samples were taken.
function drawTicks(ctx: CanvasRenderingContext2D, v: TimelineView, thread: number, y: number, h: number, width: number, color: string) {
  const rows = v.lanes.rowsOf(thread), time = v.profile.rows.time, scale = scaleOf(v, width), least = Math.max(1, v.profile.meta.interval_ns * scale);
  ctx.fillStyle = color;
  let covered = -Infinity;
  for (let k = firstAfter(rows, (r) => time[r], v.from); k < rows.length; k++) {
    if (time[rows[k]] > v.to + v.profile.meta.interval_ns) break;
    const right = v.label + (time[rows[k]] - v.from) * scale, left = Math.max(covered, right - least);
    if (right - left < 0.2) continue;
    ctx.fillRect(left, y, right - left, h);
    covered = right;
  }
}

// What is narrower than a pixel is drawn as one, once.
function drawSpans(ctx: CanvasRenderingContext2D, v: TimelineView, place: LanePlace, y: number, width: number) {
  const spans = v.profile.spans(), scale = scaleOf(v, width), fill = ink(v).span;
  v.lanes.spansOf(place.lane).slice(0, place.spanRows).forEach((rows, depth) => {
    let covered = -1;
    for (let k = firstAfter(rows, (r) => spans.start[r] + spans.duration[r], v.from); k < rows.length; k++) {
      const r = rows[k], x = (spans.start[r] - v.from) * scale, w = spans.duration[r] * scale;
      if (spans.start[r] > v.to) break;
      if (w < 1.5) {
        const pixel = Math.floor(x);
        if (pixel <= covered) continue;
        covered = pixel;
        ctx.fillStyle = fill;
        ctx.fillRect(v.label + pixel, y + depth * SPAN_ROW, 1, SPAN_ROW - 1);
      } else {
        covered = Math.floor(x + w);
        drawPiece(ctx, v, spans.name[r], v.label + x, v.label + x + w, y + depth * SPAN_ROW, fill);
      }
    }
  });
}

function drawMarks(ctx: CanvasRenderingContext2D, v: TimelineView, lane: number, y: number, width: number) {
  const rows = v.lanes.marksOf(lane), marks = v.profile.marks(), scale = scaleOf(v, width);
  if (rows.length === 0) return;
  ctx.fillStyle = v.dark ? "#ff9cf0" : "#8a0f77";
  let last = -9;
  for (const r of rows) {
    const x = Math.round(v.label + (marks.time[r] - v.from) * scale);
    if (x < v.label || x > width || x - last < 3) continue;
    ctx.beginPath();
    ctx.moveTo(x, y + 8);
    ctx.lineTo(x - 3.5, y + 1);
    ctx.lineTo(x + 3.5, y + 1);
    ctx.fill();
    last = x;
  }
}

// Steps from one value to the next; of many on one pixel the largest.
function drawCounter(ctx: CanvasRenderingContext2D, v: TimelineView, lane: number, y: number, h: number, width: number) {
  const rows = v.lanes.countersOf(lane), c = v.profile.counters(), scale = scaleOf(v, width);
  let most = 0;
  for (const r of rows) most = Math.max(most, Math.abs(c.value[r]));
  if (most === 0) most = 1;
  ctx.fillStyle = v.dark ? "#357f9e" : "#8cc4dc";
  const first = Math.max(0, firstAfter(rows, (r) => c.time[r], v.from) - 1);
  for (let k = first; k < rows.length && c.time[rows[k]] <= v.to; k++) {
    const x = v.label + Math.max(0, (c.time[rows[k]] - v.from) * scale), next = k + 1 < rows.length ? v.label + (c.time[rows[k + 1]] - v.from) * scale : width;
    const tall = (Math.abs(c.value[rows[k]]) / most) * h;
    ctx.fillRect(x, y + h - tall, Math.max(0.5, next - x), tall);
  }
  ctx.fillStyle = ink(v).muted;
  ctx.fillText(`to ${formatValue(most, v.profile.tracks()[lane - v.lanes.threads].unit || "count")}`, v.label + 4, y + 7);
}

function drawPiece(ctx: CanvasRenderingContext2D, v: TimelineView, name: string, left: number, right: number, y: number, fill: string) {
  ctx.fillStyle = fill;
  const from = Math.max(left, v.label - 2), w = right - from;
  ctx.fillRect(from, y, Math.max(0.5, w > 3 ? w - 0.5 : w), STACK_ROW - 1);
  if (w < 20) return;
  const text = names.fit(ctx, name, Math.min(w, 2000) - 6);
  if (text === "") return;
  ctx.fillStyle = v.dark ? "#f4f1ec" : "#1b1815";
  ctx.fillText(text, from + 3, y + STACK_ROW / 2);
}

// Stackdiff: a frame goes on while the next sample has it at the same place; samples closer than a pixel are skipped.
function drawStacks(ctx: CanvasRenderingContext2D, v: TimelineView, place: LanePlace, y: number, width: number) {
  const p = v.profile, rows = v.lanes.rowsOf(place.lane), time = p.rows.time, depths = depthsOf(p), scale = scaleOf(v, width);
  const open: { func: number; x: number }[] = [], x = (t: number) => v.label + (t - v.from) * scale;
  const close = (depth: number, at: number) => {
    for (let d = open.length - 1; d >= depth; d--) {
      const o = open[d], f = p.funcs[o.func];
      if (d < place.stackRows && at > v.label) drawPiece(ctx, v, f.name, o.x, at, y + d * STACK_ROW, fillOf(f, "kind", v.dark, 0).fill);
    }
    open.length = Math.min(depth, open.length);
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
  close(0, Math.min(last + Math.max(p.meta.interval_ns * scale, 1), v.label + (v.lanes.end - v.from) * scale));
}

// CPUs in use over time, and the part that is chosen.
export function drawOverview(ctx: CanvasRenderingContext2D, width: number, height: number, use: Float32Array, v: TimelineView) {
  ctx.clearRect(0, 0, width, height);
  let most = 1e-9;
  for (const u of use) if (u > most) most = u;
  ctx.fillStyle = ink(v).lane;
  ctx.fillRect(v.label, 4, width - v.label, height - 4);
  ctx.fillStyle = stateColor(v.profile, 0, v.dark);
  for (let i = 0; i < use.length; i++) {
    const h = (use[i] / most) * (height - 6);
    ctx.fillRect(v.label + i, height - h, 1, h);
  }
  ctx.fillStyle = ink(v).muted;
  ctx.font = `12px ${FONT}`;
  ctx.textBaseline = "middle";
  if (v.label > 150) {
    ctx.fillText(v.profile.meta.has_switches ? "CPUs in use" : "Activity", 20, height / 2);
    ctx.textAlign = "right";
    if (v.profile.meta.has_switches) ctx.fillText(`to ${most.toFixed(1)}`, v.label - 10, height / 2);
    ctx.textAlign = "left";
  }
  const all = v.lanes.end - v.lanes.start, x = (t: number) => v.label + ((t - v.lanes.start) / all) * (width - v.label);
  if (v.brush) {
    ctx.fillStyle = v.dark ? "rgba(124,183,255,.25)" : "rgba(11,98,196,.16)";
    ctx.fillRect(x(v.brush[0]), 0, Math.max(1, x(v.brush[1]) - x(v.brush[0])), height);
  }
  ctx.strokeStyle = ink(v).text;
  ctx.lineWidth = 1;
  if (v.from > v.lanes.start || v.to < v.lanes.end) ctx.strokeRect(x(v.from) + 0.5, 0.5, Math.max(2, x(v.to) - x(v.from)) - 1, height - 1);
}

// By pixel: how many threads ran on average, or, where nothing tells, how many samples or spans there were.
export function cpuUse(v: { profile: Profile; lanes: Lanes }, pixels: number): Float32Array {
  const use = new Float32Array(pixels), p = v.profile, s = p.states, scale = pixels / (v.lanes.end - v.lanes.start);
  const add = (from: number, to: number) => {
    const a = Math.max(0, (from - v.lanes.start) * scale), b = Math.min(pixels, (to - v.lanes.start) * scale);
    for (let i = Math.floor(a); i < b; i++) use[i] += Math.min(i + 1, b) - Math.max(i, a);
  };
  if (s.size && p.meta.has_switches) {
    for (let i = 0; i < s.size; i++) if (s.state[i] === 0) add(s.start[i], s.start[i] + s.duration[i]);
    return use;
  }
  const rows = p.rows, step = Math.max(p.meta.interval_ns, 1), spans = p.spans();
  for (let i = 0; i < rows.size; i++) if (rows.isSample[i] && rows.time[i]) add(rows.time[i] - step, rows.time[i]);
  if (rows.size === 0) for (let i = 0; i < spans.size; i++) if (spans.depth[i] === 0) add(spans.start[i], spans.start[i] + spans.duration[i]);
  return use;
}
