import { formatValue, percent } from "../model/units";
import { changeOf } from "../ops/compare";
import { exactly } from "../ops/filters";
import { useMemo } from "preact/hooks";
import type { FuncRow } from "../ops/fold";
import { neighboursOf } from "../ops/neighbours";
import { S } from "../strings";
import * as state from "../state";
import { diffFill, fillOf } from "../draw/colors";
import { drawable } from "../draw/text";
import { copy, showSource } from "./frame_menu";
import { HotLines } from "./source_tab";

interface ShareProps { name: string; value: number; total: number; fill?: string; text?: string; tone?: string; onClick: () => void }

function Share({ name, value, total, fill, text, tone, onClick }: ShareProps) {
  return (
    <button class="share" onClick={onClick} title={name.slice(0, 1000)}>
      <span class="row"><span>{drawable(name.slice(0, 300))}</span><span class={`number ${tone ?? ""}`}>{text ?? percent(value, total)}</span></span>
      <span class="meter" style={`${fill ? `background:${fill};` : ""}width:${Math.min(100, Math.max(0, (100 * Math.abs(value)) / Math.abs(total || 1)))}%`} />
    </button>
  );
}

function Close() { return <button class="plain" aria-label="Close details" onClick={() => { state.drawerOpen.value = false; }}>×</button>; }

function Top({ rows, total }: { rows: FuncRow[]; total: number }) {
  const funcs = state.down.value!.funcs, p = state.profile.value!, hottest = rows.filter((r) => r.self !== 0).sort((a, b) => b.self - a.self).slice(0, 8);
  const unit = state.metricUnit.value;
  return (
    <>
      <h2>{["nanoseconds", "count"].includes(unit) ? S.whereTime : S.whereValue}<Close /></h2>
      <p class="muted">The functions that spend most in their own code. Click one to light its boxes.</p>
      {hottest.map((r) => <Share name={funcs[r.func].name} value={r.self} total={total} fill={fillOf(funcs[r.func], "kind", state.isDark.value, 0).fill} onClick={() => { state.query.value = funcs[r.func].name; }} />)}
      <Modules rows={rows} total={total} />
      {p.meta.has_rows && p.threads.length > 1 && <BusyThreads total={total} />}
    </>
  );
}

// Sums of own cost: they add up to everything.
function Modules({ rows, total }: { rows: FuncRow[]; total: number }) {
  const funcs = state.down.value!.funcs, sums = new Map<string, number>();
  for (const r of rows) if (r.self !== 0) sums.set(funcs[r.func].module, (sums.get(funcs[r.func].module) ?? 0) + r.self);
  sums.delete("");
  const list = [...sums].sort((a, b) => b[1] - a[1]);
  if (list.length < 2) return null;
  return <><h3>By module</h3>{list.slice(0, 5).map(([name, value]) => <Share name={name} value={value} total={total} onClick={() => { state.query.value = name; }} />)}</>;
}

function BusyThreads({ total }: { total: number }) {
  const p = state.profile.value!, { sums, order } = state.busyThreads.value, whole = state.wholeTotal.value;
  if (order.length < 2 || state.threads.value !== null || total !== whole) return null;
  return <><h3>By thread</h3>{order.slice(0, 5).map((i) => <Share name={state.threadName(p, i)} value={sums[i]} total={whole} onClick={() => { state.threads.value = new Set([i]); }} />)}</>;
}

// Of two profiles: whose own code costs more or less, beyond chance.
function Changed({ rows }: { rows: FuncRow[] }) {
  const funcs = state.down.value!.funcs, unit = state.metricUnit.value, noise = state.noise.value, dark = state.isDark.value;
  const changes = rows.map((r) => ({ name: funcs[r.func].name, by: r.self - r.baseSelf, kind: changeOf(r.self, r.baseSelf, noise) })).filter((c) => c.kind !== "noise").sort((a, b) => Math.abs(b.by) - Math.abs(a.by)).slice(0, 15);
  return (
    <>
      <h2>What changed<Close /></h2>
      <p class="muted">Functions whose own code costs more or less than in {state.fileNames.value[state.base.value!]}{state.isNormalised.value ? ", of the same total" : ""}.</p>
      {changes.length === 0 && <p>Nothing beyond chance.</p>}
      {changes.map((c) => <Share name={c.name} value={c.by} total={changes[0].by} fill={diffFill(c.by > 0 ? 0.8 : -0.8, false, dark).fill} tone={c.by > 0 ? "more" : "less"}
        text={`${c.by > 0 ? "+" : ""}${formatValue(c.by, unit)}${c.kind === "new" || c.kind === "gone" ? `, ${c.kind}` : ""}`} onClick={() => { state.query.value = c.name; }} />)}
    </>
  );
}

function Card({ func, row, total }: { func: number; row: FuncRow; total: number }) {
  const funcs = state.down.value!.funcs, f = funcs[func], unit = state.metricUnit.value, isDiff = state.baseProfile.value !== null;
  const tree = state.down.value!.tree, around = useMemo(() => neighboursOf(tree, func), [tree, func]);
  const list = (title: string, items: [number, number][]) => items.length > 0 && <>
    <h3>{title}</h3>{items.slice(0, 5).map(([g, value]) => <Share name={funcs[g].name} value={value} total={row.total} onClick={() => { state.query.value = funcs[g].name; }} />)}</>;
  return (
    <>
      <h2>Function<Close /></h2>
      <div class="name">{drawable(f.name.length > 2000 ? `${f.name.slice(0, 2000)}…` : f.name)}</div>
      <div class="muted">{[f.module, f.file && `${f.file}${f.line ? `:${f.line}` : ""}`].filter(Boolean).join(" · ")}</div>
      <dl class="facts">
        <dt>Self</dt><dd>{formatValue(row.self, unit)} <span class="muted">{percent(row.self, total)}</span></dd>
        <dt>Total</dt><dd>{formatValue(row.total, unit)} <span class="muted">{percent(row.total, total)}</span></dd>
        {isDiff && <><dt>Base total</dt><dd>{formatValue(row.base, unit)}</dd><dt>Change</dt><dd class={row.total > row.base ? "more" : "less"}>{row.total > row.base ? "+" : ""}{formatValue(row.total - row.base, unit)}</dd></>}
      </dl>
      {f.file && func < state.profile.value!.funcs.length && <HotLines key={func} func={func} />}
      {list("Callers", around.callers)}
      {list("Callees", around.callees)}
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
  return <aside class="drawer" aria-label="Details">{row ? <Card func={func} row={row} total={total} /> : state.baseProfile.value ? <Changed rows={rows} /> : <Top rows={rows} total={total} />}</aside>;
}
