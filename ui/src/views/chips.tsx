import { useRef, useState } from "preact/hooks";
import { exactly, toRegExp, type FilterKind } from "../ops/filters";
import { formatNs, formatValue, parseTime, percent } from "../model/units";
import { S } from "../strings";
import * as state from "../state";
import { Popover } from "./popover";
import { Selectors } from "./top_bar";

const KINDS: [FilterKind, string, string][] = [
  ["focus", "Focus", "only stacks with a matching frame (pprof: focus)"],
  ["ignore", "Ignore", "without stacks that have a matching frame (pprof: ignore)"],
  ["hide", "Hide", "matching frames are taken out of their stacks (pprof: hide)"],
  ["show-from", "Show from", "stacks begin at the first matching frame (pprof: show_from)"],
];
const TITLE = new Map(KINDS.map(([kind, title]) => [kind, title]));

// "^f\(int\)$" came from a box: people know it as f(int).
const readable = (pattern: string) => (/^\^.*\$$/.test(pattern) && exactly(plainName(pattern)) === pattern ? plainName(pattern) : `/${pattern}/`);
const plainName = (pattern: string) => pattern.slice(1, -1).replace(/\\(.)/g, "$1");

function Chip({ text, onRemove }: { text: string; onRemove: () => void }) {
  return <span class="chip"><span title={text}>{text}</span><button aria-label={`Remove: ${text}`} onClick={onRemove}>×</button></span>;
}

function AddFilter({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<FilterKind | "time" | "label">("focus"), [text, setText] = useState("");
  const isBad = kind === "time" ? parseRange(text) === null : kind === "label" ? !/^[^=]+=.*/.test(text) : toRegExp(text) === null;
  const add = (event: Event) => {
    event.preventDefault();
    if (text === "" || isBad) return;
    if (kind === "time") state.timeRange.value = parseRange(text);
    else if (kind === "label") state.labels.value = [...state.labels.value, { key: text.slice(0, text.indexOf("=")), text: text.slice(text.indexOf("=") + 1) }];
    else state.addFilter(kind, text);
    onClose();
  };
  const hasRows = state.profile.value?.meta.has_rows ?? false;
  return (
    <form onSubmit={add}>
      <select aria-label="Kind of filter" value={kind} onChange={(e) => setKind(e.currentTarget.value as FilterKind)}>
        {KINDS.map(([k, title]) => <option value={k}>{title}</option>)}
        {hasRows && <option value="time">Time</option>}
        {hasRows && <option value="label">Label</option>}
      </select>{" "}
      <input type="text" aria-label="Pattern" aria-invalid={isBad && text !== ""} placeholder={kind === "time" ? "1.2s..3.4s" : kind === "label" ? "key=value" : "regular expression"} value={text} onInput={(e) => setText(e.currentTarget.value)} />{" "}
      <button type="submit">Add</button>
      <p class="muted">{isBad && text !== "" ? "not understood" : KINDS.find(([k]) => k === kind)?.[2] ?? ""}</p>
    </form>
  );
}

function parseRange(text: string): [number, number] | null {
  const [from, to] = text.split("..").map(parseTime);
  return from !== null && to !== undefined && to !== null && from < to ? [from, to] : null;
}

export function Chips() {
  const [adding, setAdding] = useState(false), anchor = useRef<HTMLButtonElement>(null);
  const p = state.profile.value;
  if (!p) return <div />;
  const shown = state.down.value?.tree.total[0] ?? 0, unit = state.metricUnit.value, range = state.timeRange.value;
  return (
    <nav class="bar" aria-label="Views and filters">
      <div class="tabs" role="tablist" aria-label="Views">
        {state.TABS.map((t, i) => (
          <button role="tab" id={`tab-${t}`} aria-selected={state.tab.value === t} title={`Key ${i + 1}`} onClick={() => { state.tab.value = t; }}>{S.tabs[t]}</button>
        ))}
      </div>
      <span class="grow" />
      <Selectors />
      <button ref={anchor} aria-expanded={adding} onClick={() => setAdding(!adding)}>+ Filter</button>
      {adding && <Popover anchor={anchor.current} onClose={() => setAdding(false)} label="Add filter"><AddFilter onClose={() => setAdding(false)} /></Popover>}
      {state.isFiltered.value && <div class="chips">
      {state.filters.value.map((f, i) => <Chip text={`${TITLE.get(f.kind)} ${readable(f.pattern)}`} onRemove={() => state.removeFilter(i)} />)}
      {state.labels.value.map((l, i) => <Chip text={`Label ${l.key}=${l.text}`} onRemove={() => { state.labels.value = state.labels.value.filter((_, k) => k !== i); }} />)}
      {range && <Chip text={`Time ${formatNs(range[0])} – ${formatNs(range[1])}`} onRemove={() => { state.timeRange.value = null; }} />}
      {state.threads.value && <Chip text={state.threads.value.size === 1 ? `Thread ${state.threadName(p, [...state.threads.value][0])}` : `${state.threads.value.size} threads`} onRemove={() => { state.threads.value = null; }} />}
      {state.baseProfile.value && (range || state.threads.value || state.labels.value.length > 0) && <span class="muted">{S.filtersOfThisOnly}</span>}
        <span class="muted">shows {percent(shown, state.wholeTotal.value)} of {formatValue(state.wholeTotal.value, unit)}</span>
        <button class="plain" onClick={state.clearFilters}>Remove all</button>
      </div>}
    </nav>
  );
}
