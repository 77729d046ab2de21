// The cprof that serves the page: every request to it goes through here, so that the page knows when it is gone.
import { signal } from "@preact/signals";

export const isGone = signal(false);
export const returned = signal(0);  // how often it came back: what could not be asked for then is asked for again

export async function ask(path: string, options?: RequestInit): Promise<Response> {
  try {
    const answer = await fetch(path, options);
    isGone.value = false;
    return answer;
  } catch (error) {
    if (!options?.signal?.aborted) isGone.value = true;
    throw error;
  }
}

// "here": it answers again. "another": something does at its address, but not this cprof.
export async function retry(): Promise<"here" | "gone" | "another"> {
  try {
    const answer = await fetch("api/files");
    if (!answer.ok) return "another";
    isGone.value = false;
    returned.value++;
    return "here";
  } catch {
    return "gone";
  }
}
