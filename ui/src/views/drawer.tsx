import { formatValue, percent } from "../model/units";
import { exactly } from "../ops/filters";
import { useMemo } from "preact/hooks";
import { sandwich, type FuncRow } from "../ops/fold";
import type { ViewTree } from "../ops/view_tree";
import { S } from "../strings";
import * as state from "../state";
import { copy, showSource } from "./frame_menu";

function Share({ name, value, total, onClick }: { name: string; value: number; total: number; onClick: () => void }) {
  return (
    <button class="share" onClick={onClick} title={name}>
      <span class="row"><span>{name}</span><span>{percent(value, total)}</span></span>
      <span class="meter" style={`display:block;width:${Math.min(100, Math.max(0, (100 * Math.abs(value)) / Math.abs(total || 1)))}%`} />
    </button>
  );
}

function Top({ rows, total }: { rows: FuncRow[]; total: number }) {
  const funcs = state.down.value!.funcs, hottest = rows.filter((r) => r.self !== 0).sort((a, b) => b.self - a.self).slice(0, 5);
  const unit = state.metricUnit.value;
  return (
    <>
      <h2>{["nanoseconds", "count"].includes(unit) ? S.whereTime : S.whereValue}<button class="plain" aria-label="Close details" onClick={() => { state.drawerOpen.value = false; }}>×</button></h2>
      <p class="muted">The functions that spend most in their own code. Click one to light its boxes.</p>
      {hottest.map((r) => <Share name={funcs[r.func].name} value={r.self} total={total} onClick={() => { state.query.value = funcs[r.func].name; }} />)}
    </>
  );
}

// Who called it and what it called, of its outermost calls: the second level of the sandwich's two trees.
function neighbours(tree: ViewTree): [number, number][] {
  const list: [number, number][] = [];
  if (tree.size < 2) return list;
  for (let child = 2; child < tree.end[1]; child = tree.end[child]) list.push([tree.func[child], tree.total[child]]);
  return list.sort((x, y) => y[1] - x[1]).slice(0, 5);
}

function Card({ func, row, total }: { func: number; row: FuncRow; total: number }) {
  const funcs = state.down.value!.funcs, f = funcs[func], unit = state.metricUnit.value, isDiff = state.baseProfile.value !== null;
  const tree = state.down.value!.tree, around = useMemo(() => sandwich(funcs, tree, func, "heavy"), [tree, func]);
  const callers = neighbours(around.callers), callees = neighbours(around.callees);
  const list = (title: string, items: [number, number][]) => items.length > 0 && <>
    <h3>{title}</h3>{items.map(([g, value]) => <Share name={funcs[g].name} value={value} total={row.total} onClick={() => { state.query.value = funcs[g].name; }} />)}</>;
  return (
    <>
      <h2>Function<button class="plain" aria-label="Close details" onClick={() => { state.drawerOpen.value = false; }}>×</button></h2>
      <div class="name">{f.name.length > 2000 ? `${f.name.slice(0, 2000)}…` : f.name}</div>
      <div class="muted">{[f.module, f.file && `${f.file}${f.line ? `:${f.line}` : ""}`].filter(Boolean).join(" · ")}</div>
      <dl class="facts">
        <dt>Self</dt><dd>{formatValue(row.self, unit)} ({percent(row.self, total)})</dd>
        <dt>Total</dt><dd>{formatValue(row.total, unit)} ({percent(row.total, total)})</dd>
        {isDiff && <><dt>Base total</dt><dd>{formatValue(row.base, unit)}</dd><dt>Change</dt><dd class={row.total > row.base ? "more" : "less"}>{row.total > row.base ? "+" : ""}{formatValue(row.total - row.base, unit)}</dd></>}
      </dl>
      {list("Callers", callers)}
      {list("Callees", callees)}
      <div class="actions">
        <button onClick={() => state.showSandwich(f.name)}>Sandwich</button>
        <button onClick={() => state.addFilter("focus", exactly(f.name))}>Focus</button>
        <button onClick={() => state.addFilter("hide", exactly(f.name))}>Hide</button>
        <button onClick={() => state.addFilter("ignore", exactly(f.name))}>Ignore</button>
        <button onClick={() => showSource(f.name)}>Source</button>
        <button onClick={() => copy(f.name)}>Copy name</button>
        <button onClick={() => copy(state.selectedPath.value.join(";"))}>Copy stack</button>
      </div>
    </>
  );
}

export function Drawer() {
  const d = state.down.value;
  if (!state.drawerOpen.value || !d || d.tree.size < 2 || state.tab.value === "sql" || state.tab.value === "source") return null;
  const rows = state.table.value, total = d.tree.total[0], name = state.selectedPath.value.at(-1);
  const func = name === undefined ? -1 : d.funcs.findIndex((f) => f.name === name), row = rows.find((r) => r.func === func);
  return <aside class="drawer" aria-label="Details">{row ? <Card func={func} row={row} total={total} /> : <Top rows={rows} total={total} />}</aside>;
}
