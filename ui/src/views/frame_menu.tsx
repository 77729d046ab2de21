import { exactly } from "../ops/filters";
import * as state from "../state";
import { Popover } from "./popover";

interface Props { name: string; path: string[]; x: number; y: number; onClose: () => void }

export function copy(text: string) { void navigator.clipboard?.writeText(text).catch(() => undefined); }

export function FrameMenu({ name, path, x, y, onClose }: Props) {
  const item = (title: string, help: string, act: () => void) => <button role="menuitem" onClick={() => { act(); onClose(); }}>{title} <span class="muted">{help}</span></button>;
  return (
    <Popover anchor={{ x, y }} onClose={onClose} label={name} menu>
      {item("Focus", "pprof: focus", () => state.addFilter("focus", exactly(name)))}
      {item("Ignore", "pprof: ignore", () => state.addFilter("ignore", exactly(name)))}
      {item("Hide", "pprof: hide", () => state.addFilter("hide", exactly(name)))}
      {item("Show from here", "pprof: show_from", () => state.addFilter("show-from", exactly(name)))}
      {item("Sandwich", "callers and callees", () => state.showSandwich(name))}
      {item("Source", "", () => showSource(name))}
      {item("Find all", "", () => { state.query.value = name; })}
      {item("Copy name", "c", () => copy(name))}
      {item("Copy stack", "C", () => copy(path.join(";")))}
    </Popover>
  );
}

export function showSource(name: string) {
  const at = state.profile.value!.funcs.findIndex((f) => f.name === name);
  state.sourceFunc.value = at < 0 ? null : at;
  state.tab.value = "source";
}
