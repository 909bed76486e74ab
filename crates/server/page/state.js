// The state of the page is its address: `#/VIEW?name=value&…`. Nothing else is remembered, so that a link is a state.
//
// It stands behind `#`, which browsers send to nobody: questions are in no log of a server or a proxy.

import { useEffect, useState } from "./vendor/htm-preact.js";

const FIRST = "ask";

/** The state that an address says: `view`, and every parameter as a string. */
export function read(hash) {
  const [, view, parameters] = /^#\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  return { ...Object.fromEntries(new URLSearchParams(parameters ?? "")), view: view || FIRST };
}

/** Parameters as an address has them, those that are empty left out. */
export function written(parameters) {
  const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => (value ?? "") !== "")).toString();
  return text && `?${text}`;
}

/** The address of a state. */
export function address({ view, ...parameters }) {
  return `#/${view ?? FIRST}${written(parameters)}`;
}

const changed = new EventTarget();

/** Goes to a state: a step of its own for the back button, unless it only adjusts the one before. */
export function go(state, how = "step") {
  const to = address(state);
  if (to === location.hash) return changed.dispatchEvent(new Event("again"));
  if (how === "adjust") {
    history.replaceState(null, "", to);
    changed.dispatchEvent(new Event("moved"));
  } else {
    location.hash = to;
  }
}

/** Calls `hear` of events while a part is shown; anew where `of` changes. */
export const useHeard = (target, name, hear, of = []) =>
  useEffect(() => {
    target.addEventListener(name, hear);
    return () => target.removeEventListener(name, hear);
  }, of);

/** The state of the address; `again` counts how often the same one was asked for. */
export function useAddress() {
  const [now, set] = useState({ state: read(location.hash), again: 0 });
  const move = () => set((before) => ({ ...before, state: read(location.hash) }));
  useHeard(window, "hashchange", move);
  useHeard(changed, "moved", move);
  useHeard(changed, "again", () => set((before) => ({ ...before, again: before.again + 1 })));
  return now;
}
