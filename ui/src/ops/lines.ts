// What each line of a function costs: its own code, and all that it calls. Pure.
import type { BaseTree } from "../model/profile";

export interface LineCost { line: number; self: number; total: number }

export function subtreeSums(tree: BaseTree, self: Float64Array): Float64Array {
  const total = self.slice();
  for (let i = tree.size - 1; i > 0; i--) total[tree.parent[i]] += total[i];
  return total;
}

// Of nested calls of the function the outermost line counts for the total.
export function lineCosts(tree: BaseTree, self: Float64Array, total: Float64Array, func: number): LineCost[] {
  const lines = new Map<number, LineCost>(), inside = new Uint8Array(tree.size);
  for (let i = 1; i < tree.size; i++) {
    const isNested = inside[tree.parent[i]] === 1;
    inside[i] = isNested || tree.func[i] === func ? 1 : 0;
    if (tree.func[i] !== func || (self[i] === 0 && total[i] === 0)) continue;
    let row = lines.get(tree.line[i]);
    if (!row) lines.set(tree.line[i], (row = { line: tree.line[i], self: 0, total: 0 }));
    row.self += self[i];
    if (!isNested) row.total += total[i];
  }
  return [...lines.values()].sort((a, b) => a.line - b.line);
}

export function grouped<T>(list: T[], keyOf: (item: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const item of list) {
    const key = keyOf(item), group = groups.get(key);
    if (group) group.push(item); else groups.set(key, [item]);
  }
  return groups;
}
