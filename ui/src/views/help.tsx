const KEYS: [string, string][] = [
  ["/", "search"], ["n  N", "next, previous match"], ["Esc", "one step back"], ["← ↑ → ↓", "move: sibling, caller, sibling, heaviest callee"],
  ["Enter", "zoom to the selection"], ["u  Backspace", "zoom out one"], ["0  Home", "show all"], ["1 – 5", "Flame, Table, Timeline, Source, SQL"],
  ["b", "from the leaves (Up)"], ["x", "sandwich of the selection"], ["o", "order of children"], ["m  M", "next, previous metric"],
  ["f  g  h", "focus, ignore, hide the selection"], ["r", "join recursion"], ["s", "source of the selection"], ["c  C", "copy name, copy stack"],
  ["[  ]", "previous, next thread"], ["+  −", "zoom in, out"], ["Shift ← →", "move along"], ["d  e", "diff with, export"], ["i", "details"], ["t", "theme"], ["?", "this help"],
];

export function Help() {
  return (
    <dialog id="help" aria-label="Keyboard help">
      <h2>Keyboard</h2>
      <div class="keys">{KEYS.map(([key, what]) => <><kbd>{key}</kbd><span>{what}</span></>)}</div>
      <p class="muted">Wheel scrolls, Ctrl and wheel zooms at the pointer, drag moves, right click or a long press is the menu.</p>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
