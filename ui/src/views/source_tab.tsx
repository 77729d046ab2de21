import { computed } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatValue, percent } from "../model/units";
import { lineCosts, subtreeSums, type LineCost } from "../ops/lines";
import type { Source } from "../model/profile";
import { S } from "../strings";
import * as state from "../state";
import { drawable } from "../draw/text";
import { copy } from "./frame_menu";

interface Asm { lines: { address: string; text: string; line: number; self: number }[] }
interface Refusal { note: string }

const sums = computed(() => (state.profile.value ? subtreeSums(state.profile.value.tree, state.weights.value) : new Float64Array()));

function useServed<T>(path: string | null): T | Refusal | null {
  const [answer, setAnswer] = useState<{ path: string; value: T | Refusal } | null>(null);
  useEffect(() => {
    if (!path) return;
    let alive = true;
    fetch(path).then(async (a) => (a.ok ? ((await a.json()) as T | Refusal) : { note: await a.text() })).catch(() => ({ note: S.gone }))
      .then((value) => { if (alive) setAnswer({ path, value }); });
    return () => { alive = false; };
  }, [path]);
  return answer && answer.path === path ? answer.value : null;
}

function List({ func, onChoose }: { func: number | null; onChoose: (f: number) => void }) {
  const [text, setText] = useState(""), d = state.down.value!, total = d.tree.total[0];
  const rows = state.table.value.filter((r) => r.func < state.profile.value!.funcs.length && d.funcs[r.func].name.toLowerCase().includes(text.toLowerCase())).sort((a, b) => b.self - a.self).slice(0, 300);
  return (
    <nav aria-label="Functions">
      <input type="search" aria-label="Search functions to show" placeholder="Function" value={text} style="width:100%" onInput={(e) => setText(e.currentTarget.value)} />
      {rows.map((r) => <button class="share" aria-pressed={r.func === func} onClick={() => onChoose(r.func)} title={d.funcs[r.func].name.slice(0, 1000)}><span class="row"><span>{drawable(d.funcs[r.func].name.slice(0, 300))}</span><span class="number">{percent(r.self, total)}</span></span></button>)}
    </nav>
  );
}

export function SourceTab() {
  const p = state.profile.value!, byCost = [...state.table.value].sort((a, b) => b.self - a.self), chosen = state.sourceFunc.value ?? (byCost.find((r) => p.funcs[r.func]?.file) ?? byCost[0])?.func ?? null;
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

function Code({ func }: { func: number }) {
  const p = state.profile.value!, f = p.funcs[func], unit = state.metricUnit.value, [asm, setAsm] = useState(false);
  const costs = useMemo(() => lineCosts(p.tree, state.weights.value, sums.value, func), [p, func, state.weights.value]);
  const whole = sums.value[0] || 1;
  const carried = useMemo(() => p.sourceOf(func), [p, func]), served = useServed<Source>(!carried && state.hasServer.value && f.file ? `api/source?f=${state.file.value}&func=${func}` : null);
  const code = useServed<Asm>(state.hasServer.value && asm ? `api/disasm?f=${state.file.value}&func=${func}&metric=${state.metric.value}` : null);
  const source = carried ?? served, text = source && "lines" in source ? source : null;
  const note = !f.file ? "The debug information does not say where this function was written." : text ? "" : source && "note" in source ? source.note : state.hasServer.value ? "" : S.noSource;
  return (
    <div class="code" tabIndex={0} aria-label={`Source of ${f.name.slice(0, 200)}`}>
      <div class="tools">
        <strong class="name">{drawable(f.name.slice(0, 400))}</strong><span class="muted">{f.file}{f.line ? `:${f.line}` : ""}</span>
        {f.file && <button onClick={() => copy(`${f.file}:${f.line}`)}>Copy file:line</button>}
        {state.hasServer.value && <button aria-pressed={asm} onClick={() => setAsm(!asm)}>Instructions</button>}
      </div>
      {text?.changed && <p class="hint notes">The source file is newer than the recording: lines may not fit.</p>}
      {note && <p class="hint">{note}</p>}
      {code && "note" in code && <p class="hint">{code.note}</p>}
      <Lines costs={costs} text={text} asm={code && "lines" in code ? code : null} whole={whole} unit={unit} />
    </div>
  );
}

function Lines({ costs, text, asm, whole, unit }: { costs: LineCost[]; text: Source | null; asm: Asm | null; whole: number; unit: string }) {
  const byLine = new Map(costs.map((c) => [c.line, c])), most = Math.max(1e-12, ...costs.map((c) => Math.abs(c.total)));
  const shown = text ? text.lines.map((t, i) => ({ line: text.first_line + i, text: t })) : costs.map((c) => ({ line: c.line, text: c.line ? "" : "(no line)" }));
  const unknown = text ? byLine.get(0) : undefined, ofLine = (line: number) => asm?.lines.filter((a) => a.line === line) ?? [];
  return (
    <table>
      <thead><tr><th class="cost">Self</th><th class="cost">Total</th><th class="cost">Line</th><th class="text">Code</th></tr></thead>
      <tbody>
        {unknown && <tr><td class="num">{formatValue(unknown.self, unit)}</td><td class="num">{formatValue(unknown.total, unit)}</td><td class="num">?</td><td class="muted">code without a line</td></tr>}
        {shown.map(({ line, text: t }) => {
          const cost = byLine.get(line);
          return [
            <tr class={cost ? "hot" : ""} style={cost ? `--heat:${Math.abs(cost.total) / most}` : ""}>
              <td class="num" title={cost ? percent(cost.self, whole) : ""}>{cost && cost.self ? formatValue(cost.self, unit) : ""}</td>
              <td class="num" title={cost ? percent(cost.total, whole) : ""}>{cost ? formatValue(cost.total, unit) : ""}</td>
              <td class="num">{line || ""}</td><td>{t}</td>
            </tr>,
            ...ofLine(line).map((a) => <tr class="asm"><td class="num">{a.self ? formatValue(a.self, unit) : ""}</td><td /><td class="num">{a.address}</td><td>    {a.text}</td></tr>),
          ];
        })}
      </tbody>
    </table>
  );
}
