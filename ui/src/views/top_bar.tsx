import { useRef, useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import { count, formatNs, formatValue, percent } from "../model/units";
import { valueOf } from "../ops/weigh";
import { S } from "../strings";
import * as state from "../state";
import { ExportMenu } from "./export_menu";
import { Notes } from "./notes";
import { Popover } from "./popover";

const METRIC_WORDS: Record<string, string> = { "cpu-clock": "CPU time", "task-clock": "CPU time", cpu: "CPU time", wall: "Elapsed time", offcpu: "Waiting time", samples: "Samples" };
export const metricTitle = (name: string) => METRIC_WORDS[name] ?? name;

function Metrics({ p }: { p: Profile }) {
  if (p.metrics.length === 0) return null;
  return (
    <label>
      <span class="sr">Metric</span>
      <select aria-label="Metric" value={String(state.metric.value)}
        onChange={(e) => { state.metricName.value = p.metrics[Number(e.currentTarget.value)].name; }}>
        {p.metrics.map((m, i) => <option value={String(i)}>{metricTitle(m.name)}{METRIC_WORDS[m.name] && m.name !== "samples" ? ` (${m.name})` : ""}</option>)}
      </select>
    </label>
  );
}

function Files() {
  const list = state.profiles.value;
  if (list.length < 2) return null;
  return (
    <>
      <select aria-label="File" value={String(state.file.value)} onChange={(e) => { state.file.value = Number(e.currentTarget.value); state.zoomPath.value = []; }}>
        {list.map((p, i) => <option value={String(i)}>{p.name}</option>)}
      </select>
      <select aria-label="Compare with" value={state.base.value === null ? "" : String(state.base.value)}
        onChange={(e) => { state.base.value = e.currentTarget.value === "" ? null : Number(e.currentTarget.value); }}>
        <option value="">Diff with…</option>
        {list.map((p, i) => (i === state.file.value ? null : <option value={String(i)}>against {p.name}</option>))}
      </select>
      {state.baseProfile.value && (
        <button aria-pressed={state.isNormalised.value} title="Scale the base to the same total" onClick={() => { state.normalise.value = !state.isNormalised.value; }}>Normalise</button>
      )}
    </>
  );
}

function threadWeights(p: Profile): Float64Array {
  const out = new Float64Array(p.threads.length), rows = p.rows, value = valueOf(p, state.metric.value);
  for (let i = 0; i < rows.size; i++) if (rows.thread[i] >= 0) out[rows.thread[i]] += value(i);
  return out;
}

function ThreadList({ p }: { p: Profile }) {
  const [text, setText] = useState("");
  const weights = threadWeights(p), total = weights.reduce((a, b) => a + b, 0), chosen = state.threads.value;
  const order = [...weights.keys()].filter((i) => weights[i] !== 0).sort((a, b) => weights[b] - weights[a]);
  const wanted = order.filter((i) => `${p.threads[i].name} ${p.threads[i].process} ${p.threads[i].tid}`.toLowerCase().includes(text.toLowerCase()));
  const toggle = (i: number) => {
    const next = new Set(chosen ?? []);
    if (next.has(i)) next.delete(i); else next.add(i);
    state.threads.value = next.size === 0 ? null : next;
  };
  return (
    <>
      <input type="search" aria-label="Search threads" placeholder="Search threads" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <button style="margin-left:6px" onClick={() => { state.threads.value = null; }}>{S.allThreads}</button>
      <ul>
        {wanted.slice(0, 200).map((i) => (
          <li><label><input type="checkbox" checked={chosen?.has(i) ?? false} onChange={() => toggle(i)} /> {p.threads[i].process} › {p.threads[i].name || p.threads[i].tid}
            <span class="muted"> {p.threads[i].tid} · {percent(weights[i], total)}</span></label></li>
        ))}
      </ul>
      {wanted.length > 200 && <p class="muted">{count(wanted.length - 200)} more: search to find them</p>}
    </>
  );
}

function Threads({ p }: { p: Profile }) {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null);
  if (p.threads.length < 2 || !p.meta.has_rows) return null;
  const n = state.threads.value?.size ?? 0;
  return (
    <>
      <button ref={anchor} aria-expanded={open} onClick={() => setOpen(!open)}>{n === 0 ? S.allThreads : `${n} thread${n > 1 ? "s" : ""}`} ▾</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)}><ThreadList p={p} /></Popover>}
    </>
  );
}

function Facts({ p }: { p: Profile }) {
  const m = p.meta, parts = [m.samples ? `${count(m.samples)} ${p.isTimed ? "samples" : "rows"}` : ""];
  if (m.duration_ns) parts.push(formatNs(m.duration_ns));
  if (p.metrics.length) parts.push(`${formatValue(state.wholeTotal.value, state.metricUnit.value)} ${metricTitle(p.metrics[state.metric.value].name)}`);
  return <span class="muted wide">{parts.filter(Boolean).join(" · ")}</span>;
}

export function TopBar() {
  const p = state.profile.value;
  return (
    <header class="bar">
      <h1 class="logo">cprof</h1>
      {p && <>
        <span class="title" title={p.meta.command || p.name}>{p.meta.command || p.name}</span>
        <Facts p={p} />
        <Metrics p={p} />
        <Files />
        <Threads p={p} />
      </>}
      <span class="grow" />
      {p && <>
        <input id="search" type="search" aria-label="Search functions" placeholder={S.search} value={state.query.value} onInput={(e) => { state.query.value = e.currentTarget.value; }} />
        <Notes p={p} />
        <ExportMenu p={p} />
      </>}
      <button class="plain" aria-label={`Theme: ${state.theme.value}`} title="Theme: system, light, dark (t)" onClick={nextTheme}>{state.theme.value === "auto" ? "◐" : state.theme.value === "light" ? "☀" : "☾"}</button>
      <button class="plain" aria-label="Keyboard help" title="Keyboard (?)" onClick={() => (document.getElementById("help") as HTMLDialogElement).showModal()}>?</button>
    </header>
  );
}

export function nextTheme() {
  const order: state.Theme[] = ["auto", "light", "dark"];
  state.theme.value = order[(order.indexOf(state.theme.value) + 1) % order.length];
}
