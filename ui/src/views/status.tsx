import { count, formatValue, percent } from "../model/units";
import { S } from "../strings";
import { drawable } from "../draw/text";
import * as state from "../state";

export function jump(step: number) {
  const found = state.found.value, tree = state.shown.value, d = state.down.value;
  if (!found || !tree || !d || found.nodes.length === 0) return;
  const current = state.nodeOf(tree, d.funcs, state.selectedPath.value), at = found.nodes.indexOf(current);
  const next = found.nodes[(at + step + found.nodes.length) % found.nodes.length];
  state.selectedPath.value = state.pathOf(tree, d.funcs, next);
  state.zoomPath.value = state.selectedPath.value;
}

function Found() {
  const found = state.found.value, tree = state.shown.value;
  if (!found || !tree) return null;
  return (
    <span>matched {percent(found.weight, tree.width[0])} ({count(found.nodes.length)} frames){" "}
      <button class="plain" aria-label="Previous match" onClick={() => jump(-1)}>‹</button><button class="plain" aria-label="Next match" onClick={() => jump(1)}>›</button></span>
  );
}

export function Status() {
  const d = state.down.value, over = state.hovered.value, shown = state.shown.value;
  const tree = over?.tree ?? shown;
  if (!d || !tree) return <footer class="status"><span class="muted">cprof</span></footer>;
  const node = over ? over.node : state.nodeOf(tree, d.funcs, state.selectedPath.value);
  const f = node > 0 && node < tree.size ? d.funcs[tree.func[node]] : null, unit = state.metricUnit.value;
  return (
    <footer class="status">
      {f ? <>
        <span class="name">{drawable(f.name.slice(0, 400))}</span>
        <span class="muted wide">{[f.module, f.file && `${f.file.split("/").pop()}${f.line ? `:${f.line}` : ""}`].filter(Boolean).join(" ")}</span>
        <span>{formatValue(tree.total[node], unit)} ({percent(tree.total[node], tree.total[0])})</span>
        <span class="muted">self {formatValue(tree.self[node], unit)} ({percent(tree.self[node], tree.total[0])})</span>
        <span class="muted wide">{percent(tree.total[node], tree.total[tree.parent[node]])} of parent</span>
        {tree.base.length > 0 && <span class={tree.total[node] > tree.base[node] ? "more" : "less"}>{tree.total[node] > tree.base[node] ? "+" : ""}{formatValue(tree.total[node] - tree.base[node], unit)} against base</span>}
      </> : <span class="muted">{S.hoverHint}</span>}
      <span class="grow" />
      <Found />
    </footer>
  );
}
