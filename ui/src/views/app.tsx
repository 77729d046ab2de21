import { useEffect, useState } from "preact/hooks";
import { openFile } from "../boot";
import { formatValue } from "../model/units";
import { onKey } from "../keys";
import * as state from "../state";
import { Chips } from "./chips";
import { Drawer } from "./drawer";
import { Empty, Loading, Problem } from "./empty";
import { FlameTab } from "./flame_tab";
import { Help } from "./help";
import { SourceTab } from "./source_tab";
import { SqlTab } from "./sql_tab";
import { Status } from "./status";
import { TableTab } from "./table_tab";
import { TimelineTab } from "./timeline_tab";
import { TopBar } from "./top_bar";

function Body() {
  switch (state.tab.value) {
    case "table": return <TableTab />;
    case "timeline": return <TimelineTab />;
    case "source": return <SourceTab />;
    case "sql": return <SqlTab />;
    default: return <FlameTab />;
  }
}

export function App() {
  const [dropping, setDropping] = useState(false);
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const p = state.profile.value;
  useEffect(() => {
    document.title = p ? `${p.meta.command || state.fileNames.value[state.file.value]} – cprof` : "cprof";
  }, [p]);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    for (const f of event.dataTransfer?.files ?? []) void openFile(f);
  };
  return (
    <div class={`app ${dropping ? "dropping" : ""}`} onDragOver={(e) => { e.preventDefault(); setDropping(true); }}
      onDragLeave={(e) => { if (!e.relatedTarget) setDropping(false); }} onDrop={drop}>
      <TopBar />
      <Chips />
      <main class="main">
        {state.problem.value ? <Problem /> : state.loading.value ? <Loading /> : !p ? <Empty /> : <><Body /><Drawer /></>}
      </main>
      <Status />
      <Help />
      <p class="sr" aria-live="polite" id="live">{state.said.value || (p ? `${p.name}, ${formatValue(state.wholeTotal.value, state.metricUnit.value)}` : "")}</p>
    </div>
  );
}
