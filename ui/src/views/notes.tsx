import { useRef, useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import { count, percent } from "../model/units";
import { Popover } from "./popover";

export interface Note { title: string; text: string }

// What a reader of this profile must know, in plain words with the mend.
export function notesOf(p: Profile): Note[] {
  const m = p.meta, notes: Note[] = [];
  for (const reason of m.incomplete_by_reason)
    notes.push({ title: `${percent(reason.count, m.unwound || m.samples)} of the stacks do not reach their root (${reason.name})`, text: reason.text });
  if (m.frames && m.unnamed_frames / m.frames > 0.005)
    notes.push({ title: `${percent(m.unnamed_frames, m.frames)} of the frames have no name`, text: "Their files have no symbols here: install debug symbols, or name the recording with cprof symbolize." });
  for (const w of m.warnings) notes.push({ title: `${w.text}${w.count > 1 ? ` (${count(w.count)})` : ""}`, text: w.example ? `First: ${w.example}` : "" });
  if (m.pruned_nodes) notes.push({ title: `${count(m.pruned_nodes)} of the lightest frames are taken together as (pruned)`, text: "cprof view FILE shows all of them." });
  if (!m.has_rows) notes.push({ title: "Single samples are left out: no timeline, no filter by thread or time", text: "cprof view FILE shows them." });
  return notes;
}

export function Notes({ p }: { p: Profile }) {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null), notes = notesOf(p);
  if (notes.length === 0) return null;
  return (
    <>
      <button class="notes" ref={anchor} aria-expanded={open} onClick={() => setOpen(!open)}>{notes.length} note{notes.length > 1 ? "s" : ""}</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Notes">
        <ul>{notes.map((n) => <li><strong>{n.title}</strong>{n.text && <div class="muted">{n.text}</div>}</li>)}</ul>
      </Popover>}
    </>
  );
}
