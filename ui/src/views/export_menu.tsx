import { useRef, useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import { flameSvg } from "../draw/flame_svg";
import { formatValue, percent } from "../model/units";
import * as state from "../state";
import { plainView } from "./flame_view";
import { Popover } from "./popover";

function download(name: string, type: string, text: string | Blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const clean = (name: string) => name.replace(/;/g, ":").replace(/[\u0000-\u001f]/g, " ");

// The stacks that are shown now, as flamegraph.pl and speedscope read them.
export function foldedText(): string {
  const d = state.down.value!, { tree } = d, lines: string[] = [], path: string[] = [];
  for (let i = 1; i < tree.size; i++) {
    path.length = tree.depth[i] - 1;
    path.push(clean(d.funcs[tree.func[i]].name));
    if (tree.self[i] !== 0) lines.push(`${path.join(";")} ${tree.self[i]}`);
  }
  return lines.join("\n") + "\n";
}

export function tableText(separator: string): string {
  const d = state.down.value!, rows = [...state.table.value].sort((a, b) => b.total - a.total);
  const lines = [["function", "module", "self", "total"].join(separator)];
  for (const r of rows) lines.push([d.funcs[r.func].name.replace(/[\t\n|]/g, " "), d.funcs[r.func].module, r.self, r.total].join(separator));
  return lines.join("\n") + "\n";
}

function tableJson(): string {
  const d = state.down.value!, rows = [...state.table.value].sort((a, b) => b.total - a.total), hasBase = state.baseProfile.value !== null;
  const list = rows.map((r) => ({ function: d.funcs[r.func].name, module: d.funcs[r.func].module, file: d.funcs[r.func].file, line: d.funcs[r.func].line, self: r.self, total: r.total, ...(hasBase ? { base_total: r.base } : {}) }));
  return JSON.stringify({ metric: state.profile.value!.metrics[state.metric.value]?.name, unit: state.metricUnit.value, functions: list }, null, 1) + "\n";
}

function svgText(): string {
  const tree = state.shown.value!, unit = state.metricUnit.value, zoom = state.nodeOf(tree, state.down.value!.funcs, state.zoomPath.value);
  return flameSvg(plainView(tree, zoom), (node) => `${formatValue(tree.total[node], unit)} (${percent(tree.total[node], tree.total[0])}), self ${formatValue(tree.self[node], unit)}`);
}

const FORMATS: [string, string][] = [["pb.gz", "pprof"], ["folded", "folded stacks"], ["speedscope.json", "speedscope"], ["pftrace", "Perfetto trace"], ["html", "this page as one file"], ["cprof", "recording"]];

export function ExportMenu({ p }: { p: Profile }) {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null), stem = p.name.replace(/^.*\//, "").replace(/\.[^.]*$/, "") || "profile";
  const hasCanvas = state.tab.value === "flame" || state.tab.value === "timeline";
  const item = (title: string, act: () => void) => <button role="menuitem" onClick={() => { act(); setOpen(false); }}>{title}</button>;
  return (
    <>
      <button ref={anchor} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>Export ▾</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Export" menu>
        {item("Shown stacks, folded", () => download(`${stem}.folded`, "text/plain", foldedText()))}
        {item("Shown table, TSV", () => download(`${stem}.tsv`, "text/tab-separated-values", tableText("\t")))}
        {item("Shown table, JSON", () => download(`${stem}.json`, "application/json", tableJson()))}
        {hasCanvas && item("Picture of this view, PNG", () => document.querySelector<HTMLCanvasElement>("canvas")?.toBlob((blob) => blob && download(`${stem}.png`, "image/png", blob)))}
        {state.shown.value && item("Shown flame graph, SVG", () => download(`${stem}.svg`, "image/svg+xml", svgText()))}
        {item("Link to this view", () => { void navigator.clipboard?.writeText(location.href).catch(() => undefined); })}
        {state.hasServer.value && FORMATS.map(([ending, title]) => item(`Whole profile: ${title}`, () => { location.href = `api/export?f=${p.served}&format=${ending}`; }))}
      </Popover>}
    </>
  );
}
