// FlameScope's picture: a column for every second, from bottom to top its thousandths, darker where more samples fell.
import type { Profile } from "../model/profile";

export const HEAT_ROWS = 50;

export interface Heat { columns: number; cells: Float32Array; most: number; step: number }

export function heatOf(p: Profile, value: (row: number) => number): Heat {
  const second = 1e9, columns = Math.max(1, Math.ceil(p.duration / second)), cells = new Float32Array(columns * HEAT_ROWS);
  let most = 0;
  for (let i = 0; i < p.rows.size; i++) {
    const t = p.rows.time[i];
    if (t === 0) continue;
    const cell = Math.min(columns - 1, Math.floor(t / second)) * HEAT_ROWS + Math.min(HEAT_ROWS - 1, Math.floor(((t % second) / second) * HEAT_ROWS));
    most = Math.max(most, (cells[cell] += Math.abs(value(i))));
  }
  return { columns, cells, most, step: second / HEAT_ROWS };
}

export function drawHeat(ctx: CanvasRenderingContext2D, width: number, height: number, heat: Heat, brush: [number, number] | null, dark: boolean) {
  ctx.clearRect(0, 0, width, height);
  const w = width / heat.columns, h = height / HEAT_ROWS;
  for (let c = 0; c < heat.columns; c++)
    for (let r = 0; r < HEAT_ROWS; r++) {
      const share = heat.most ? heat.cells[c * HEAT_ROWS + r] / heat.most : 0;
      if (share > 0) {
        ctx.fillStyle = dark ? `hsl(28 80% ${14 + 50 * share}%)` : `hsl(28 85% ${94 - 52 * share}%)`;
        ctx.fillRect(c * w, height - (r + 1) * h, Math.max(1, w - (w > 4 ? 1 : 0)), Math.max(1, h - (h > 4 ? 0.5 : 0)));
      }
      const at = c * 1e9 + r * heat.step;
      if (!brush || at + heat.step <= brush[0] || at >= brush[1]) continue;
      ctx.fillStyle = dark ? "rgba(124,183,255,.35)" : "rgba(11,98,196,.22)";
      ctx.fillRect(c * w, height - (r + 1) * h, w, h);
    }
}
