import { computed } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatValue, percent } from "../model/units";
import { inlinedByLine, type InlinedFrame } from "../ops/inlined";
import { grouped, lineCosts, subtreeSums, type LineCost } from "../ops/lines";
import type { Source } from "../model/profile";
import { kept, type FuncRow } from "../ops/fold";
import { ask, returned } from "../server";
import { S } from "../strings";
import * as state from "../state";
import { drawable } from "../draw/text";
import { copy } from "./frame_menu";

interface Instruction { address: string; text: string; line: number; self: number; inlined?: string }
interface Asm { lines: Instruction[] }
interface Refusal { note: string }

const sums = computed(() => (state.profile.value ? subtreeSums(state.profile.value.tree, state.keptWeights.value) : new Float64Array()));

function useServed<T>(path: string | null): T | Refusal | null {
  const [answer, setAnswer] = useState<{ path: string; value: T | Refusal } | null>(null);
  useEffect(() => {
    if (!path) return;
    let alive = true;
    ask(path).then(async (a) => (a.ok ? ((await a.json()) as T | Refusal) : { note: await a.text() })).catch(() => ({ note: S.noAnswer }))
      .then((value) => { if (alive) setAnswer({ path, value }); });
    return () => { alive = false; };
  }, [path, returned.value]);
  return answer && answer.path === path ? answer.value : null;
}

const hottest = (a: FuncRow, b: FuncRow) => b.self - a.self || b.total - a.total;

function List({ func, onChoose }: { func: number | null; onChoose: (f: number) => void }) {
  const [text, setText] = useState(""), d = state.down.value!, total = d.tree.total[0];
  const rows = state.table.value.filter((r) => r.func < state.profile.value!.funcs.length && d.funcs[r.func].name.toLowerCase().includes(text.toLowerCase())).sort(hottest).slice(0, 300);
  return (
    <nav aria-label="Functions">
      <input type="search" aria-label="Search functions to show" placeholder="Function" value={text} style="width:100%" onInput={(e) => setText(e.currentTarget.value)} />
      {rows.map((r) => <button class="share" aria-pressed={r.func === func} onClick={() => onChoose(r.func)} title={d.funcs[r.func].name.slice(0, 1000)}><span class="row"><span>{drawable(d.funcs[r.func].name.slice(0, 300))}</span><span class="number">{percent(r.self, total)}</span></span></button>)}
    </nav>
  );
}

export function SourceTab() {
  const p = state.profile.value!, byCost = [...state.table.value].sort(hottest), chosen = state.sourceFunc.value ?? (byCost.find((r) => p.funcs[r.func]?.file) ?? byCost[0])?.func ?? null;
  const func = chosen !== null && chosen < p.funcs.length ? chosen : null;
  return (
    <section class="view" role="tabpanel" aria-label="Source">
      <div class="source">
        <List func={func} onChoose={(f) => { state.sourceFunc.value = f; }} />
        {func === null ? <div class="empty"><p>No function to show.</p></div> : <Code key={func} func={func} />}
      </div>
    </section>
  );
}

// The text of a function: what travels along, else what the server reads; or why there is none.
export function useSource(func: number): Source | Refusal | null {
  const p = state.profile.value!, carried = useMemo(() => p.sourceOf(func), [p, func]);
  const served = useServed<Source>(!carried && state.hasServer.value && p.funcs[func]?.file ? `api/source?f=${p.served}&func=${func}` : null);
  return carried ?? served;
}

export function useCosts(func: number): LineCost[] {
  const p = state.profile.value!;
  return useMemo(() => lineCosts(p.tree, state.keptWeights.value, sums.value, func), [p, func, state.keptWeights.value]);
}

// Of two profiles: by line, what share of the base it is there with all that it calls.
function useBaseShares(func: number): Map<number, number> | null {
  const p = state.profile.value!, b = state.baseProfile.value, at = b?.metrics.findIndex((m) => m.name === p.metrics[state.metric.value]?.name) ?? -1, filters = state.filters.value;
  return useMemo(() => {
    if (!b || at < 0) return null;
    const f = p.funcs[func], other = b.funcs.findIndex((g) => g.name === f.name && (g.module === f.module || !g.module || !f.module));
    const self = kept(b, b.self(at), filters), total = subtreeSums(b.tree, self);
    return new Map(other < 0 ? [] : lineCosts(b.tree, self, total, other).map((c) => [c.line, c.total / (total[0] || 1)]));
  }, [p, b, at, func, filters]);
}

const AROUND = 4;

// The lines around the one that spends most: enough to know what it is about.
export function HotLines({ func }: { func: number }) {
  const source = useSource(func), costs = useCosts(func), whole = sums.value[0] || 1;
  const hot = costs.reduce<LineCost | null>((best, c) => (c.line > 0 && (!best || Math.abs(c.total) > Math.abs(best.total)) ? c : best), null);
  if (!hot || !source || !("lines" in source)) return null;
  const first = Math.max(source.first_line, hot.line - AROUND), lines = source.lines.slice(first - source.first_line, hot.line + AROUND + 1 - source.first_line);
  const shares = new Map(costs.map((c) => [c.line, c.total]));
  return (
    <>
      <h3>Hottest line</h3>
      <table class="hot-lines"><tbody>
        {lines.map((text, i) => <tr class={first + i === hot.line ? "hot" : ""}><td class="num">{shares.get(first + i) ? percent(shares.get(first + i)!, whole) : ""}</td><td class="num">{first + i}</td><td>{text.slice(0, 300)}</td></tr>)}
      </tbody></table>
    </>
  );
}

function Code({ func }: { func: number }) {
  const p = state.profile.value!, f = p.funcs[func], unit = state.metricUnit.value, [asm, setAsm] = useState(false), [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const costs = useCosts(func), whole = sums.value[0] || 1, source = useSource(func);
  const code = useServed<Asm>(state.hasServer.value && asm ? `api/disasm?f=${p.served}&func=${func}&metric=${state.metric.value}` : null);
  const text = source && "lines" in source ? source : null, inlined = useMemo(() => inlinedByLine(p.tree, state.keptWeights.value, sums.value, func), [p, func, state.keptWeights.value]);
  const toggle = (line: number) => { const next = new Set(open); if (!next.delete(line)) next.add(line); setOpen(next); };
  const note = !f.file ? "The debug information does not say where this function was written." : text ? "" : source && "note" in source ? source.note : state.hasServer.value ? "" : S.noSource;
  return (
    <div class="code" tabIndex={0} aria-label={`Source of ${f.name.slice(0, 200)}`}>
      <div class="tools">
        <strong class="name">{drawable(f.name.slice(0, 400))}</strong><span class="muted">{f.file}{f.line ? `:${f.line}` : ""}</span>
        {f.file && <button onClick={() => copy(`${f.file}:${f.line}`)}>Copy file:line</button>}
        {state.hasServer.value && <button aria-pressed={asm} onClick={() => setAsm(!asm)}>{asm && !code ? "Instructions…" : "Instructions"}</button>}
        {inlined.size > 0 && <button aria-pressed={open.size >= inlined.size} title="What the compiler put into the lines of this function" onClick={() => setOpen(new Set(open.size < inlined.size ? inlined.keys() : []))}>Inlined code</button>}
      </div>
      {text?.changed && <p class="hint notes">The source file is newer than the recording: lines may not fit.</p>}
      {note && <p class="hint">{note}</p>}
      {code && "note" in code && <p class="hint">{code.note}</p>}
      {code && "lines" in code && state.isFiltered.value && <p class="hint">{S.wholeCode}</p>}
      <Lines inlined={inlined} open={open} onToggle={toggle} costs={costs} base={useBaseShares(func)} text={text} asm={code && "lines" in code ? code : null} whole={whole} unit={unit} />
    </div>
  );
}

// A value and its share of all, the share with a bar.
function Cost({ value, whole, unit }: { value: number; whole: number; unit: string }) {
  if (value === 0) return <><td class="num value" /><td class="num" /></>;
  return <><td class="num value">{formatValue(value, unit)}</td><td class="num shared" style={`--share:${Math.min(100, Math.abs((100 * value) / whole))}%`}>{percent(value, whole)}</td></>;
}

interface InstructionsProps { list: Instruction[]; whole: number; unit: string; hasLines: boolean; isDiff: boolean }

function Instructions({ list, whole, unit, hasLines, isDiff }: InstructionsProps) {
  const most = list.reduce((n, a) => Math.max(n, a.self), 0);
  return <>{list.map((a) => (
    <tr class={`asm ${a.self ? "hot" : ""}`} key={a.address} data-hot={!hasLines && a.self === most && most > 0 ? "" : undefined}>
      <Cost value={a.self} whole={whole} unit={unit} /><td class="value" /><td />{isDiff && <td />}<td class="num">{hasLines ? "" : a.line || ""}</td>
      <td>{hasLines ? "    " : ""}<span class="address">{a.address}</span>  {a.text}{a.inlined && <span class="inlined">  {drawable(a.inlined.slice(0, 120))}</span>}</td>
    </tr>
  ))}</>;
}

interface InlinedProps { list: InlinedFrame[]; whole: number; unit: string; isDiff: boolean }

// The functions whose code stands in a line; each leads to its own source.
function Inlined({ list, whole, unit, isDiff }: InlinedProps) {
  const funcs = state.profile.value!.funcs;
  return <>{list.slice(0, MOST_INLINED).map((r, i) => {
    const f = funcs[r.func], place = f.file ? `${f.file.slice(f.file.lastIndexOf("/") + 1)}${f.line ? `:${f.line}` : ""}` : f.module;
    return (
      <tr class="inlined-frame" key={i}>
        <Cost value={r.self} whole={whole} unit={unit} /><Cost value={r.total} whole={whole} unit={unit} />{isDiff && <td />}<td class="num" />
        <td style={`padding-left:${2 + 2 * Math.min(r.depth, 30)}ch`}><span aria-hidden="true">↳ </span><button class="link" title={f.name.slice(0, 1000)} onClick={() => { state.sourceFunc.value = r.func; }}>{drawable(f.name.length > 120 ? `${f.name.slice(0, 117)}…` : f.name)}</button> <span class="address">{place}</span></td>
      </tr>
    );
  })}
  {list.length > MOST_INLINED && <tr class="inlined-frame"><td colSpan={isDiff ? 6 : 5} /><td class="muted">{list.length - MOST_INLINED} more</td></tr>}</>;
}

const MOST_INLINED = 200;  // of a line

interface LinesProps { inlined: Map<number, InlinedFrame[]>; open: ReadonlySet<number>; onToggle: (line: number) => void; costs: LineCost[]; base: Map<number, number> | null; text: Source | null; asm: Asm | null; whole: number; unit: string }

// Lines with their costs; below each its instructions, when they are asked for.
function Lines({ inlined, open, onToggle, costs, base, text, asm, whole, unit }: LinesProps) {
  const byLine = new Map(costs.map((c) => [c.line, c])), most = costs.reduce((n, c) => Math.max(n, Math.abs(c.total)), 1e-12), box = useRef<HTMLTableSectionElement>(null);
  const hot = costs.reduce<LineCost | null>((best, c) => (c.line > 0 && (!best || Math.abs(c.self) > Math.abs(best.self)) ? c : best), null);
  const known = text || asm ? [] : [...new Set([...byLine.keys(), ...(base?.keys() ?? [])])].sort((a, b) => a - b);
  const shown = text ? text.lines.map((t, i) => ({ line: text.first_line + i, text: t })) : known.map((line) => ({ line, text: line ? "" : "(no line)" }));
  const code = grouped(asm?.lines ?? [], (a) => (text && a.line >= text.first_line && a.line < text.first_line + text.lines.length ? a.line : 0)), isDiff = base !== null;
  const row = (line: number, number: string, content: string, kind: string) => {
    const cost = byLine.get(line), before = base?.get(line) ?? 0;
    return (
      <tr key={line} class={kind} style={cost ? `--heat:${Math.abs(cost.total) / most}` : ""} data-hot={hot && line === hot.line ? "" : undefined}>
        <Cost value={cost?.self ?? 0} whole={whole} unit={unit} /><Cost value={cost?.total ?? 0} whole={whole} unit={unit} />
        {isDiff && <td class="num">{before ? percent(before, 1) : ""}</td>}<td class="num at">{number}{inlined.has(line) && <button class="opener" aria-expanded={open.has(line)} aria-label={`Code inlined into line ${line}`} onClick={() => onToggle(line)}>{open.has(line) ? "▾" : "▸"}</button>}</td><td>{content}</td>
      </tr>
    );
  };
  useEffect(() => { if (text || asm) box.current?.querySelector("[data-hot]")?.scrollIntoView({ block: "center" }); }, [text, asm, hot?.line]);
  return (
    <table>
      <thead><tr><th class="cost value">Self</th><th class="part">Self %</th><th class="cost value">Total</th><th class="part">Total %</th>{isDiff && <th class="part">Base %</th>}<th class="line">Line</th><th class="text">Code</th></tr></thead>
      <tbody ref={box}>
        {text && byLine.has(0) && row(0, "?", "code without a line", "muted")}
        {shown.map(({ line, text: t }) => [
          row(line, line ? String(line) : "", t, text && byLine.has(line) ? "hot" : ""),
          open.has(line) && inlined.has(line) && <Inlined list={inlined.get(line)!} whole={whole} unit={unit} isDiff={isDiff} />,
          line > 0 && code.has(line) && <Instructions list={code.get(line)!} whole={whole} unit={unit} hasLines isDiff={isDiff} />,
        ])}
        {text && code.has(0) && <tr><td colSpan={isDiff ? 6 : 5} /><td class="muted">instructions without a line here</td></tr>}
        {code.has(0) && <Instructions list={code.get(0)!} whole={whole} unit={unit} hasLines={text !== null} isDiff={isDiff} />}
      </tbody>
    </table>
  );
}
