import { useEffect, useRef, useState } from "preact/hooks";
import { formatValue, percent } from "../model/units";
import { exactly } from "../ops/filters";
import { changeOf } from "../ops/compare";
import type { FuncRow } from "../ops/fold";
import * as state from "../state";
import { tableText } from "./export_menu";
import { copy } from "./frame_menu";
import { drawable } from "../draw/text";
import { metricLabel, metricTitle } from "./top_bar";

const ROW = 24;
interface Column { id: string; title: string; width: string; value: (r: FuncRow) => number | string; show: (r: FuncRow) => string; isText?: boolean; share?: (r: FuncRow) => number; tone?: (r: FuncRow) => string }

function columns(): Column[] {
  const d = state.down.value!, unit = state.metricUnit.value, total = d.tree.total[0], isDiff = state.baseProfile.value !== null;
  const list: Column[] = [
    { id: "name", title: "Function", width: "auto", isText: true, value: (r) => d.funcs[r.func].name, show: (r) => d.funcs[r.func].name },
    { id: "self", title: "Self", width: "8em", value: (r) => r.self, show: (r) => formatValue(r.self, unit) },
    { id: "selfp", title: "Self %", width: "7em", value: (r) => r.self, show: (r) => percent(r.self, total), share: (r) => r.self / total },
    { id: "total", title: "Total", width: "8em", value: (r) => r.total, show: (r) => formatValue(r.total, unit) },
    { id: "totalp", title: "Total %", width: "7em", value: (r) => r.total, show: (r) => percent(r.total, total), share: (r) => r.total / total },
  ];
  if (isDiff) list.push(
    { id: "base", title: "Base total", width: "8em", value: (r) => r.base, show: (r) => formatValue(r.base, unit) },
    { id: "delta", title: "Change", width: "8em", value: (r) => r.total - r.base, show: (r) => `${r.total > r.base ? "+" : ""}${formatValue(r.total - r.base, unit)}`, tone: (r) => ({ more: "more", new: "more", less: "less", gone: "less", noise: "muted" })[changeOf(r.total, r.base, state.noise.value)] },
    { id: "ratio", title: "Ratio", width: "6em", value: (r) => ratio(r.total, r.base), show: (r) => ratioText(r.total, r.base) });
  const second = state.secondTable.value, p = state.profile.value!, other = p.metrics.find((m) => m.name === state.compareMetric.value);
  if (second && other) {
    const self = (r: FuncRow) => second.get(r.func)?.self ?? 0, name = metricTitle(other.name);
    list.push({ id: "self2", title: `Self, ${name}`, width: "9em", value: self, show: (r) => formatValue(self(r), other.unit) },
      { id: "ratio2", title: "Ratio", width: "6em", value: (r) => ratio(r.self, self(r)), show: (r) => ratioText(r.self, self(r)) });
  }
  list.push({ id: "module", title: "Module", width: "14em", isText: true, value: (r) => d.funcs[r.func].module, show: (r) => d.funcs[r.func].module });
  return list;
}

const ratio = (a: number, b: number) => (b === 0 ? (a === 0 ? 0 : Infinity) : a / b);
const ratioText = (a: number, b: number) => (b === 0 ? (a === 0 ? "" : "new") : `× ${(a / b).toLocaleString("en-US", { maximumSignificantDigits: 3 })}`);

// Only the rows that can be seen are in the document; a table of a million functions scrolls like one of ten.
export function useWindow(count: number) {
  const box = useRef<HTMLDivElement>(null), [top, setTop] = useState(0), [height, setHeight] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry.contentRect.height));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / ROW) - 10), last = Math.min(count, Math.ceil((top + height) / ROW) + 10);
  return { box, first, last, before: first * ROW, after: (count - last) * ROW, onScroll: (e: Event) => setTop((e.currentTarget as HTMLElement).scrollTop) };
}

type Mode = "flat" | "tree";

export function TableTab() {
  const [mode, setMode] = useState<Mode>("flat");
  return (
    <section class="view" role="tabpanel" aria-label="Table">
      <div class="tools">
        <div class="segmented" role="group" aria-label="Kind of table">
          <button aria-pressed={mode === "flat"} onClick={() => setMode("flat")}>Functions</button>
          <button aria-pressed={mode === "tree"} onClick={() => setMode("tree")}>Call tree</button>
        </div>
        <SecondMetric />
        <span class="grow" />
        <button class="roomy" onClick={() => copy(tableText("\t"))}>Copy as TSV</button>
        <button class="roomy" onClick={() => copy(`|${tableText("|").trim().split("\n").join("|\n|")}|`.replace("\n", "\n|---|---|---|---|\n"))}>Copy as Markdown</button>
      </div>
      {mode === "flat" ? <Flat /> : <CallTree />}
    </section>
  );
}

// Two metrics side by side and their ratio: cycles per instruction, bytes per allocation.
function SecondMetric() {
  const p = state.profile.value!;
  if (p.metrics.length < 2 || state.baseProfile.value) return null;
  return (
    <select aria-label="Second metric" value={state.compareMetric.value ?? ""} onChange={(e) => { state.compareMetric.value = e.currentTarget.value || null; }}>
      <option value="">Ratio to…</option>
      {p.metrics.map((m, i) => (i === state.metric.value ? null : <option value={m.name}>to {metricLabel(p, i)}</option>))}
    </select>
  );
}

function Flat() {
  const [sort, setSort] = useState<{ id: string; up: boolean }>({ id: "self", up: false }), list = columns(), d = state.down.value!;
  const matches = state.matches.value, rows = state.table.value.filter((r) => !matches || matches[r.func]);
  const column = list.find((c) => c.id === sort.id) ?? list[1], sign = sort.up ? 1 : -1;
  rows.sort((a, b) => { const x = column.value(a), y = column.value(b); return (x < y ? -1 : x > y ? 1 : 0) * sign || b.total - a.total; });
  const w = useWindow(rows.length), selected = state.selectedPath.value.at(-1);
  return (
    <div class="grid" ref={w.box} onScroll={w.onScroll} tabIndex={0} aria-label="Functions">
      <table role="grid" aria-rowcount={rows.length + 1}>
        <thead><tr>{list.map((c) => (
          <th class={c.isText ? "left" : ""} style={`width:${c.width}`} aria-sort={sort.id === c.id ? (sort.up ? "ascending" : "descending") : "none"}>
            <button onClick={() => setSort({ id: c.id, up: sort.id === c.id ? !sort.up : c.isText === true })}>{c.title}{sort.id === c.id ? (sort.up ? " ▲" : " ▼") : ""}</button></th>
        ))}</tr></thead>
        <tbody>
          {w.before > 0 && <tr style={`height:${w.before}px`} aria-hidden="true" />}
          {rows.slice(w.first, w.last).map((r, i) => (
            <tr key={r.func} aria-rowindex={w.first + i + 2} aria-selected={d.funcs[r.func].name === selected}>
              {list.map((c) => c.id === "name" ? <td class="left"><button class="link" title={d.funcs[r.func].name.slice(0, 2000)} onClick={() => { state.selectedPath.value = [d.funcs[r.func].name]; }} onDblClick={() => state.addFilter("focus", exactly(d.funcs[r.func].name))}>{drawable(c.show(r).slice(0, 500))}</button></td>
                : c.share ? <td class="shared" style={`--share:${Math.round(100 * Math.max(0, Math.min(1, Math.abs(c.share(r)) || 0)))}%`}>{c.show(r)}</td>
                  : <td class={`${c.isText ? "left" : ""} ${c.tone?.(r) ?? ""}`}>{c.show(r)}</td>)}
            </tr>
          ))}
          {w.after > 0 && <tr style={`height:${w.after}px`} aria-hidden="true" />}
        </tbody>
      </table>
    </div>
  );
}

function CallTree() {
  const d = state.down.value!, { tree } = d, [open, setOpen] = useState<Set<number>>(() => hottestPath()), unit = state.metricUnit.value;
  useEffect(() => setOpen(hottestPath()), [tree]);
  const rows = visibleRows(tree, open), w = useWindow(rows.length);
  const toggle = (node: number) => { const next = new Set(open); if (next.has(node)) next.delete(node); else next.add(node); setOpen(next); };
  return (
    <div class="grid" ref={w.box} onScroll={w.onScroll} tabIndex={0} aria-label="Call tree">
      <table role="treegrid" aria-rowcount={rows.length + 1}>
        <thead><tr><th class="plain left">Function</th><th class="plain" style="width:8em">Self</th><th class="plain" style="width:8em">Total</th><th class="plain" style="width:7em">Total %</th><th class="plain left" style="width:14em">Module</th></tr></thead>
        <tbody>
          {w.before > 0 && <tr style={`height:${w.before}px`} aria-hidden="true" />}
          {rows.slice(w.first, w.last).map((node, i) => {
            const f = d.funcs[tree.func[node]], hasChildren = tree.end[node] > node + 1;
            return (
              <tr key={node} aria-rowindex={w.first + i + 2} aria-level={tree.depth[node]} aria-expanded={hasChildren ? open.has(node) : undefined}>
                <td class="left" style={`padding-left:${Math.min(tree.depth[node], 60) * 14}px`}>
                  <button class="link" aria-label={`${open.has(node) ? "Close" : "Open"} ${f.name.slice(0, 200)}`} onClick={() => toggle(node)}><span class="twist" aria-hidden="true">{hasChildren ? (open.has(node) ? "▾" : "▸") : ""}</span>{drawable(f.name.slice(0, 500))}</button></td>
                <td>{formatValue(tree.self[node], unit)}</td><td>{formatValue(tree.total[node], unit)}</td><td class="shared" style={`--share:${Math.round((100 * tree.width[node]) / (tree.width[0] || 1))}%`}>{percent(tree.total[node], tree.total[0])}</td><td class="left">{f.module}</td>
              </tr>
            );
          })}
          {w.after > 0 && <tr style={`height:${w.after}px`} aria-hidden="true" />}
        </tbody>
      </table>
    </div>
  );
}

function hottestPath(): Set<number> {
  const tree = state.down.value!.tree, path = new Set<number>();
  let node = 0;
  while (tree.end[node] > node + 1 && path.size < 40) {
    node = node + 1;
    if (tree.total[node] < 0.4 * tree.total[0]) break;
    path.add(node);
  }
  return path;
}

function visibleRows(tree: { size: number; end: Int32Array; parent: Int32Array }, open: Set<number>): number[] {
  const rows: number[] = [];
  for (let i = 1; i < tree.size; i = open.has(i) ? i + 1 : tree.end[i]) rows.push(i);
  return rows;
}
