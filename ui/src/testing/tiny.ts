// Small profiles for tests, made of folded lines: "main;work 10"; and trees of them as lines again.
import type { BaseTree, Func, Profile, Rows } from "../model/profile";
import type { ViewTree } from "../ops/view_tree";

export type Places = Record<string, { file?: string; path?: string }>;
export interface TinyOptions { places?: Places; rows?: { line: number; thread: number; time: number; value: number }[]; threads?: number }

export function tiny(lines: string[], options: TinyOptions = {}): Profile {
  const funcs: Func[] = [], ids = new Map<string, number>(), parent = [-1], func = [-1], self = [0], line = [0], ends: number[] = [];
  const children = new Map<string, number>();
  for (const text of lines) {
    const at = text.lastIndexOf(" ");
    let node = 0;
    for (const part of text.slice(0, at).split(";")) {
      const [name, number] = part.split("@");
      let id = ids.get(name);
      if (id === undefined) {
        ids.set(name, (id = funcs.length));
        const place = options.places ? options.places[name] ?? {} : { file: `${name}.cc`, path: "/bin/app" }, path = place.path ?? "";
        funcs.push({ name, systemName: name, file: place.file ?? "", module: path.slice(path.lastIndexOf("/") + 1), path, line: 1, kind: name.startsWith("[") ? 4 : 0, named: true });
      }
      const key = `${node};${part}`, known = children.get(key);
      if (known !== undefined) { node = known; continue; }
      parent.push(node); func.push(id); self.push(0); line.push(Number(number ?? 0));
      node = func.length - 1;
      children.set(key, node);
    }
    self[node] += Number(text.slice(at + 1));
    ends.push(node);
  }
  const tree: BaseTree = { size: func.length, func: Int32Array.from(func), parent: Int32Array.from(parent), line: Uint32Array.from(line), inlined: new Uint8Array(func.length), isFolded: line.every((l) => l === 0) };
  const r = options.rows ?? [], rows: Rows = {
    size: r.length, node: Uint32Array.from(r, (x) => ends[x.line]), thread: Int32Array.from(r, (x) => x.thread), metric: new Uint32Array(r.length),
    labels: new Int32Array(r.length).fill(-1), value: Float64Array.from(r, (x) => x.value), wall: new Float64Array(r.length), isSample: new Uint32Array(r.length).fill(1), time: Float64Array.from(r, (x) => x.time),
  };
  const threads = Array.from({ length: options.threads ?? 0 }, (_, i) => ({ pid: 1, tid: i, name: `t${i}`, process: "app", start: 0, end: 0 }));
  return { tree, funcs, threads, rows, metrics: [{ name: "cpu", unit: "count", kind: "count", default: true }], meta: { has_rows: r.length > 0, samples_metric: null, wall_metric: null },
    self: () => Float64Array.from(self), labelSets: () => [] } as unknown as Profile;
}

// "a;b 3/10": the path, self and total.
export function dump(tree: ViewTree, funcs: { name: string }[], sums: (node: number) => string = (i) => `${tree.self[i]}/${tree.total[i]}`): string[] {
  const lines: string[] = [], path: string[] = [];
  for (let i = 1; i < tree.size; i++) {
    path.length = tree.depth[i] - 1;
    path.push(funcs[tree.func[i]].name);
    lines.push(`${path.join(";")} ${sums(i)}`);
  }
  return lines;
}
