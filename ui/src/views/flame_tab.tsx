import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { drawable } from "../draw/text";
import { drawFlame, hit, nameOf, ROW, type FlameView } from "../draw/flame";
import { diffFill, fillOf } from "../draw/colors";
import { percent } from "../model/units";
import { isCutMark } from "../ops/filters";
import type { Order, ViewTree } from "../ops/view_tree";
import { S } from "../strings";
import * as state from "../state";
import { prepare, useSize } from "./canvas";
import { plainView } from "./flame_view";
import { FrameMenu } from "./frame_menu";
import { Popover } from "./popover";
import { metricLabel } from "./top_bar";

interface Props { tree: ViewTree; upsideDown: boolean; label: string; zoomable: boolean }

export function FlameCanvas({ tree, upsideDown, label, zoomable }: Props) {
  const [box, width, height] = useSize(), canvas = useRef<HTMLCanvasElement>(null);
  const [scroll, setScroll] = useState(0), [zoomScale, setZoomScale] = useState({ scale: 1, pan: 0 }), [menu, setMenu] = useState<{ x: number; y: number; node: number } | null>(null);
  const funcs = state.down.value?.funcs ?? [], zoom = zoomable ? state.nodeOf(tree, funcs, state.zoomPath.value) : 0;
  const selected = zoomable ? state.nodeOf(tree, funcs, state.selectedPath.value) : 0;
  const rows = height / ROW, maxScroll = Math.max(0, tree.maxDepth + 1 - rows);
  const view: FlameView = {
    ...plainView(tree, zoom), pan: zoomScale.pan, scale: zoomScale.scale, scrollRow: zoomable ? Math.min(scroll, maxScroll) : Math.max(1, Math.min(scroll, maxScroll)), upsideDown, selected,
    hovered: state.hovered.value?.tree === tree ? state.hovered.value.node : -1,
  };
  const viewRef = useRef(view);
  viewRef.current = view;
  // A new zoom shows its frame near the top, with some of what called it.
  useEffect(() => {
    setZoomScale((z) => (z.scale === 1 && z.pan === 0 ? z : { scale: 1, pan: 0 }));
    setScroll(Math.max(0, tree.depth[zoom] - 3));
  }, [zoom, tree]);
  useLayoutEffect(() => {
    if (width === 0 || height === 0) return;
    const before = performance.now();
    const ctx = prepare(canvas.current!, width, height);
    const seen = window as unknown as { cprofDraw?: { count: number } };  // for the tests
    (seen.cprofDraw as unknown) = { boxes: drawFlame(ctx, width, height, view), nodes: tree.size, ms: performance.now() - before, count: (seen.cprofDraw?.count ?? 0) + 1 };
  });
  const at = (event: MouseEvent | PointerEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    return hit(viewRef.current, width, height, event.clientX - rect.left, event.clientY - rect.top);
  };
  const choose = (node: number) => {
    const path = state.pathOf(tree, funcs, node);
    state.selectedPath.value = path;
    if (zoomable) state.zoomPath.value = path;
    else if (node > 0) state.showSandwich(nameOf(view, node));
  };
  const scrollBy = (rowsDown: number) => setScroll((s) => clamp(Math.min(s, maxScroll) + (upsideDown ? -1 : 1) * rowsDown, 0, maxScroll));
  const panBy = (part: number) => setZoomScale((z) => ({ scale: z.scale, pan: clamp(z.pan + part / z.scale, 0, 1 - 1 / z.scale) }));
  // `x` px from the window's left stays where it is.
  const zoomAt = (x: number, factor: number) => {
    const part = (x - canvas.current!.getBoundingClientRect().left) / width;
    setZoomScale((z) => {
      const scale = clamp(z.scale * factor, 1, 1e6);
      return { scale, pan: clamp(z.pan + part / z.scale - part / scale, 0, 1 - 1 / scale) };
    });
  };
  const middle = () => { const rect = canvas.current!.getBoundingClientRect(); return rect.left + rect.width / 2; };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    if (event.ctrlKey) zoomAt(event.clientX, Math.exp(-event.deltaY / 200));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) panBy((event.deltaX || event.deltaY) / width);
    else scrollBy(event.deltaY / ROW);
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const act = ({ "+": () => zoomAt(middle(), 1.25), "=": () => zoomAt(middle(), 1.25), "-": () => zoomAt(middle(), 0.8), PageUp: () => scrollBy(2 - rows), PageDown: () => scrollBy(rows - 2),
      ...(event.shiftKey ? { ArrowLeft: () => panBy(-0.1), ArrowRight: () => panBy(0.1), ArrowUp: () => scrollBy(-1), ArrowDown: () => scrollBy(1) } : {}) } as Record<string, () => void>)[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  const pointer = usePointer(at, choose, (x, y, node) => setMenu({ x, y, node }), (dx, dy) => {
    scrollBy(-dy / ROW);
    panBy(-dx / width);
  }, (x, factor) => zoomAt(x, factor));
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  return (
    <div class="canvas-box" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="flame graph" aria-label={label} aria-describedby="live"
        data-flame={zoomable ? "main" : "part"} {...pointer} onKeyDown={key} onPointerLeave={() => { state.hovered.value = null; }}
        onPointerMove={(e) => { pointer.onPointerMove(e); const node = at(e); state.hovered.value = node === null ? null : { tree, node }; }}
        onContextMenu={(e) => { e.preventDefault(); const node = at(e); if (node) setMenu({ x: e.clientX, y: e.clientY, node }); }} />
      {menu && <FrameMenu name={nameOf(view, menu.node)} path={state.pathOf(tree, funcs, menu.node)} x={menu.x} y={menu.y} onClose={() => setMenu(null)} />}
    </div>
  );
}

const clamp = (value: number, least: number, most: number) => Math.max(least, Math.min(Math.max(least, most), value));

// Click chooses, drag pans, two fingers zoom, a long press is the menu of those who have no right button.
function usePointer(at: (e: PointerEvent) => number | null, choose: (node: number) => void, menu: (x: number, y: number, node: number) => void, pan: (dx: number, dy: number) => void, zoom: (x: number, factor: number) => void) {
  const down = useRef<{ x: number; y: number; moved: boolean; timer: number } | null>(null), fingers = useRef(new Map<number, number>());
  const spread = () => { const [a, b] = [...fingers.current.values()]; return Math.max(20, Math.abs(a - b)); };
  const lift = (e: PointerEvent) => { fingers.current.delete(e.pointerId); };
  return {
    onPointerCancel: (e: PointerEvent) => { lift(e); clearTimeout(down.current?.timer); down.current = null; },
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0) return;
      if (e.pointerType === "touch") fingers.current.set(e.pointerId, e.clientX);
      if (fingers.current.size === 2) { clearTimeout(down.current?.timer); down.current = null; return; }
      const node = at(e), timer = e.pointerType === "touch" && node ? window.setTimeout(() => { down.current = null; menu(e.clientX, e.clientY, node); }, 550) : 0;
      down.current = { x: e.clientX, y: e.clientY, moved: false, timer };
    },
    onPointerMove: (e: PointerEvent) => {
      const d = down.current;
      if (fingers.current.size === 2 && fingers.current.has(e.pointerId)) {
        const before = spread();
        fingers.current.set(e.pointerId, e.clientX);
        const [a, b] = [...fingers.current.values()];
        zoom((a + b) / 2, spread() / before);
        return;
      }
      if (!d || (!d.moved && Math.hypot(e.clientX - d.x, e.clientY - d.y) < 5)) return;
      if (!d.moved) (e.currentTarget as Element).setPointerCapture(e.pointerId);
      clearTimeout(d.timer);
      pan(e.clientX - d.x, e.clientY - d.y);
      Object.assign(d, { x: e.clientX, y: e.clientY, moved: true });
    },
    onPointerUp: (e: PointerEvent) => {
      lift(e);
      const d = down.current;
      down.current = null;
      if (!d) return;
      clearTimeout(d.timer);
      const node = d.moved ? null : at(e);
      if (node !== null) choose(node);
    },
  };
}

function Crumbs() {
  const path = state.zoomPath.value;
  if (path.length === 0 || state.direction.value === "sandwich") return null;
  const shown = path.length > 5 ? path.slice(-5) : path, skipped = path.length - shown.length;
  return (
    <nav class="crumbs" aria-label="Zoom">
      <button class="first" onClick={() => { state.zoomPath.value = []; }}>all</button>
      {skipped > 0 && <span class="muted">› … {skipped} …</span>}
      {shown.map((name, i) => <><span class="muted">›</span><button title={name.slice(0, 1000)} onClick={() => { state.zoomPath.value = path.slice(0, skipped + i + 1); }}>{drawable(name.length > 60 ? `${name.slice(0, 57)}…` : name)}</button></>)}
    </nav>
  );
}

const DIRECTIONS: [state.Direction, string, string][] = [["down", "Down", "from the roots: who is called"], ["up", "Up", "from the leaves: who spends, and below it who called (b)"], ["sandwich", "Sandwich", "callers and callees of one function (x)"]];
const ORDERS: [Order, string][] = [["heavy", "Heavy first"], ["name", "By name"], ["time", "As seen"]];

function Tools() {
  return (
    <div class="tools">
      <div class="segmented" role="group" aria-label="Direction">
        {DIRECTIONS.map(([d, title, help]) => <button aria-pressed={state.direction.value === d} title={help} onClick={() => { state.direction.value = d; state.zoomPath.value = []; }}>{title}</button>)}
      </div>
      {state.baseProfile.value && <div class="segmented" role="group" aria-label="Width">
        <button aria-pressed={!state.byBase.value} title="Boxes are as wide as this profile has them" onClick={() => { state.byBase.value = false; }}>This</button>
        <button aria-pressed={state.byBase.value} title="As wide as the base has them: shows what is gone" onClick={() => { state.byBase.value = true; }}>Base</button>
      </div>}
      <Display />
      <span class="grow" />
      <Legend />
      {!state.drawerOpen.value && <button onClick={() => { state.drawerOpen.value = true; }}>Details</button>}
    </div>
  );
}

function Display() {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button ref={anchor} aria-expanded={open} onClick={() => setOpen(!open)}>Display ▾</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Display"><DisplayOptions /></Popover>}
    </>
  );
}

function DisplayOptions() {
  return (
    <div class="options">
      <label>Order <select aria-label="Order" value={state.order.value} onChange={(e) => { state.order.value = e.currentTarget.value as Order; }}>
        {ORDERS.map(([o, title]) => <option value={o}>{title}</option>)}
      </select></label>
      <label>Colour by <select aria-label="Colour" value={state.scheme.value} onChange={(e) => { state.scheme.value = e.currentTarget.value as "kind"; }}>
        <option value="kind">kind of code</option><option value="module">module</option><option value="heat">own cost</option>
      </select></label>
      <label class="choice"><input type="checkbox" checked={state.flameUp.value} onChange={() => { state.flameUp.value = !state.flameUp.value; }} /> Root at the bottom</label>
      <label class="choice"><input type="checkbox" checked={state.collapseRecursion.value} onChange={() => { state.collapseRecursion.value = !state.collapseRecursion.value; }} /> Join recursion <span class="muted">r</span></label>
    </div>
  );
}

const KIND_NAMES = ["user", "kernel", "JIT", "interpreted", "unnamed"];

function Legend() {
  const isDark = state.isDark.value, item = (fill: string, text: string) => <span key={text}><i style={`background:${fill}`} />{text}</span>, tree = state.shown.value;
  if (state.baseProfile.value)
    return <span class="legend muted" aria-label="Colours">{item(diffFill(-0.8, false, isDark).fill, state.byBase.value ? "less; gone is hatched" : "less than base")}{item(diffFill(0.8, false, isDark).fill, state.byBase.value ? "more than base" : "more; new is hatched")}{item(diffFill(0, true, isDark).fill, "within noise")}</span>;
  if (tree && tree.width[0] !== Math.abs(tree.total[0]))
    return <span class="legend muted" aria-label="Colours">{item(diffFill(-0.8, false, isDark).fill, "negative: drawn by its size")}</span>;
  if (state.scheme.value !== "kind") return null;
  const p = state.profile.value!, dark = state.isDark.value, seen = new Map<string, string>();
  for (const f of p.funcs) {
    if (isCutMark(f)) continue;
    const name = KIND_NAMES[f.kind === 0 && !f.named && f.name.startsWith("[") ? 4 : f.kind] ?? "unnamed";
    if (!seen.has(name)) seen.set(name, fillOf(f, "kind", dark, 0).fill);
    if (seen.size === KIND_NAMES.length) break;
  }
  return <span class="legend muted wide" aria-label="Colours">{KIND_NAMES.filter((k) => seen.has(k)).map((k) => <span><i style={`background:${seen.get(k)}`} />{k}</span>)}</span>;
}

function NothingShown() {
  const p = state.profile.value!, other = p.metrics.findIndex((_, i) => i !== state.metric.value && p.self(i).some((v) => v !== 0));
  return (
    <div class="empty">
      <h2>Nothing to draw</h2>
      {state.isFiltered.value ? <><p>The filters hide everything.</p><button onClick={state.clearFilters}>Remove filters</button></>
        : other >= 0 ? <><p>All values of {metricLabel(p, state.metric.value)} are 0.</p><button onClick={() => { state.metricName.value = p.metrics[other].name; }}>Show {metricLabel(p, other)}</button></>
          : <p>The profile holds no samples. If this was a recording: did the program use the CPU at all, and may you sample it? <code>cprof doctor</code> tells.</p>}
    </div>
  );
}

export function FlameTab() {
  const tree = state.shown.value, both = state.sandwiched.value, [hinted, setHinted] = useState(isHintHidden());
  if (!tree || (tree.width[0] === 0 && !state.byBase.value)) return <section class="view"><Tools /><NothingShown /></section>;
  return (
    <section class="view" role="tabpanel" aria-label="Flame graph">
      <Tools />
      {!hinted && state.direction.value !== "sandwich" && <div class="hint">{state.direction.value === "up" ? S.hintUp : S.hint}<button class="plain" aria-label="Hide this hint" onClick={() => { hideHint(); setHinted(true); }}>×</button></div>}
      <Crumbs />
      {state.direction.value !== "sandwich" ? <FlameCanvas tree={tree} upsideDown={state.flameUp.value} zoomable label={`Flame graph of ${state.profile.value!.name}. The Table tab has the same numbers as a table.`} />
        : !both ? <div class="empty"><p>Choose a function: select a box and press x, or use its menu.</p></div>
          : <>
            <div class="hint"><span>Callers of <strong class="name">{drawable((state.sandwichName.value ?? "").slice(0, 200))}</strong>: {percent(both.callees.total[0], tree.total[0])} of all</span></div>
            <FlameCanvas tree={both.callers} upsideDown zoomable={false} label="Callers" />
            <div class="hint">Callees</div>
            <FlameCanvas tree={both.callees} upsideDown={false} zoomable={false} label="Callees" />
          </>}
    </section>
  );
}

function isHintHidden(): boolean { try { return localStorage.getItem("cprof-hint") === "off"; } catch { return false; } }
function hideHint() { try { localStorage.setItem("cprof-hint", "off"); } catch { /* shown again next time */ } }
