// The keyboard. Nothing here fires while a text is being typed, and no key of the browser's is taken but "/" and Ctrl+F.
import { exactly } from "./ops/filters";
import type { Order, ViewTree } from "./ops/view_tree";
import * as state from "./state";
import { copy, showSource } from "./views/frame_menu";
import { jump } from "./views/status";
import { nextTheme } from "./views/top_bar";

function selection() {
  const tree = state.shown.value, d = state.down.value;
  if (!tree || !d) return null;
  return { tree, funcs: d.funcs, node: state.nodeOf(tree, d.funcs, state.selectedPath.value) };
}

function select(node: number) {
  const s = selection();
  if (!s) return;
  state.selectedPath.value = state.pathOf(s.tree, s.funcs, node);
  const t = s.tree, share = (value: number) => `${((100 * value) / (t.total[0] || 1)).toFixed(1)} %`, [at, of] = placeAmong(t, node);
  state.said.value = node === 0 ? "all" : `frame ${s.funcs[t.func[node]].name.slice(0, 300)}, ${share(t.total[node])} total, ${share(t.self[node])} self, depth ${t.depth[node]}, child ${at} of ${of}`;
}

function placeAmong(t: ViewTree, node: number): [number, number] {
  let at = 0, of = 0;
  if (node > 0) for (let child = t.parent[node] + 1; child < t.end[t.parent[node]]; child = t.end[child]) { of++; if (child === node) at = of; }
  return [at, of];
}

function sibling(step: number) {
  const s = selection();
  if (!s || s.node === 0) return;
  const { tree, node } = s, parent = tree.parent[node];
  if (step > 0) { if (tree.end[node] < tree.end[parent]) select(tree.end[node]); return; }
  let last = -1;
  for (let child = parent + 1; child < node; child = tree.end[child]) last = child;
  if (last >= 0) select(last);
}

const withName = (act: (name: string) => void) => () => { const name = state.selectedPath.value.at(-1); if (name) act(name); };

function cycleMetric(step: number) {
  const p = state.profile.value;
  if (p && p.metrics.length) state.metricName.value = p.metrics[(state.metric.value + step + p.metrics.length) % p.metrics.length].name;
}

function cycleThread(step: number) {
  const { order } = state.busyThreads.value, current = state.threads.value ? order.indexOf([...state.threads.value][0]) : step > 0 ? -1 : order.length, next = current + step;
  state.threads.value = next < 0 || next >= order.length ? null : new Set([order[next]]);
}

const ORDERS: Order[] = ["heavy", "name", "time"];

const KEYS: Record<string, () => void> = {
  "/": () => document.getElementById("search")?.focus(),
  n: () => jump(1), N: () => jump(-1),
  ArrowUp: () => { const s = selection(); if (s && s.node > 0) select(s.tree.parent[s.node]); },
  ArrowDown: () => { const s = selection(); if (s && s.tree.end[s.node] > s.node + 1) select(s.node + 1); },
  ArrowLeft: () => sibling(-1), ArrowRight: () => sibling(1),
  Enter: () => { state.zoomPath.value = state.selectedPath.value; },
  u: () => { state.zoomPath.value = state.zoomPath.value.slice(0, -1); },
  Backspace: () => { state.zoomPath.value = state.zoomPath.value.slice(0, -1); },
  "0": () => { state.zoomPath.value = []; }, Home: () => { state.zoomPath.value = []; },
  b: () => { state.direction.value = state.direction.value === "up" ? "down" : "up"; state.zoomPath.value = []; },
  x: withName(state.showSandwich),
  o: () => { state.order.value = ORDERS[(ORDERS.indexOf(state.order.value) + 1) % ORDERS.length]; },
  m: () => cycleMetric(1), M: () => cycleMetric(-1),
  "]": () => cycleThread(1), "[": () => cycleThread(-1),
  f: withName((name) => state.addFilter("focus", exactly(name))),
  g: withName((name) => state.addFilter("ignore", exactly(name))),
  h: withName((name) => state.addFilter("hide", exactly(name))),
  r: () => { state.collapseRecursion.value = !state.collapseRecursion.value; },
  s: withName(showSource),
  c: withName(copy), C: () => copy(state.selectedPath.value.join(";")),
  i: () => { state.drawerOpen.value = !state.drawerOpen.value; },
  t: nextTheme,
  d: () => document.querySelector<HTMLElement>("[aria-label='Compare with']")?.focus(),
  e: () => document.querySelector<HTMLElement>("[aria-haspopup=menu]")?.click(),
  "?": () => (document.getElementById("help") as HTMLDialogElement).showModal(),
};

const isDrawerOver = () => state.drawerOpen.value && innerWidth <= 720;  // style.css: it covers the view

function back() {
  if (isDrawerOver()) { state.drawerOpen.value = false; return; }
  if (state.query.value) state.query.value = "";
  else if (state.selectedPath.value.length && state.zoomPath.value.length === 0) state.selectedPath.value = [];
  else state.zoomPath.value = [];
}

export function onKey(event: KeyboardEvent) {
  const target = event.target as HTMLElement, isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  if (event.ctrlKey && event.key === "f" && !isTyping) {
    event.preventDefault();
    document.getElementById("search")?.focus();
    return;
  }
  if (isTyping) {
    if (target.id === "search" && event.key === "Enter") jump(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { target.blur(); if (target.id === "search") state.query.value = ""; }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  if (event.key === "Escape") { back(); return; }
  const number = Number(event.key);
  if (number >= 1 && number <= state.TABS.length) { state.tab.value = state.TABS[number - 1]; return; }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
