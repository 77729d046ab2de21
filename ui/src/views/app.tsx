import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { openFile } from "../boot";
import { formatValue } from "../model/units";
import { onKey } from "../keys";
import * as state from "../state";
import { Chips } from "./chips";
import { Drawer } from "./drawer";
import { Empty, Loading, Problem } from "./empty";
import { FlameTab } from "./flame_tab";
import { Gone } from "./gone";
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

// A fault of ours in one view must not leave a blank page: it is said, and the others are still there.
class Guard extends Component<{ children: ComponentChildren }, { fault: string }> {
  state = { fault: "" };
  componentDidCatch(error: unknown) {
    console.error(error);
    this.setState({ fault: String(error) });
  }
  render() {
    if (!this.state.fault) return this.props.children;
    return <section class="empty" role="alert"><h2>This view does not work</h2><p class="problem">{this.state.fault}</p><p class="muted">That is a fault of cprof. The other views may still work.</p></section>;
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
      <Gone />
      <main class="main">
        {state.problem.value ? <Problem /> : state.loading.value ? <Loading /> : !p ? <Empty /> : <Guard key={`${state.tab.value} ${state.file.value}`}><Body /><Drawer /></Guard>}
      </main>
      <Status />
      <Help />
      <p class="sr" aria-live="polite" id="live">{state.said.value || (p ? `${p.name}, ${formatValue(state.wholeTotal.value, state.metricUnit.value)}` : "")}</p>
    </div>
  );
}
