// Where the profiles come from: embedded in this file, or from the cprof that serves the page.
import { BadPayload, Payload, unpack } from "./model/payload";
import { Profile } from "./model/profile";
import { formatValue } from "./model/units";
import { ask } from "./server";
import * as state from "./state";
import { S } from "./strings";

function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (t: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text), out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

async function decode(bytes: Uint8Array, name: string, served = 0): Promise<Profile> {
  return new Profile(new Payload(await unpack(bytes)), name, served);
}

export async function boot(): Promise<void> {
  const embedded = [...document.querySelectorAll<HTMLScriptElement>("script.cprof-data")];
  try {
    if (embedded.length) {
      const list: Profile[] = [];
      for (const script of embedded) {
        state.loading.value = { name: script.dataset.name ?? "", phase: "Unpacking", bytes: script.textContent!.length };
        list.push(await decode(fromBase64(script.textContent!.trim()), script.dataset.name ?? "profile"));
      }
      state.profiles.value = list;
    } else if (location.protocol.startsWith("http")) {
      state.hasServer.value = true;
      await loadFromServer();
    }
  } catch (error) {
    const text = error instanceof BadPayload ? error.message : String(error instanceof Error ? error.message : error);
    state.problem.value = { title: "The profile cannot be shown", text };
  }
  state.loading.value = null;
}

const MOST_BYTES = 2 * 1024 ** 3;  // ServerOptions::max_upload_bytes

interface ServedFile { name: string; error?: string }

async function loadFromServer(): Promise<void> {
  const answer = await ask("api/files");
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  const files = (await answer.json()) as ServedFile[];
  const list: Profile[] = [];
  for (let i = 0; i < files.length; i++) {
    state.loading.value = { name: files[i].name, phase: "Reading", bytes: 0 };
    list.push(await fetchProfile(i, files[i].name));
  }
  state.profiles.value = list;
}

async function fetchProfile(index: number, name: string, signal?: AbortSignal): Promise<Profile> {
  const answer = await ask(`api/profile?f=${index}`, { signal });
  if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`);
  return decode(new Uint8Array(await answer.arrayBuffer()), name, index);
}

interface Wanted { path: string; name: string; body?: File; isBase?: boolean }

async function addFromServer({ path, name, body, isBase }: Wanted): Promise<void> {
  const control = new AbortController(), signal = control.signal, show = (phase: string) => { state.loading.value = { name, phase, bytes: body?.size ?? 0, cancel: () => control.abort() }; };
  try {
    if (body && body.size > MOST_BYTES) throw new Error(`It has ${formatValue(body.size, "bytes")}, more than the ${formatValue(MOST_BYTES, "bytes")} that a page may send. From the disk it is read by: cprof view ${name}`);
    show("Reading");
    const answer = await ask(path, { method: "POST", body, signal });
    if (!answer.ok) throw new Error(await answer.text());
    const { index } = (await answer.json()) as { index: number };
    show("Building");
    state.profiles.value = [...state.profiles.value, await fetchProfile(index, name, signal)];
    if (isBase) state.base.value = state.profiles.value.length - 1; else state.showFile(state.profiles.value.length - 1);
    state.problem.value = null;
  } catch (error) {
    const isGone = error instanceof TypeError;  // no answer at all
    if (!signal.aborted) state.problem.value = { title: `${name} cannot be opened`, text: isGone ? S.noAnswer : error instanceof Error ? error.message : String(error) };
  }
  state.loading.value = null;
}

// A dropped or chosen file is read by cprof, which knows every format; one after the other, so that they keep their order.
let opening = Promise.resolve();
const open = (wanted: Wanted) => (opening = opening.then(() => addFromServer(wanted)));

export function openFile(dropped: File, isBase = false): Promise<void> {
  if (!state.hasServer.value) {
    state.problem.value = { title: "This page is one profile", text: `Another one is opened by: cprof view ${dropped.name}` };
    return Promise.resolve();
  }
  return open({ path: `api/open?name=${encodeURIComponent(dropped.name)}`, name: dropped.name, body: dropped, isBase });
}

export const openSample = () => open({ path: "api/sample", name: "sample" });
export const openRecent = (path: string) => open({ path: `api/recent?path=${encodeURIComponent(path)}`, name: path });

// Asks for files as the browser does; onto what is shown, or beside it as its base.
export function chooseFile(isBase: boolean) {
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = !isBase;
  input.onchange = () => { for (const f of input.files ?? []) void openFile(f, isBase); };
  input.click();
}
