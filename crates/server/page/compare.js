// A | B: two ways to rank one question side by side: what moved, what is common, and arms weighed anew without asking.

import { html, useMemo, useState } from "./vendor/htm-preact.js";
import { ask, useAnswer } from "./api.js";
import { Copies } from "./copies.js";
import { Busy, Choice, Problem, Slider, Text, Times, To, documentState, number } from "./parts.js";
import { FUSIONS, MODES, Settings, searchRequest } from "./settings.js";
import { go } from "./state.js";

/** Passages among which arms are weighed anew. */
const DEEP = 200;

/** Settings of B that may differ from those of A; in the address they begin with `b_`. */
const OTHER = ["mode", "fusion", "links", "filter"];

export function Compare({ state, collections, collection, again }) {
  const k = Math.min(DEEP, Number(state.k) || 10);
  const a = { ...searchRequest(state), k: DEEP };
  const b = { ...searchRequest({ ...state, ...Object.fromEntries(OTHER.filter((name) => state[`b_${name}`]).map((name) => [name, state[`b_${name}`]])) }), k: DEEP };
  const weighed = state.w !== undefined;
  const get = (request) => (signal) => ask("/v1/search", request, { signal, collection });
  const left = useAnswer(state.q && `${collection}${again}${JSON.stringify(a)}`, get(a));
  const right = useAnswer(state.q && !weighed && `${collection}${again}${JSON.stringify(b)}`, get(b));
  const adjust = (changes) => go({ ...state, ...changes }, "adjust");
  const other = (name, label, options) => html`<${Choice} label=${label} name=${`b_${name}`} value=${state[`b_${name}`] ?? ""} options=${[{ value: "", label: "as A" }, ...options]} onChange=${(value) => adjust({ [`b_${name}`]: value, w: undefined })} />`;
  const error = left.error ?? (weighed ? undefined : right.error);
  const ready = left.answer && (weighed || right.answer) && state.q;
  return html`
    <${Settings} state=${state} collections=${collections} fields=${["k", "mode", "fusion", "filter"]} button="Compare" />
    <fieldset class="settings"><legend>B differs from A in</legend><div class="fields">
      ${other("mode", "Search by", MODES)}${other("fusion", "Fusion", FUSIONS)}${other("links", "Links", ["named", "authored", "all", "none"])}
      <label class="grow">Filter <input name="b_filter" value=${state.b_filter ?? ""} placeholder="as A" onChange=${(event) => adjust({ b_filter: event.target.value, w: undefined })} /></label>
      <${Slider} label="or: A's own candidates, weight of words" name="w" min="0" max="1" step="0.01" value=${state.w ?? 0.5} onInput=${(value) => adjust({ w: value })} />
      ${weighed && html`<button type="button" class="small" onClick=${() => adjust({ w: undefined })}>Retrieve for B again</button>`}
    </div></fieldset>
    <${Busy} on=${left.busy || right.busy} />
    <${Problem} error=${error} again=${() => (left.again(), right.again())} />
    ${ready && html`<${Both} a=${left.answer} b=${weighed ? undefined : right.answer} w=${Number(state.w)} k=${k} state=${state} />
      <${Copies} collection=${collections.length > 1 ? collection : undefined} what=${{ path: "/v1/search", body: weighed ? { ...a, k } : { ...b, k }, cli: { verb: "search", before: [a.query], body: weighed ? { ...a, k } : { ...b, k }, after: ["--json"] } }} />`}
    ${!state.q && html`<p class="hint">Ask a question, and say in what B differs.</p>`}`;
}

/** Hits in the order of their arms' normalised scores, weighed by hand. */
export function reweighed(hits, w) {
  const of = (hit, arm) => hit.contributions.find((part) => part.arm === arm)?.normalized ?? 0;
  const scored = hits.map((hit) => ({ ...hit, score: (1 - w) * of(hit, "dense") + w * of(hit, "lexical") }));
  scored.sort((one, other) => other.score - one.score || (one.id < other.id ? 1 : -1));
  return scored.map((hit, n) => ({ ...hit, rank: n + 1 }));
}

function Both({ a, b, w, k, state }) {
  const all = [a.data.hits, useMemo(() => b?.data.hits ?? reweighed(a.data.hits, w), [a, b, w])];
  const [ours, theirs] = all.map((hits) => new Map(hits.map(({ id, rank }) => [id, rank])));
  const tops = all.map((hits) => hits.slice(0, k));
  const common = tops[0].filter(({ id }) => theirs.get(id) <= k).length;
  const tau = kendall(tops[0].filter(({ id }) => theirs.has(id)).map(({ id }) => [ours.get(id), theirs.get(id)]));
  return html`<p class="common" data-test="common"><strong>${common} of ${Math.max(tops[0].length, tops[1].length)}</strong> passages are common${tau === undefined ? "" : `; order of A's in B: Kendall's τ ${tau.toFixed(2)}`}.
      ${!b && html` B is weighed among A's ${number(all[0].length)} best, on this page.`}</p>
    <div class="two">${tops.map((hits, n) => html`<section aria-label=${n ? "B" : "A"}><h2>${n ? "B" : "A"}</h2><ol class="ranked">
      ${hits.map((hit) => html`<li value=${hit.rank}><${To} state=${documentState(state, { ...hit, chunks: [hit.id] })}><${Text}>${hit.title || hit.document}</> <small>${hit.id.slice(hit.id.lastIndexOf("#"))}</small></>${" "}
        <${Move} from=${(n ? ours : theirs).get(hit.id)} to=${hit.rank} other=${n ? "A" : "B"} /> <small>${number(hit.score)}</small></li>`)}</ol></section>`)}</div>
    <${Times} answer=${b ?? a} />`;
}

function Move({ from, to, other }) {
  if (from === undefined) return html`<span class="move new">not in ${other}’s ${DEEP}</span>`;
  const by = from - to;
  const word = by === 0 ? "same place" : `${Math.abs(by)} ${by > 0 ? "higher" : "lower"} than in ${other}`;
  return html`<span class=${`move ${by > 0 ? "up" : by < 0 ? "down" : ""}`} title=${word}><span aria-hidden="true">${by === 0 ? "=" : `${by > 0 ? "▲" : "▼"}${Math.abs(by)}`}</span><span class="hidden">${word}</span></span>`;
}

/** Kendall's tau of pairs of places, from -1 to 1; nothing for fewer than two. */
export function kendall(pairs) {
  let sum = 0;
  for (let i = 0; i < pairs.length; i++) for (let j = 0; j < i; j++) sum += Math.sign((pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]));
  return pairs.length > 1 ? sum / ((pairs.length * (pairs.length - 1)) / 2) : undefined;
}
