import type { FlameView } from "../draw/flame";
import { isNoise } from "../ops/compare";
import type { ViewTree } from "../ops/view_tree";
import * as state from "../state";

// As it is drawn when nothing is moved, chosen or pointed at.
export function plainView(tree: ViewTree, zoom: number): FlameView {
  return {
    tree, funcs: state.down.value?.funcs ?? [], order: state.order.value, zoom, pan: 0, scale: 1, scrollRow: 0, upsideDown: state.flameUp.value, selected: 0, hovered: -1, matches: state.matches.value,
    scheme: state.scheme.value, dark: state.isDark.value, isNoise: tree.base.length ? (n) => isNoise(tree.total[n], tree.base[n], state.noise.value) : undefined,
  };
}
