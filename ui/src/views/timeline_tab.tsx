import { computed } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawHeat, HEAT_ROWS, heatOf } from "../draw/heat";
import { cpuUse, drawOverview, drawTimeline, LABEL, LANE, placeLanes, SPAN_ROW, STACK_ROW, stateColor, stateName, type TimelineView } from "../draw/timeline";
import { lanesOf } from "../model/timeline";
import { formatNs } from "../model/units";
import { valueOf } from "../ops/weigh";
import { S } from "../strings";
import * as state from "../state";
import { prepare, useSize } from "./canvas";

const lanes = computed(() => (state.profile.value ? lanesOf(state.profile.value) : null));
const OVERVIEW = 56;

// Drag on a canvas: times from and to, while it moves and at its end.
function useBrush(timeAt: (e: PointerEvent) => number, onBrush: (from: number, to: number) => void, onClick: (e: PointerEvent) => void) {
  const from = useRef<{ time: number; x: number } | null>(null);
  return {
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0) return;
      from.current = { time: timeAt(e), x: e.clientX };
      (e.currentTarget as Element).setPointerCapture(e.pointerId);
    },
    onPointerMove: (e: PointerEvent) => {
      const start = from.current;
      if (start && Math.abs(e.clientX - start.x) > 4) onBrush(Math.min(start.time, timeAt(e)), Math.max(start.time, timeAt(e)));
    },
    onPointerUp: (e: PointerEvent) => {
      const start = from.current;
      from.current = null;
      if (start && Math.abs(e.clientX - start.x) <= 4) onClick(e);
    },
  };
}

function Legend() {
  const p = state.profile.value!, seen = useMemo(() => [...new Set(p.states.state)].sort((a, b) => a - b), [p]);
  return <span class="legend muted">{seen.map((s) => <span><i style={`background:${stateColor(p, s, state.isDark.value)}`} />{stateName(p, s)}</span>)}</span>;
}

export function TimelineTab() {
  const p = state.profile.value!, [mode, setMode] = useState<"lanes" | "heat">("lanes");
  if (!p.meta.has_rows) return <section class="view"><div class="empty"><p>{S.noRows}</p></div></section>;
  if (!p.hasTimeline) return <section class="view"><div class="empty"><p>{S.noTimeline}</p></div></section>;
  return (
    <section class="view" role="tabpanel" aria-label="Timeline">
      <div class="tools">
        <div class="segmented" role="group" aria-label="Kind of timeline">
          <button aria-pressed={mode === "lanes"} onClick={() => setMode("lanes")}>Threads</button>
          <button aria-pressed={mode === "heat"} onClick={() => setMode("heat")}>Heat map</button>
        </div>
        <span class="muted">Drag to choose a time: every view then shows only that.</span>
        {state.timeRange.value && <button onClick={() => { state.timeRange.value = null; }}>Whole time</button>}
        <span class="grow" />
        <Legend />
      </div>
      {mode === "lanes" ? <ThreadLanes /> : <HeatMap />}
    </section>
  );
}

function ThreadLanes() {
  const p = state.profile.value!, l = lanes.value!;
  const [range, setRange] = useState<[number, number]>([l.start, l.end]), [scroll, setScroll] = useState(0), [open, setOpen] = useState<Set<number>>(new Set());
  const [hover, setHover] = useState<{ thread: number; text: string }>({ thread: -1, text: "" });
  const [box, width, height] = useSize(), canvas = useRef<HTMLCanvasElement>(null), overview = useRef<HTMLCanvasElement>(null);
  useEffect(() => setRange([l.start, l.end]), [l]);
  const view: TimelineView = { profile: p, lanes: l, from: range[0], to: range[1], scroll, open, hovered: hover.thread, brush: state.timeRange.value, dark: state.isDark.value, threads: state.threads.value };
  const { places, height: tall } = useMemo(() => placeLanes(view), [p, l, open]);
  const use = useMemo(() => cpuUse({ profile: p, lanes: l }, Math.max(1, width - LABEL)), [p, l, width]);
  const bodyHeight = Math.max(1, height - OVERVIEW);
  useLayoutEffect(() => {
    if (width <= LABEL) return;
    const before = performance.now();
    drawTimeline(prepare(canvas.current!, width, bodyHeight), width, bodyHeight, view, places);
    drawOverview(prepare(overview.current!, width, OVERVIEW), width, OVERVIEW, use, view);
    (window as unknown as { cprofTimeline: unknown }).cprofTimeline = { ms: performance.now() - before, lanes: places.length };
  });
  const x = (e: MouseEvent) => e.clientX - canvas.current!.getBoundingClientRect().left - LABEL;
  const timeIn = (from: number, to: number) => (e: PointerEvent) => from + (Math.max(0, Math.min(width - LABEL, x(e))) / (width - LABEL)) * (to - from);
  const laneAt = (e: MouseEvent) => {
    const y = e.clientY - canvas.current!.getBoundingClientRect().top + scroll;
    return places.find((place) => y >= place.y && y < place.y + place.height);
  };
  const choose = (from: number, to: number) => { state.timeRange.value = [from, to]; };
  const toggle = (e: PointerEvent) => {
    const place = laneAt(e);
    if (!place || !l.rowsOf(place.thread).length) { state.timeRange.value = null; return; }
    const next = new Set(open);
    if (next.has(place.thread)) next.delete(place.thread); else next.add(place.thread);
    setOpen(next);
  };
  const brush = useBrush(timeIn(range[0], range[1]), choose, toggle), top = useBrush(timeIn(l.start, l.end), (from, to) => { choose(from, to); setRange([from, to]); }, () => { setRange([l.start, l.end]); state.timeRange.value = null; });
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    if (!e.ctrlKey && !e.shiftKey) { setScroll((s) => Math.max(0, Math.min(Math.max(0, tall - bodyHeight), s + e.deltaY))); return; }
    const at = timeIn(range[0], range[1])(e as unknown as PointerEvent), span = range[1] - range[0];
    if (e.shiftKey && !e.ctrlKey) { const move = Math.max(l.start - range[0], Math.min(l.end - range[1], (span * (e.deltaY || e.deltaX)) / 600)); setRange([range[0] + move, range[1] + move]); return; }
    const next = Math.max(1000, Math.min(l.end - l.start, span * Math.exp(e.deltaY / 240))), part = (at - range[0]) / span;
    const from = Math.max(l.start, Math.min(l.end - next, at - part * next));
    setRange([from, from + next]);
  };
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const describe = (e: PointerEvent) => {
    const place = laneAt(e);
    if (!place || x(e) < 0) { setHover({ thread: place?.thread ?? -1, text: "" }); return; }
    setHover({ thread: place.thread, text: textAt(view, place.thread, timeIn(range[0], range[1])(e), e.clientY - canvas.current!.getBoundingClientRect().top + scroll - place.y, place.spanRows) });
  };
  return (
    <>
      <div class="canvas-box" ref={box}>
        <canvas ref={overview} style={`height:${OVERVIEW}px;bottom:auto`} aria-label="CPU use over time; drag to choose" role="img" {...top} />
        <canvas ref={canvas} style={`top:${OVERVIEW}px;height:${bodyHeight}px`} tabIndex={0} role="application" aria-roledescription="timeline" aria-label={`Timeline of ${places.length} threads`}
          onPointerDown={brush.onPointerDown} onPointerUp={brush.onPointerUp} onPointerMove={(e) => { brush.onPointerMove(e); describe(e); }} onPointerLeave={() => setHover({ thread: -1, text: "" })} />
      </div>
      <div class="hint"><span>{hover.text || `${formatNs(range[0])} – ${formatNs(range[1])} · click a lane for its stacks, Ctrl and wheel to zoom, Shift and wheel to move`}</span></div>
    </>
  );
}

// What the pointer is over: the thread's state, or the frame of the stack that is drawn there.
function textAt(v: TimelineView, thread: number, time: number, y: number, spanRows: number): string {
  const p = v.profile, t = p.threads[thread], who = `${t.process} › ${t.name || t.tid} at ${formatNs(time)}`;
  if (y >= LANE && y < LANE + spanRows * SPAN_ROW) {
    const spans = p.spans(), depth = Math.floor((y - LANE) / SPAN_ROW);
    for (let i = 0; i < spans.size; i++)
      if (spans.thread[i] === thread && spans.depth[i] === depth && spans.start[i] <= time && time < spans.start[i] + spans.duration[i]) return `${who}: ${spans.name[i]}, ${formatNs(spans.duration[i])}`;
    return who;
  }
  if (y >= LANE + spanRows * SPAN_ROW) {
    const depth = Math.floor((y - LANE - spanRows * SPAN_ROW) / STACK_ROW), rows = v.lanes.rowsOf(thread);
    let low = 0, high = rows.length;
    while (low < high) { const middle = (low + high) >> 1; if (p.rows.time[rows[middle]] <= time) low = middle + 1; else high = middle; }
    if (low === 0) return who;
    const path: number[] = [];
    for (let n = p.rows.node[rows[low - 1]]; n > 0; n = p.tree.parent[n]) path.push(n);
    const node = path[path.length - 1 - depth];
    return node === undefined ? who : `${who}: ${p.funcs[p.tree.func[node]].name}`;
  }
  const s = p.states;
  for (const r of v.lanes.statesOf(thread))
    if (s.start[r] <= time && time < s.start[r] + s.duration[r]) return `${who}: ${stateName(p, s.state[r])} for ${formatNs(s.duration[r])}`;
  return who;
}

function HeatMap() {
  const p = state.profile.value!, metric = state.metric.value, heat = useMemo(() => heatOf(p, valueOf(p, metric)), [p, metric]);
  const [box, width, height] = useSize(), canvas = useRef<HTMLCanvasElement>(null), from = useRef<number | null>(null);
  useLayoutEffect(() => { if (width && height) drawHeat(prepare(canvas.current!, width, height), width, height, heat, state.timeRange.value, state.isDark.value); });
  const timeAt = (e: PointerEvent) => {
    const rect = canvas.current!.getBoundingClientRect(), column = Math.floor(((e.clientX - rect.left) / rect.width) * heat.columns);
    return column * 1e9 + Math.floor((1 - (e.clientY - rect.top) / rect.height) * HEAT_ROWS) * heat.step;
  };
  return (
    <>
      <div class="canvas-box" ref={box}>
        <canvas ref={canvas} role="img" aria-label="Heat map: seconds from left to right, parts of a second from bottom to top"
          onPointerDown={(e) => { from.current = timeAt(e); state.timeRange.value = null; }}
          onPointerMove={(e) => { if (from.current === null || !(e.buttons & 1)) return; const now = timeAt(e); state.timeRange.value = [Math.min(from.current, now), Math.max(from.current, now) + heat.step]; }}
          onPointerUp={() => { from.current = null; }} />
      </div>
      <div class="hint"><span>A column is a second, from bottom to top its 1,000 ms; darker cells weigh more. Drag over cells to choose.</span></div>
    </>
  );
}
