import { useEffect, useState } from "preact/hooks";
import { openFile, openRecent, openSample } from "../boot";
import { ago, formatValue } from "../model/units";
import { ask } from "../server";
import { S } from "../strings";
import * as state from "../state";
import { copy } from "./frame_menu";

const COMMANDS: [string, string][] = [["cprof record -o app.cprof -- ./app", "record a program"], ["cprof view app.cprof", "open it here"], ["cprof convert app.cprof -o app.html", "one file to send"]];

export function Empty() {
  return (
    <section class="empty">
      {state.hasServer.value ? <>
        <h2>Open a profile</h2>
        <p class="drop">Drop a recording, pprof, perf.data, folded stacks, Chrome trace or any other profile here, or{" "}
          <label class="link">choose a file<input type="file" class="sr" multiple onChange={(e) => { for (const f of e.currentTarget.files ?? []) void openFile(f); }} /></label>.</p>
        <p><button onClick={() => void openSample()}>Look at a sample</button></p>
        <Recent />
      </> : <><h2>This page holds no profile</h2><p>It was made without one. A page with a profile in it:</p></>}
      <dl class="commands">{COMMANDS.map(([command, what]) => <><dt><code>{command}</code></dt><dd class="muted">{what} <button class="plain" aria-label={`Copy: ${command}`} onClick={() => copy(command)}>copy</button></dd></>)}</dl>
    </section>
  );
}

interface RecentFile { path: string; bytes: number; changed: number }

// What cprof view showed before on this machine, as long as it is there.
function Recent() {
  const [list, setList] = useState<RecentFile[]>([]);
  useEffect(() => { ask("api/recent").then((a) => (a.ok ? a.json() : [])).then(setList).catch(() => undefined); }, []);
  if (list.length === 0) return null;
  const forget = () => { ask("api/forget", { method: "POST" }).then((a) => { if (a.ok) setList([]); }).catch(() => undefined); };
  return (
    <div class="recent">
      <h3>Recent files<button class="plain" title={S.recentHelp} onClick={forget}>Forget them</button></h3>
      <ul>{list.map(({ path, bytes, changed }) => {
        const slash = path.lastIndexOf("/");
        return <li><button onClick={() => void openRecent(path)} title={path}><strong>{path.slice(slash + 1)}</strong><span class="muted folder">{path.slice(0, slash) || "/"}</span><span class="muted">{formatValue(bytes, "bytes")}, {ago(Date.now() / 1000 - changed)}</span></button></li>;
      })}</ul>
    </div>
  );
}

export function Loading() {
  const l = state.loading.value!;
  return <section class="empty late" role="status"><h2>{l.phase}…</h2><p class="muted">{l.name}{l.bytes ? `, ${formatValue(l.bytes, "bytes")}` : ""}</p>{l.cancel && <button onClick={l.cancel}>Cancel</button>}</section>;
}

export function Problem() {
  const problem = state.problem.value!;
  return (
    <section class="empty" role="alert">
      <h2>{problem.title}</h2>
      <p class="problem">{problem.text}</p>
      {state.profiles.value.length > 0 && <button onClick={() => { state.problem.value = null; }}>Back</button>}
    </section>
  );
}
