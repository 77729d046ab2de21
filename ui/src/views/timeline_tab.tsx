import { computed } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawHeat, HEAT_ROWS, heatOf } from "../draw/heat";
import { AXIS, cpuUse, drawOverview, drawTimeline, LANE, nameOfLane, placeLanes, SPAN_ROW, STACK_ROW, stateColor, stateName, type LanePlace, type TimelineView } from "../draw/timeline";
import { firstAfter, lanesOf } from "../model/timeline";
import { formatNs, formatValue } from "../model/units";
import { valueOf } from "../ops/weigh";
import { S } from "../strings";
import * as state from "../state";
import { prepare, useSize } from "./canvas";

const lanes = computed(() => (state.profile.value ? lanesOf(state.profile.value) : null));
const OVERVIEW = 48;
const labelWidth = (width: number) => (width < 640 ? 104 : 230);

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
  if (!lanes.value?.tells) return null;
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
  const [hover, setHover] = useState(-1);
  const [box, width, height] = useSize(), canvas = useRef<HTMLCanvasElement>(null), overview = useRef<HTMLCanvasElement>(null), label = labelWidth(width);
  useEffect(() => setRange([l.start, l.end]), [l]);
  const view: TimelineView = { profile: p, lanes: l, from: range[0], to: range[1], scroll, label, open, hovered: hover, brush: state.timeRange.value, dark: state.isDark.value, threads: state.threads.value };
  const { places, height: tall } = useMemo(() => placeLanes(view), [p, l, open]);
  const use = useMemo(() => cpuUse({ profile: p, lanes: l }, Math.max(1, width - label)), [p, l, width]);
  const bodyHeight = Math.max(1, height - OVERVIEW);
  useLayoutEffect(() => {
    if (width <= label) return;
    const before = performance.now();
    drawTimeline(prepare(canvas.current!, width, bodyHeight), width, bodyHeight, view, places);
    drawOverview(prepare(overview.current!, width, OVERVIEW), width, OVERVIEW, use, view);
    const seen = window as unknown as { cprofTimeline?: { count: number } };  // for the tests
    (seen.cprofTimeline as unknown) = { ms: performance.now() - before, lanes: places.length, count: (seen.cprofTimeline?.count ?? 0) + 1 };
  });
  const x = (e: MouseEvent) => e.clientX - canvas.current!.getBoundingClientRect().left - label;
  const timeIn = (from: number, to: number) => (e: PointerEvent) => from + (Math.max(0, Math.min(width - label, x(e))) / (width - label)) * (to - from);
  const laneAt = (e: MouseEvent) => {
    const y = e.clientY - canvas.current!.getBoundingClientRect().top + scroll - AXIS;
    return places.find((place) => y >= place.y && y < place.y + place.height);
  };
  const choose = (from: number, to: number) => { state.timeRange.value = [from, to]; };
  const toggle = (e: PointerEvent) => {
    const place = laneAt(e);
    if (!place || place.lane >= l.threads || !l.rowsOf(place.lane).length) { state.timeRange.value = null; return; }
    const next = new Set(open);
    if (next.has(place.lane)) next.delete(place.lane); else next.add(place.lane);
    setOpen(next);
  };
  const brush = useBrush(timeIn(range[0], range[1]), choose, toggle), top = useBrush(timeIn(l.start, l.end), (from, to) => { choose(from, to); setRange([from, to]); }, () => { setRange([l.start, l.end]); state.timeRange.value = null; });
  const move = (by: number) => setRange(([from, to]) => { const d = Math.max(l.start - from, Math.min(l.end - to, by * (to - from))); return [from + d, to + d]; });
  const zoom = (factor: number, part: number) => setRange(([from, to]) => {
    const next = Math.max(1000, Math.min(l.end - l.start, (to - from) * factor)), begin = Math.max(l.start, Math.min(l.end - next, from + part * (to - from - next)));
    return [begin, begin + next];
  });
  const scrollBy = (px: number) => setScroll((s) => Math.max(0, Math.min(Math.max(0, tall + AXIS - bodyHeight), s + px)));
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    if (e.ctrlKey) zoom(Math.exp(e.deltaY / 240), Math.max(0, Math.min(1, x(e) / (width - label))));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move((e.deltaX || e.deltaY) / 600);
    else scrollBy(e.deltaY);
  };
  const key = (e: KeyboardEvent) => {
    const act = ({ ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1), "+": () => zoom(0.8, 0.5), "-": () => zoom(1.25, 0.5), "=": () => zoom(0.8, 0.5),
      ArrowUp: () => scrollBy(-LANE), ArrowDown: () => scrollBy(LANE), PageUp: () => scrollBy(LANE - bodyHeight), PageDown: () => scrollBy(bodyHeight - LANE),
      "0": () => setRange([l.start, l.end]) } as Record<string, () => void>)[e.key];
    if (!act || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    act();
  };
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const describe = (e: PointerEvent) => {
    const place = laneAt(e);
    setHover(place?.lane ?? -1);
    if (!place || x(e) < 0) { state.timelineText.value = place ? whoIs(view, place.lane) : ""; return; }
    const time = timeIn(range[0], range[1])(e), y = e.clientY - canvas.current!.getBoundingClientRect().top + scroll - AXIS - place.y;
    state.timelineText.value = `${whoIs(view, place.lane)} at ${formatNs(time)}${textAt(view, place, time, y)}`;
  };
  const leave = () => { setHover(-1); state.timelineText.value = ""; };
  useEffect(() => () => { state.timelineText.value = ""; }, []);
  return (
    <div class="canvas-box" ref={box}>
      <canvas ref={overview} style={`height:${OVERVIEW}px;bottom:auto`} aria-label="CPU use over time; drag to choose" role="img" {...top} />
      <canvas ref={canvas} style={`top:${OVERVIEW}px;height:${bodyHeight}px`} tabIndex={0} role="application" aria-roledescription="timeline" aria-label={`Timeline of ${places.length} lanes. Arrow keys move and zoom.`} onKeyDown={key}
        onPointerDown={brush.onPointerDown} onPointerUp={brush.onPointerUp} onPointerMove={(e) => { brush.onPointerMove(e); describe(e); }} onPointerLeave={leave} />
    </div>
  );
}

function whoIs(v: TimelineView, lane: number): string {
  const t = lane < v.lanes.threads ? v.profile.threads[lane] : null;
  return t && t.process && t.process !== t.name ? `${t.process} › ${t.name || t.tid}` : nameOfLane(v, lane);
}

// What the pointer is over: the thread's state, the span, or the frame of the stack that is drawn there.
function textAt(v: TimelineView, place: LanePlace, time: number, y: number): string {
  const p = v.profile, row = Math.floor((y - place.bar) / SPAN_ROW);
  if (y >= place.bar && row < place.spanRows) {
    const spans = p.spans(), rows = v.lanes.spansOf(place.lane)[row], r = rows[firstAfter(rows, (i) => spans.start[i] + spans.duration[i], time)];
    return r !== undefined && spans.start[r] <= time ? `: ${spans.name[r].slice(0, 300)}, ${formatNs(spans.duration[r])}` : "";
  }
  if (place.lane >= v.lanes.threads) {
    const rows = v.lanes.countersOf(place.lane), c = p.counters(), at = firstAfter(rows, (r) => c.time[r], time);
    return at > 0 ? `: ${formatValue(c.value[rows[at - 1]], p.tracks()[place.lane - v.lanes.threads].unit)}` : "";
  }
  if (y >= place.bar) {
    const depth = Math.floor((y - place.bar - place.spanRows * SPAN_ROW) / STACK_ROW), rows = v.lanes.rowsOf(place.lane), at = firstAfter(rows, (r) => p.rows.time[r], time);
    if (at === 0) return "";
    const path: number[] = [];
    for (let n = p.rows.node[rows[at - 1]]; n > 0; n = p.tree.parent[n]) path.push(n);
    const node = path[path.length - 1 - depth];
    return node === undefined ? "" : `: ${p.funcs[p.tree.func[node]].name.slice(0, 300)}`;
  }
  if (!v.lanes.tells) return "";
  const s = p.states, rows = v.lanes.statesOf(place.lane), r = rows[firstAfter(rows, (i) => s.start[i] + s.duration[i], time)];
  return r !== undefined && s.start[r] <= time ? `: ${stateName(p, s.state[r])} for ${formatNs(s.duration[r])}` : "";
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
