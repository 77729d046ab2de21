// What the compiler put into the lines of a function: the frames that were inlined there, with their costs. Pure.
import type { BaseTree } from "../model/profile";

export interface InlinedFrame { func: number; depth: number; self: number; total: number }

interface Node { func: number; parent: number; self: number; total: number; line: number }

// By line of the function: callers before their callees, the heaviest first. As with lines, of nested calls of the function only
// the outermost counts for totals.
export function inlinedByLine(tree: BaseTree, self: Float64Array, total: Float64Array, func: number): Map<number, InlinedFrame[]> {
  const nodes: Node[] = [], byKey = new Map<string, number>();
  const group = new Int32Array(tree.size).fill(-1), inside = new Uint8Array(tree.size), nested = new Uint8Array(tree.size);
  for (let i = 1; i < tree.size; i++) {
    const up = tree.parent[i], isCaller = tree.func[up] === func && up > 0;
    inside[i] = inside[up] || tree.func[i] === func ? 1 : 0;
    if (!tree.inlined[i] || (!isCaller && group[up] < 0)) continue;
    nested[i] = isCaller ? inside[tree.parent[up]] : nested[up];
    const line = isCaller ? tree.line[up] : nodes[group[up]].line, parent = isCaller ? -1 : group[up], key = `${line};${parent};${tree.func[i]}`;
    let at = byKey.get(key);
    if (at === undefined) {
      byKey.set(key, (at = nodes.length));
      nodes.push({ func: tree.func[i], parent, self: 0, total: 0, line });
    }
    group[i] = at;
    nodes[at].self += self[i];
    if (!nested[i]) nodes[at].total += total[i];
  }
  return listed(nodes);
}

function listed(nodes: Node[]): Map<number, InlinedFrame[]> {
  const children = new Map<number, number[]>(), lines = new Map<number, InlinedFrame[]>();
  nodes.forEach((n, i) => {
    if (n.self === 0 && n.total === 0) return;
    const list = children.get(n.parent);
    if (list) list.push(i); else children.set(n.parent, [i]);
  });
  const lightestFirst = (a: number, b: number) => Math.abs(nodes[a].total) - Math.abs(nodes[b].total) || b - a;
  const open = (children.get(-1) ?? []).sort(lightestFirst).map((at) => ({ at, depth: 0 }));
  while (open.length) {
    const { at, depth } = open.pop()!, n = nodes[at], frame = { func: n.func, depth, self: n.self, total: n.total }, list = lines.get(n.line);
    if (list) list.push(frame); else lines.set(n.line, [frame]);
    for (const child of (children.get(at) ?? []).sort(lightestFirst)) open.push({ at: child, depth: depth + 1 });
  }
  return lines;
}
