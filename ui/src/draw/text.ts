// Names on canvases. Control characters and directional marks would change how the rest is drawn.
export function drawable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·");
}
