// Settings of a question: their form, and the requests that they make. What is left at its default is not sent.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Choice } from "./parts.js";
import { go } from "./state.js";

export const STRATEGIES = ["cento", "flat", "mmr", "adaptive", "bubble", "rse", "rse-kadane", "rse-exact", "window", "parent", "automerge", "seal"];
export const MODES = ["hybrid", "dense", "lexical"];
export const FUSIONS = ["adaptive", "convex", "rrf"];
export const LINKS = ["named", "authored", "all", "none"];
export const ORDERS = ["document", "score", "edges"];
const FORMATS = ["md", "xml", "json"];

/** What the server does where nothing is said. */
export const DEFAULTS = {
  budget: "2000", strategy: "cento", mode: "hybrid", fusion: "adaptive", k: "10", links: "named", order: "document", format: "md",
};

/** Settings that go into requests, those of contexts alone last. */
const OF_SEARCH = ["mode", "fusion", "links", "filter", "candidates"];
const OF_CONTEXT = ["budget", "strategy", "order", "format", "policy"];

/** The fields of a search, and of a context. */
export const IN_SEARCH = ["k", "mode", "fusion", "filter"];
const IN_CONTEXT = ["budget", "strategy", "mode", "fusion", "filter", "links", "policy"];

const numeric = (text) => (/^\d+$/.test(text) ? Number(text) : text);

/** A policy of a state: an object, or an error in words. */
export function policy(state) {
  if (!state.policy) return { value: {} };
  try {
    const value = JSON.parse(state.policy);
    if (value && typeof value === "object" && !Array.isArray(value)) return { value };
  } catch (error) {
    return { value: {}, error: `The policy is not JSON: ${error.message}` };
  }
  return { value: {}, error: "The policy is no JSON object." };
}

function chosen(state, names) {
  const said = names.filter((name) => state[name] && state[name] !== DEFAULTS[name]);
  return Object.fromEntries(said.map((name) => [name, name === "policy" ? policy(state).value : name === "filter" ? state[name] : numeric(state[name])]));
}

/** The body of `/v1/context`. */
export const contextRequest = (state) => ({ query: state.q ?? "", ...chosen(state, [...OF_SEARCH, ...OF_CONTEXT]) });

/** The body of `/v1/search`. */
export const searchRequest = (state) => ({ query: state.q ?? "", ...chosen(state, [...OF_SEARCH, "k"]) });

/** The settings of a state, to carry them to another view. */
export function carried(state) {
  const names = ["c", "q", "k", ...OF_SEARCH, ...OF_CONTEXT];
  return Object.fromEntries(names.filter((name) => state[name]).map((name) => [name, state[name]]));
}

/** A state with what a form says, defaults left out. */
export function said(state, form) {
  const next = { ...state, ...form };
  for (const [name, value] of Object.entries(DEFAULTS)) if (next[name] === value) delete next[name];
  return next;
}

/** The form of a question; `fields` are the settings beside it. `live`: each is taken at once. */
export function Settings({ state, collections, fields = IN_CONTEXT, button = "Ask", live, children, extra = {} }) {
  const [form, set] = useState({});
  const here = JSON.stringify(state);
  useEffect(() => set({}), [here]);
  const value = (name) => form[name] ?? state[name] ?? DEFAULTS[name] ?? "";
  const change = (name) => (next) => set((before) => ({ ...before, [name]: next }));
  const typed = (name) => (event) => change(name)(event.target.value);
  const submit = (event) => {
    event.preventDefault();
    go(said(state, { ...form, ...extra }));
  };
  const soon = ({ currentTarget: form }) => setTimeout(() => form.requestSubmit());
  const choice = (name, label, options) =>
    fields.includes(name) && html`<${Choice} label=${label} name=${name} options=${options} value=${value(name)} onChange=${change(name)} />`;
  const told = policy({ policy: value("policy") }).error;
  return html`<form class="settings" role="search" onSubmit=${submit} onChange=${live && soon}>
    <div class="question">
      <label class="grow">Question <input name="q" id="question" type="search" dir="auto" autocomplete="off" required=${!live} value=${value("q")} onInput=${typed("q")} /></label>
      <button class="main">${button}</button>
    </div>
    ${children}
    <div class="fields">
      ${collections?.length > 1 && html`<${Choice} label="Collection" name="c" value=${value("c") || collections[0]} options=${collections} onChange=${change("c")} />`}
      ${fields.includes("budget") && html`<label>Budget <input name="budget" inputmode="numeric" pattern="[0-9]+|auto(:[0-9]+)?" title="A number of tokens, auto, or auto:N"
        size="9" value=${value("budget")} onInput=${typed("budget")} /></label>`}
      ${choice("strategy", "Strategy", STRATEGIES)}
      ${choice("mode", "Search by", [{ value: "hybrid", label: "vectors and words" }, { value: "dense", label: "vectors" }, { value: "lexical", label: "words" }])}
      ${choice("fusion", "Fusion", FUSIONS)}
      ${fields.includes("k") && html`<label>Results <input name="k" type="number" min="1" max="1000" value=${value("k")} onInput=${typed("k")} /></label>`}
      ${fields.includes("filter") && html`<label class="grow">Filter <input name="filter" placeholder=${'type = "markdown" and year >= 2020'} value=${value("filter")} onInput=${typed("filter")} /></label>`}
    </div>
    ${fields.includes("policy") && html`<details open=${Boolean(told) || undefined}><summary>More settings</summary><div class="fields">
      ${fields.includes("links") && html`<${Choice} label="Links that lift" name="links" options=${LINKS} value=${value("links")} onChange=${change("links")} />`}
      <${Choice} label="Order" name="order" options=${ORDERS} value=${value("order")} onChange=${change("order")} />
      <${Choice} label="Format" name="format" options=${FORMATS} value=${value("format")} onChange=${change("format")} />
      <label>Candidates <input name="candidates" inputmode="numeric" pattern="[0-9]*" size="7" placeholder="1000" value=${value("candidates")} onInput=${typed("candidates")} /></label>
      <label class="grow">Policy, as JSON <input name="policy" spellcheck="false" placeholder=${'{"delta": 0.5, "rho": {"*": 0.3}}'} value=${value("policy")}
        aria-invalid=${Boolean(told)} onInput=${typed("policy")} /></label>
      ${told && html`<p class="wrong" role="alert">${told}</p>`}
    </div></details>`}
  </form>`;
}
