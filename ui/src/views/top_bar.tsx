import { useRef, useState } from "preact/hooks";
import { chooseFile } from "../boot";
import type { Profile } from "../model/profile";
import { count, formatNs, formatValue, percent } from "../model/units";
import { S } from "../strings";
import * as state from "../state";
import { ExportMenu } from "./export_menu";
import { Notes } from "./notes";
import { Popover } from "./popover";

const METRIC_WORDS = new Map([["cpu-clock", "CPU time"], ["task-clock", "CPU time"], ["cpu", "CPU time"], ["wall", "Elapsed time"], ["offcpu", "Waiting time"], ["samples", "Samples"]]);
export const metricTitle = (name: string) => METRIC_WORDS.get(name) ?? name;

// "CPU time (cpu-clock)"; two metrics of one name are told apart by their units.
export function metricLabel(p: Profile, at: number): string {
  const m = p.metrics[at], title = metricTitle(m.name), isTwice = p.metrics.some((o, i) => i !== at && o.name === m.name);
  return title !== m.name && m.name !== "samples" ? `${title} (${m.name})` : isTwice ? `${title} (${m.unit})` : title;
}

function Metrics({ p }: { p: Profile }) {
  if (p.metrics.length === 0) return null;
  return (
    <select aria-label="Metric" title="What boxes and numbers weigh by (m)" value={String(state.metric.value)} onChange={(e) => { state.metricName.value = p.metrics[Number(e.currentTarget.value)].name; }}>
      {p.metrics.map((_, i) => <option value={String(i)}>{metricLabel(p, i)}</option>)}
    </select>
  );
}

const ANOTHER = "another";

// Of the open files, or one that is yet to be chosen: until it is there the choice stays as it was.
function chosen(select: HTMLSelectElement, before: string, act: (value: string) => void, isBase: boolean) {
  if (select.value !== ANOTHER) return act(select.value);
  select.value = before;
  chooseFile(isBase);
}

function Files() {
  const list = state.profiles.value, canOpen = state.hasServer.value;
  if (list.length < 2 && !canOpen) return null;
  const others = list.map((p, i) => ({ p, i })).filter(({ i }) => i !== state.file.value);
  return (
    <>
      <select class={list.length < 2 ? "roomy" : ""} aria-label="File" value={String(state.file.value)} onChange={(e) => chosen(e.currentTarget, String(state.file.value), (at) => state.showFile(Number(at)), false)}>
        {list.map((p, i) => <option value={String(i)} title={p.name}>{state.fileNames.value[i]}</option>)}
        {canOpen && <option value={ANOTHER}>open…</option>}
      </select>
      <select class={list.length < 2 ? "roomy" : ""} aria-label="Compare with" value={state.base.value === null ? "" : String(state.base.value)}
        onChange={(e) => chosen(e.currentTarget, state.base.value === null ? "" : String(state.base.value), (at) => { state.base.value = at === "" ? null : Number(at); }, true)}>
        <option value="">Diff with…</option>
        {others.map(({ p, i }) => <option value={String(i)} title={p.name}>against {state.fileNames.value[i]}</option>)}
        {canOpen && <option value={ANOTHER}>another file…</option>}
      </select>
      {state.baseProfile.value && (
        <button aria-pressed={state.isNormalised.value} title="Scale the base to the same total" onClick={() => { state.normalise.value = !state.isNormalised.value; }}>Normalise</button>
      )}
    </>
  );
}

function ThreadList({ p }: { p: Profile }) {
  const [text, setText] = useState("");
  const { sums: weights, order } = state.busyThreads.value, total = weights.reduce((a, b) => a + b, 0), chosen = state.threads.value;
  const idle = chosen ? [...chosen].filter((i) => i < weights.length && weights[i] === 0) : [];
  const wanted = [...order, ...idle].filter((i) => `${p.threads[i].name} ${p.threads[i].process} ${p.threads[i].tid}`.toLowerCase().includes(text.toLowerCase()));
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
          <li><label class="choice"><input type="checkbox" checked={chosen?.has(i) ?? false} onChange={() => toggle(i)} />
            <span class="grow">{p.threads[i].process === p.threads[i].name ? "" : `${p.threads[i].process} › `}{p.threads[i].name || p.threads[i].tid} <span class="muted">{p.threads[i].tid}</span></span>
            <span class="muted number">{percent(weights[i], total)}</span></label></li>
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
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Threads"><ThreadList p={p} /></Popover>}
    </>
  );
}

function Facts({ p }: { p: Profile }) {
  const m = p.meta, name = p.metrics[state.metric.value]?.name ?? "", parts = [p.isTimed && m.samples ? `${count(m.samples)} samples` : "", m.duration_ns ? `${formatNs(m.duration_ns)} long` : ""];
  if (name && !(p.isTimed && name === "samples")) parts.push(`${formatValue(state.wholeTotal.value, state.metricUnit.value)} ${metricTitle(name).replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`);
  return <span class="muted facts-line wide">{parts.filter(Boolean).join(" · ")}</span>;
}

function Logo() {
  return (
    <h1 class="logo">
      <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true"><path d="M1 2h14v3H1z" fill="#f3b95f" /><path d="M1 6h10v3H1z" fill="#ef8f4c" /><path d="M1 10h6v3H1z" fill="#d95f2b" /><path d="M12 6h3v3h-3z" fill="#f3cf8a" /></svg>
      cprof
    </h1>
  );
}

export function TopBar() {
  const p = state.profile.value;
  return (
    <header class="bar">
      <Logo />
      {p && <>
        <span class="title" title={p.meta.command || p.name}>{p.meta.command || state.fileNames.value[state.file.value]}</span>
        <Facts p={p} />
      </>}
      <span class="grow" />
      {p && <>
        <Notes p={p} />
        <ExportMenu p={p} />
      </>}
      <button class="plain" aria-label={`Theme: ${state.theme.value}`} title="Theme: system, light, dark (t)" onClick={nextTheme}>{state.theme.value === "auto" ? "◐" : state.theme.value === "light" ? "☀" : "☾"}</button>
      <button class="plain" aria-label="Keyboard help" title="Keyboard (?)" onClick={() => (document.getElementById("help") as HTMLDialogElement).showModal()}>?</button>
    </header>
  );
}

// What is looked at: by which metric, of which file and threads; and the search.
export function Selectors() {
  const p = state.profile.value;
  if (!p) return null;
  return (
    <>
      <Metrics p={p} />
      <Files />
      <Threads p={p} />
      <input id="search" type="search" aria-label="Search functions" placeholder={S.search} value={state.query.value} onInput={(e) => { state.query.value = e.currentTarget.value; }} />
    </>
  );
}

export function nextTheme() {
  const order: state.Theme[] = ["auto", "light", "dark"];
  state.theme.value = order[(order.indexOf(state.theme.value) + 1) % order.length];
}
