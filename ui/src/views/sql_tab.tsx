import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../model/units";
import { S } from "../strings";
import * as state from "../state";
import { copy } from "./frame_menu";
import { useWindow } from "./table_tab";

interface Answer { columns: string[]; rows: (string | number | null)[][]; cut: boolean; ms: number }

const QUERIES: [string, string][] = [
  ["Hottest functions", "SELECT * FROM top_functions LIMIT 50"],
  ["Hottest stacks", "SELECT * FROM hot_stacks LIMIT 20"],
  ["Threads", "SELECT * FROM thread_time"],
  ["Waits", "SELECT * FROM waits LIMIT 50"],
  ["Samples over time", "SELECT ts / 100000000 AS tenth, count(*) AS samples FROM perf_sample GROUP BY 1 ORDER BY 1"],
  ["What was lost", "SELECT name, severity, value, description FROM stats WHERE value > 0"],
];

export function SqlTab() {
  const area = useRef<HTMLTextAreaElement>(null), [text, setText] = useState(QUERIES[0][1]), [answer, setAnswer] = useState<Answer | null>(null), [error, setError] = useState(""), [busy, setBusy] = useState(false);
  const control = useRef<AbortController | null>(null);
  if (!state.hasServer.value) return <section class="view" role="tabpanel" aria-label="SQL"><div class="empty"><p>{S.noServer}</p></div></section>;
  const run = async () => {
    control.current = new AbortController();
    setBusy(true);
    setError("");
    try {
      const reply = await fetch("api/sql", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ f: state.file.value, sql: text }), signal: control.current.signal });
      if (reply.ok) setAnswer((await reply.json()) as Answer); else setError(await reply.text());
    } catch (e) {
      setError(e instanceof DOMException && e.name === "AbortError" ? "Cancelled: cprof stopped the query." : S.gone);
    }
    setBusy(false);
  };
  return (
    <section class="view" role="tabpanel" aria-label="SQL">
     <div class="source">
      <Tables onChoose={(name) => { setText(`SELECT * FROM ${name} LIMIT 100`); area.current?.focus(); }} />
      <div class="view">
      <div class="tools" style="display:block">
        <textarea ref={area} class="sql" aria-label="SQL" spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && e.ctrlKey) void run(); }} />
        <div class="tools" style="padding:6px 0">
          <button class="primary" onClick={() => void run()} disabled={busy}>{busy ? "Running…" : "Run"}</button>
          {busy && <button onClick={() => control.current?.abort()}>Cancel</button>}
          <select aria-label="Ready queries" value="" onChange={(e) => { if (e.currentTarget.value) setText(e.currentTarget.value); }}>
            <option value="">Ready queries…</option>{QUERIES.map(([title, sql]) => <option value={sql}>{title}</option>)}
          </select>
          {answer && <button onClick={() => copy([answer.columns.join("\t"), ...answer.rows.map((r) => r.join("\t"))].join("\n"))}>Copy as TSV</button>}
          <span class="muted">{answer ? `${count(answer.rows.length)} rows${answer.cut ? " (cut at the limit)" : ""}, ${Math.round(answer.ms)} ms` : ""}</span>
        </div>
        {error && <p role="alert" class="more">{error}</p>}
      </div>
      {answer ? <Result answer={answer} /> : <p class="muted pad">Tables and views of this profile are at the left; queries can only read. Ctrl+Enter runs.</p>}
      </div>
     </div>
    </section>
  );
}

interface Table { name: string; columns: [string, string][] }

// What can be asked for. Loaded once a file.
function Tables({ onChoose }: { onChoose: (name: string) => void }) {
  const [tables, setTables] = useState<Table[]>([]), file = state.file.value;
  useEffect(() => {
    let alive = true;
    fetch(`api/tables?f=${file}`).then((a) => (a.ok ? a.json() : [])).then((list: Table[]) => { if (alive) setTables(list); }).catch(() => undefined);
    return () => { alive = false; };
  }, [file]);
  return (
    <nav aria-label="Tables">
      {tables.map((t) => (
        <details><summary>{t.name}</summary>
          <ul class="columns">{t.columns.map(([name, type]) => <li><code>{name}</code> <span class="muted">{type.toLowerCase()}</span></li>)}</ul>
          <button onClick={() => onChoose(t.name)}>Query</button></details>
      ))}
    </nav>
  );
}

function Result({ answer }: { answer: Answer }) {
  const w = useWindow(answer.rows.length);
  return (
    <div class="grid" ref={w.box} onScroll={w.onScroll} tabIndex={0} aria-label="Result">
      <table aria-rowcount={answer.rows.length + 1}>
        <thead><tr>{answer.columns.map((c) => <th class="left" style="padding:4px 10px">{c}</th>)}</tr></thead>
        <tbody>
          {w.before > 0 && <tr style={`height:${w.before}px`} aria-hidden="true" />}
          {answer.rows.slice(w.first, w.last).map((r, i) => <tr key={w.first + i}>{r.map((v) => <td class={typeof v === "number" ? "" : "left"} title={String(v ?? "NULL").slice(0, 1000)}>{v === null ? <span class="muted">NULL</span> : String(v).slice(0, 500)}</td>)}</tr>)}
          {w.after > 0 && <tr style={`height:${w.after}px`} aria-hidden="true" />}
        </tbody>
      </table>
    </div>
  );
}
