// Names on canvases. Control characters and directional marks would change how the rest is drawn.
export function drawable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·");
}

// Where a function's arguments begin; the parentheses of "(anonymous namespace)" and "operator()" are none. -1: nowhere.
function argumentsAt(text: string): number {
  for (let at = text.indexOf("("); at >= 0; at = text.indexOf("(", at + 1))
    if (at > 0 && !text.startsWith("(anonymous", at) && text.slice(at - 8, at) !== "operator" && text[at - 1] !== ":") return at;
  return -1;
}

// Cuts names to the room there is. One font each, which is the context's; how wide its characters are is measured once: to measure
// every name in every picture costs more than to draw it.
export class Fitter {
  private readonly ascii = new Float32Array(128).fill(-1);
  private readonly others = new Map<number, number>();

  // As much of a name as fits into `room` px: arguments go first, then the end; "": too little to be of use.
  fit(ctx: CanvasRenderingContext2D, name: string, room: number): string {
    const text = drawable(name.length > 400 ? `${name.slice(0, 300)}…${name.slice(-60)}` : name), mark = this.widthOf(ctx, 0x2026);
    let width = 0, chars = 0;  // chars: what fits with a mark of what is left out behind it
    for (let i = 0; i < text.length; i++) {
      width += this.widthOf(ctx, text.charCodeAt(i));
      if (width + mark <= room) chars = i + 1;
      if (width <= room) continue;
      const list = argumentsAt(text), end = list > 0 && list <= chars ? list : chars;
      return end < 2 ? "" : `${text.slice(0, end)}…`;
    }
    return text;
  }

  private widthOf(ctx: CanvasRenderingContext2D, code: number): number {
    if (code < 128) return this.ascii[code] >= 0 ? this.ascii[code] : (this.ascii[code] = ctx.measureText(String.fromCharCode(code)).width);
    let w = this.others.get(code);
    if (w === undefined) this.others.set(code, (w = ctx.measureText(String.fromCharCode(code)).width));
    return w;
  }
}
