import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { openFile } from "../boot";
import { drawable } from "../draw/text";
import { count } from "../model/units";
import { ask, returned } from "../server";
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

// Which files a query asks: the one that is shown, or all of them at once, told apart by their scope.
type Scope = number | "all";

function useQuery(scope: Scope) {
  const [answer, setAnswer] = useState<Answer | null>(null), [error, setError] = useState(""), [busy, setBusy] = useState(false), control = useRef<AbortController | null>(null);
  const run = async (sql: string) => {
    control.current?.abort();
    const mine = (control.current = new AbortController());
    setBusy(true);
    setError("");
    try {
      const reply = await ask("api/sql", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ f: scope, sql }), signal: mine.signal });
      if (reply.ok) setAnswer((await reply.json()) as Answer); else setError(await reply.text());
    } catch (e) {
      if (control.current === mine) setError(mine.signal.aborted ? "Cancelled: cprof stopped the query." : S.noAnswer);
    }
    if (control.current === mine) setBusy(false);
  };
  return { answer, error, busy, run, cancel: () => control.current?.abort() };
}

export function SqlTab() {
  const area = useRef<HTMLTextAreaElement>(null), [text, setText] = useState(QUERIES[0][1]), [isOfAll, setOfAll] = useState(false), several = state.profiles.value.length > 1;
  const scope: Scope = several && isOfAll ? "all" : state.profile.value?.served ?? 0, { answer, error, busy, run, cancel } = useQuery(scope);
  if (!state.hasServer.value) return <section class="view" role="tabpanel" aria-label="SQL"><div class="empty"><p>{S.noServer}</p></div></section>;
  const query = (sql: string) => { setText(sql); void run(sql); };
  return (
    <section class="view" role="tabpanel" aria-label="SQL">
      <div class="source sql-page">
        <Tables scope={scope} onChoose={(name) => { setText(`SELECT * FROM ${name} LIMIT 100`); area.current?.focus(); }} />
        <div class="view">
          <div class="ask">
            <textarea ref={area} class="sql" aria-label="SQL" spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && e.ctrlKey) void run(text); }} />
            <div class="tools">
              <button class="primary" onClick={() => void run(text)} disabled={busy}>{busy ? "Running…" : "Run"}</button>
              {busy && <button onClick={cancel}>Cancel</button>}
              {several && <div class="segmented" role="group" aria-label="Files to ask">
                <button aria-pressed={!isOfAll} title="The tables of the file that is shown" onClick={() => setOfAll(false)}>This file</button>
                <button aria-pressed={isOfAll} title="The tables of all files at once: the column scope tells them apart" onClick={() => setOfAll(true)}>All files</button>
              </div>}
              <select aria-label="Ready queries" value="" onChange={(e) => { if (e.currentTarget.value) query(e.currentTarget.value); }}>
                <option value="">Ready queries…</option>{QUERIES.map(([title, sql]) => <option value={sql}>{title}</option>)}
              </select>
              {answer && <Uses answer={answer} />}
            </div>
            {error && <p role="alert" class="more">{error}</p>}
          </div>
          {answer ? <Result answer={answer} /> : <Suggestions onChoose={query} />}
        </div>
      </div>
    </section>
  );
}

function Suggestions({ onChoose }: { onChoose: (sql: string) => void }) {
  return (
    <div class="pad suggestions">
      <p class="muted">Some questions to begin with. Tables and their columns are beside.</p>
      {QUERIES.map(([title, sql]) => <button onClick={() => onChoose(sql)}><strong>{title}</strong><code>{sql}</code></button>)}
    </div>
  );
}

// What can be done with rows: copied, and drawn where they are stacks with values.
function Uses({ answer }: { answer: Answer }) {
  const stack = answer.columns.indexOf("stack"), value = answer.columns.indexOf("value");
  const draw = () => {
    const lines = answer.rows.filter((r) => r[stack] !== null && Number.isFinite(Number(r[value]))).map((r) => `${String(r[stack]).replace(/\s+/g, " ")} ${r[value]}`);
    void openFile(new File([lines.join("\n") + "\n"], "query.folded"));
  };
  return (
    <>
      {stack >= 0 && value >= 0 && answer.rows.length > 0 && <button onClick={draw}>Show as flame graph</button>}
      <button onClick={() => copy([answer.columns.join("\t"), ...answer.rows.map((r) => r.join("\t"))].join("\n"))}>Copy as TSV</button>
      <span class="muted">{count(answer.rows.length)} row{answer.rows.length === 1 ? "" : "s"}{answer.cut ? " (cut at the limit)" : ""}, {Math.round(answer.ms)} ms</span>
    </>
  );
}

interface Table { name: string; columns: [string, string][] }

// What can be asked for. Loaded once a file.
function Tables({ scope, onChoose }: { scope: Scope; onChoose: (name: string) => void }) {
  const [tables, setTables] = useState<Table[]>([]);
  useEffect(() => {
    let alive = true;
    ask(`api/tables?f=${scope}`).then((a) => (a.ok ? a.json() : [])).then((list: Table[]) => { if (alive) setTables(list); }).catch(() => undefined);
    return () => { alive = false; };
  }, [scope, returned.value]);
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

const MOST_CHARS = 60;

// As wide as what stands in its first rows.
function widthOf(answer: Answer, column: number): number {
  let chars = answer.columns[column].length;
  for (const row of answer.rows.slice(0, 200)) chars = Math.max(chars, String(row[column] ?? "NULL").length);
  return Math.min(chars, MOST_CHARS) + 3;
}

function Result({ answer }: { answer: Answer }) {
  const w = useWindow(answer.rows.length), widths = useMemo(() => answer.columns.map((_, i) => widthOf(answer, i)), [answer]), align = (v: unknown) => (typeof v === "number" ? "" : "left");
  return (
    <div class="grid" ref={w.box} onScroll={w.onScroll} tabIndex={0} aria-label="Result">
      <table class="result" aria-rowcount={answer.rows.length + 1} style={`min-width:${widths.reduce((a, b) => a + b, 0)}ch`}>
        <thead><tr>{answer.columns.map((c, i) => <th class={`plain ${align(answer.rows[0]?.[i])}`} style={`width:${widths[i]}ch`}>{c}</th>)}</tr></thead>
        <tbody>
          {w.before > 0 && <tr style={`height:${w.before}px`} aria-hidden="true" />}
          {answer.rows.slice(w.first, w.last).map((r, i) => <tr key={w.first + i}>{r.map((v) => <td class={align(v)} title={String(v ?? "NULL").slice(0, 1000)}>{v === null ? <span class="muted">NULL</span> : drawable(String(v).slice(0, 500))}</td>)}</tr>)}
          {w.after > 0 && <tr style={`height:${w.after}px`} aria-hidden="true" />}
        </tbody>
      </table>
    </div>
  );
}
