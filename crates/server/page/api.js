// The routes of the server, as any client asks them.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { written } from "./state.js";

const KEY = "cento.key";

/** The key of this tab; it goes with the tab. */
export const key = {
  get: () => {
    try {
      return sessionStorage.getItem(KEY) ?? "";
    } catch {
      return ""; // a browser that keeps nothing for pages
    }
  },
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** A request that has no answer, and why. */
export class Refused extends Error {
  constructor(status, { code, message, parameter, hint }) {
    super(message);
    Object.assign(this, { status, code, parameter, hint });
  }
}

const GONE = {
  code: "unreachable",
  message: "The server does not answer.",
  hint: "It may have been stopped, or the way to it is cut. Once it runs again, ask again: nothing here is lost.",
};
const TORN = { code: "torn", message: "The answer broke off, or is none of Cento's." };

/** Tells whoever listens of answers: `generation` of a collection. */
export const heard = new EventTarget();

/** An address with its parameters. */
export const route = (path, parameters = {}) => path + written(parameters);

/** Asks a route: `{ data, ms, stages }`, the stages in milliseconds where the server says them. */
export async function ask(path, body, { signal, collection, accept, parameters, method = body === undefined ? "GET" : "POST" } = {}) {
  const headers = {};
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (accept) headers.accept = accept;
  const began = performance.now();
  let response, text;
  try {
    const to = body === undefined ? path : route(path, { collection, ...parameters }); // a GET has it in its path
    response = await fetch(to, { method, headers, body: body && JSON.stringify(body), signal, credentials: "omit" });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, GONE);
  }
  const ms = performance.now() - began;
  const told = read(text, response.ok && accept);
  if (!response.ok) throw new Refused(response.status, told?.error ?? { ...TORN, message: `${TORN.message} (${response.status})` });
  if (told === undefined) throw new Refused(response.status, TORN);
  if (told.generation) heard.dispatchEvent(new CustomEvent("generation", { detail: { collection, is: told.generation } }));
  return { data: told, ms, stages: stages(response.headers.get("server-timing")) };
}

function read(text, asText) {
  if (asText) return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function stages(header) {
  const parts = (header ?? "").split(",").map((part) => /^\s*([a-z]+);dur=([\d.]+)/.exec(part));
  return parts.filter(Boolean).map(([, stage, ms]) => ({ stage, ms: Number(ms) }));
}

/** What a route answers, unless it is not `wanted`; asked anew when anything here changes. */
export function useRoute(path, body, of) {
  const { wanted, again, ...how } = { wanted: true, ...of };
  return useAnswer(wanted && JSON.stringify([path, body, again, how]), (signal) => ask(path, body, { signal, ...how }));
}

/**
 * What `work(signal)` comes to, made anew when `of` changes; work that is outdated is ended. While it is made, what was
 * there before stays. `of` empty: nothing is asked.
 */
export function useAnswer(of, work) {
  const [now, set] = useState({ busy: Boolean(of) });
  const turn = useRef(0);
  const [again, repeat] = useState(0);
  useEffect(() => {
    const mine = ++turn.current;
    if (!of) return void set({ busy: false });
    const stop = new AbortController();
    set((before) => ({ ...before, busy: true }));
    work(stop.signal).then(
      (answer) => mine === turn.current && set({ busy: false, answer, of }),
      (error) => {
        if (error.name === "AbortError" || mine !== turn.current) return;
        if (!(error instanceof Refused)) console.error(error);
        set({ busy: false, error });
      },
    );
    return () => stop.abort();
  }, [of, again]);
  return { ...now, again: () => repeat((n) => n + 1) };
}
