import { openFile } from "../boot";
import { count } from "../model/units";
import * as state from "../state";

export function Empty() {
  return (
    <section class="empty">
      <h2>Open a profile</h2>
      {state.hasServer.value ? <p>Drop a recording, pprof, perf.data, folded stacks, Chrome trace or any other profile here, or <label><input type="file" class="sr" onChange={(e) => { for (const f of e.currentTarget.files ?? []) void openFile(f); }} /><u style="cursor:pointer">choose a file</u></label>.</p>
        : <p>This page holds no profile.</p>}
      <pre>{"cprof record -o app.cprof -- ./app      record a program\ncprof view app.cprof                    open it here\ncprof convert app.cprof -o app.html     one file to send"}</pre>
    </section>
  );
}

export function Loading() {
  const l = state.loading.value!;
  return <section class="empty" role="status"><h2>{l.phase}…</h2><p class="muted">{l.name}{l.bytes ? `, ${count(l.bytes)} bytes` : ""}</p></section>;
}

export function Problem() {
  const problem = state.problem.value!;
  return (
    <section class="empty" role="alert">
      <h2>{problem.title}</h2>
      <p>{problem.text}</p>
      {state.profiles.value.length > 0 && <button onClick={() => { state.problem.value = null; }}>Back</button>}
    </section>
  );
}
