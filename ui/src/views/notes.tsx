import { useRef, useState } from "preact/hooks";
import type { Warning } from "../model/payload";
import type { Profile } from "../model/profile";
import { count, percent } from "../model/units";
import { Popover } from "./popover";

export interface Note { title: string; text: string; isDetail?: boolean }

const INFO = 0;  // severity of what is only good to know

// "frames without a name: no symbol covers them; install its debug package": what is the case; what to do about it.
function noteOf(w: Warning): Note {
  const at = w.text.indexOf("; "), what = at < 0 ? w.text : w.text.slice(0, at), mend = at < 0 ? "" : w.text.slice(at + 2);
  const text = [mend && `${capital(mend)}.`, w.example && `First: ${w.example.slice(0, 300)}`].filter(Boolean).join(" ");
  return { title: `${capital(what)}${w.count > 1 ? ` (${count(w.count)})` : ""}`, text, isDetail: w.severity === INFO };
}
// Words, not names of things such as cpu-clock.
const capital = (text: string) => (/^[a-z]+[ ,:;]/.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text);

// What a reader of this profile must know, in plain words with the mend.
export function notesOf(p: Profile): Note[] {
  const m = p.meta, notes: Note[] = [];
  for (const reason of m.incomplete_by_reason)
    notes.push({ title: `${percent(reason.count, m.unwound || m.samples)} of the stacks do not reach their root (${reason.name})`, text: `${capital(reason.text)}.` });
  if (m.frames && m.unnamed_frames / m.frames > 0.005)
    notes.push({ title: `${percent(m.unnamed_frames, m.frames)} of the frames have no name`, text: "Their files have no symbols here: install debug symbols, or name the recording with cprof symbolize." });
  for (const w of [...m.warnings].sort((a, b) => b.severity - a.severity)) notes.push(noteOf(w));
  if (m.pruned_nodes) notes.push({ title: `${count(m.pruned_nodes)} of the lightest frames are taken together as (pruned)`, text: "cprof view FILE shows all of them." });
  if (!m.has_rows) notes.push({ title: "Single samples are left out: no timeline, no filter by thread or time", text: "cprof view FILE shows them." });
  return notes;
}

export function Notes({ p }: { p: Profile }) {
  const [open, setOpen] = useState(false), anchor = useRef<HTMLButtonElement>(null), all = notesOf(p), notes = all.filter((n) => !n.isDetail), details = all.filter((n) => n.isDetail);
  if (all.length === 0) return null;
  const list = (some: Note[]) => <ul>{some.map((n) => <li><strong>{n.title}</strong>{n.text && <div class="muted">{n.text}</div>}</li>)}</ul>;
  return (
    <>
      <button class={notes.length ? "notes" : ""} ref={anchor} aria-expanded={open} onClick={() => setOpen(!open)}>{notes.length ? `${notes.length} note${notes.length > 1 ? "s" : ""}` : "About"}</button>
      {open && <Popover anchor={anchor.current} onClose={() => setOpen(false)} label="Notes">
        {notes.length > 0 && list(notes)}
        {details.length > 0 && <details open={notes.length === 0}><summary>{details.length} detail{details.length > 1 ? "s" : ""} of how it was recorded</summary>{list(details)}</details>}
      </Popover>}
    </>
  );
}
