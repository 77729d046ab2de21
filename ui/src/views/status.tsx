import type { Func } from "../model/profile";
import { count, formatValue, percent } from "../model/units";
import type { ViewTree } from "../ops/view_tree";
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

const HINTS: Record<state.Tab, string> = { flame: S.hoverHint, table: S.tableHint, timeline: S.timelineHint, source: S.sourceHint, sql: S.sqlHint };

function Frame({ f, tree, node }: { f: Func; tree: ViewTree; node: number }) {
  const unit = state.metricUnit.value;
  return (
    <>
      <span class="name">{drawable(f.name.slice(0, 400))}</span>
      <span class="muted wide">{[f.module, f.file && `${f.file.split("/").pop()}${f.line ? `:${f.line}` : ""}`].filter(Boolean).join(" ")}</span>
      <span>{formatValue(tree.total[node], unit)} ({percent(tree.total[node], tree.total[0])})</span>
      <span class="muted">self {formatValue(tree.self[node], unit)} ({percent(tree.self[node], tree.total[0])})</span>
      <span class="muted wide">{percent(tree.total[node], tree.total[tree.parent[node]])} of parent</span>
      {tree.base.length > 0 && <span class={tree.total[node] > tree.base[node] ? "more" : "less"}>{tree.total[node] > tree.base[node] ? "+" : ""}{formatValue(tree.total[node] - tree.base[node], unit)} against base</span>}
    </>
  );
}

// The frame under the pointer, else the one that is selected; where there are none, what one may do here.
export function Status() {
  const d = state.down.value, over = state.hovered.value, tab = state.tab.value, tree = over?.tree ?? state.shown.value;
  if (!d || !tree) return <footer class="status"><span class="muted">cprof</span></footer>;
  const node = tab !== "flame" ? 0 : over ? over.node : state.nodeOf(tree, d.funcs, state.selectedPath.value), f = node > 0 && node < tree.size ? d.funcs[tree.func[node]] : null;
  return (
    <footer class="status">
      {f ? <Frame f={f} tree={tree} node={node} /> : <span class="name plain">{tab === "timeline" && state.timelineText.value ? state.timelineText.value : <span class="muted">{HINTS[tab]}</span>}</span>}
      <span class="grow" />
      <Found />
    </footer>
  );
}
