import { useRef, useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import * as state from "../state";
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

const FORMATS: [string, string][] = [["pb.gz", "pprof"], ["speedscope.json", "speedscope"], ["pftrace", "Perfetto trace"], ["html", "this page as one file"], ["cprof", "recording"]];

export function ExportMenu({ p }: { p: Profile }) {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null), stem = p.name.replace(/^.*\//, "").replace(/\.[^.]*$/, "") || "profile";
  const item = (title: string, act: () => void) => <button role="menuitem" onClick={() => { act(); setOpen(false); }}>{title}</button>;
  return (
    <>
      <button ref={anchor} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>Export ▾</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Export" menu>
        {item("Shown stacks, folded", () => download(`${stem}.folded`, "text/plain", foldedText()))}
        {item("Shown table, TSV", () => download(`${stem}.tsv`, "text/tab-separated-values", tableText("\t")))}
        {item("Picture of this view, PNG", () => document.querySelector<HTMLCanvasElement>("canvas")?.toBlob((blob) => blob && download(`${stem}.png`, "image/png", blob)))}
        {item("Link to this view", () => { void navigator.clipboard?.writeText(location.href).catch(() => undefined); })}
        {state.hasServer.value && FORMATS.map(([ending, title]) => item(`Whole profile: ${title}`, () => { location.href = `api/export?f=${state.file.value}&format=${ending}`; }))}
      </Popover>}
    </>
  );
}
