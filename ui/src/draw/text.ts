// Names on canvases. Control characters and directional marks would change how the rest is drawn.
export function drawable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·");
}

// How wide characters are, measured once a font: to measure every name in every picture costs more than to draw it.
const known = new Map<string, Map<number, number>>();

function widthsOf(ctx: CanvasRenderingContext2D): (code: number) => number {
  let widths = known.get(ctx.font);
  if (!widths) known.set(ctx.font, (widths = new Map()));
  return (code) => {
    let w = widths.get(code);
    if (w === undefined) widths.set(code, (w = ctx.measureText(String.fromCharCode(code)).width));
    return w;
  };
}

// Where a function's arguments begin; the parentheses of "(anonymous namespace)" and "operator()" are none. -1: nowhere.
function argumentsAt(text: string): number {
  for (let at = text.indexOf("("); at >= 0; at = text.indexOf("(", at + 1))
    if (at > 0 && !text.startsWith("(anonymous", at) && text.slice(at - 8, at) !== "operator" && text[at - 1] !== ":") return at;
  return -1;
}

// As much of a name as fits into `room` px: arguments go first, then the end; "": too little to be of use.
export function fitted(ctx: CanvasRenderingContext2D, name: string, room: number): string {
  const text = drawable(name.length > 400 ? `${name.slice(0, 300)}…${name.slice(-60)}` : name), widthOf = widthsOf(ctx), mark = widthOf(0x2026);
  let width = 0, chars = 0;  // chars: what fits with a mark of what is left out behind it
  for (let i = 0; i < text.length; i++) {
    width += widthOf(text.charCodeAt(i));
    if (width + mark <= room) chars = i + 1;
    if (width > room) {
      const list = argumentsAt(text), end = list > 0 && list <= chars ? list : chars;
      return end < 2 ? "" : `${text.slice(0, end)}…`;
    }
  }
  return text;
}
