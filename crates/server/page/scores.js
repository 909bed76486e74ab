// Scores that add up: each passage's score as a bar of what each arm contributed, with the formula and its numbers.

import { html } from "./vendor/htm-preact.js";
import { useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Part, Table, Text, Times, To, Warnings, documentState, number } from "./parts.js";
import { IN_SEARCH, Settings, carried, policy, searchRequest } from "./settings.js";

/** Constants that an answer does not repeat; a formula is shown only where it gives the number. */
const RRF_K = 60;
const [K1, B] = [0.9, 0.4];

const same = (one, other) => Math.abs(one - other) <= 1e-9 * Math.max(1, Math.abs(other));

export const ARMS = { dense: "vectors", lexical: "words", named: "named by", linked: "linked from", rerank: "reranker" };

export function Scores(of) {
  const { state, collections, collection, again } = of;
  const request = { ...searchRequest(state), explain: true };
  const asked = useRoute("/v1/search", request, { collection, again, wanted: state.q && !policy(state).error });
  return html`
    <${Settings} state=${state} collections=${collections} fields=${IN_SEARCH} button="Rank" />
    <${Asked} of=${asked} />
    ${asked.answer && state.q && html`<${Ranking} answer=${asked.answer} ...${of} request=${request} />`}
    ${!state.q && html`<p class="hint">Ask a question to see why passages stand where they stand: the parts of each bar add up to its score.</p>`}`;
}

function Ranking({ answer, state, request, collection, collections }) {
  const { data } = answer;
  const arms = [...new Set(data.hits.flatMap(({ contributions }) => contributions.map(({ arm }) => arm)))];
  const most = Math.max(...data.hits.map(({ score }) => Math.abs(score)), 1e-12);
  return html`<${Part} id="ranking" title=${`${number(data.hits.length)} passages`} note=${html`${data.mode}${data.fusion ? `, fused by ${data.fusion}` : ""}, vectors scanned: ${data.scanned}`}>
    <${Warnings} list=${data.warnings} />
    ${data.hits.length === 0 && html`<p>Nothing was found. A filter may keep everything out, or no word of the question is in the collection.</p>`}
    <p class="legend" aria-hidden="true">${arms.map((arm) => html`<span><i class=${`swatch ${arm}`}></i>${ARMS[arm] ?? arm}</span>`)}</p>
    <ol class="hits">${data.hits.map((hit) => html`<${Hit} key=${hit.id} hit=${hit} most=${most} fusion=${data.fusion} state=${state} />`)}</ol>
    ${arms.includes("dense") && arms.includes("lexical") && html`<${Slopes} hits=${data.hits} />`}
    <${Times} answer=${answer} />
    <${Copies} of=${[collection, collections]}
      what=${{ path: "/v1/search", body: request, cli: { verb: "search" } }} />
  </>`;
}

/** What a part of a score is, in numbers. */
function formula(part, fusion) {
  const { arm, rank, raw, normalized, weight, contribution } = part;
  const of = ARMS[arm] ?? arm;
  if (rank === null) return `${of}: not found there`;
  const told = [`rank ${number(rank)}`, `raw ${number(raw)}`].join(", ");
  if (fusion === "rrf" && same(weight / (RRF_K + rank), contribution))
    return `${of}: ${number(weight)} / (${RRF_K} + ${rank}) = ${number(contribution)} (${told})`;
  if (normalized !== null && same(weight * normalized, contribution))
    return `${of}: weight ${number(weight)} × normalised ${number(normalized)} = ${number(contribution)} (${told})`;
  return `${of}: ${number(contribution)} (${told})`;
}

function Hit({ hit, most, fusion, state }) {
  const { contributions, score } = hit;
  const sum = contributions.reduce((all, { contribution }) => all + contribution, 0);
  return html`<li value=${hit.rank} class="hit">
    <div class="head"><${To} state=${documentState(state, hit)}><${Text}>${hit.title || hit.document}</></>
      <span class="score" data-score=${score}>${number(score)}${hit.likelihood !== undefined && html` <small>likelihood ${number(hit.likelihood)}</small>`}</span></div>
    <ul class="bar" aria-label="Parts of the score" style=${{ width: `${(100 * Math.abs(score)) / most}%` }}>
      ${contributions.map((part) => html`<li class=${`part ${part.arm}`} style=${{ flexGrow: Math.abs(part.contribution) }} data-part=${part.contribution}
        title=${formula(part, fusion)}><span class="hidden">${formula(part, fusion)}</span></li>`)}
    </ul>
    ${!same(sum, score) && html`<p class="wrong">The parts come to ${number(sum)}.</p>`}
    <p class="sum small">${contributions.map(({ contribution }) => number(contribution)).join(" + ")} = ${number(score)}</p>
    <details><summary>${hit.id.slice(hit.id.lastIndexOf("#"))} · ${hit.anchor || "bytes " + hit.span.join("–")} · how it comes to that</summary>
      <ul class="formulas">${contributions.map((part) => html`<li>${formula(part, fusion)}</li>`)}
        ${hit.named_by && html`<li>lifted by <${Text}>${JSON.stringify(hit.named_by)}</></li>`}</ul>
      ${hit.lexical && html`<${Terms} of=${hit.lexical} />`}
      <p class="passage"><${Text}>${hit.text}</></p>
      <p><${To} state=${{ ...carried(state), view: "lost", id: hit.id }}>Its way into a context</></p></details>
  </li>`;
}

/** BM25 of a passage, term by term. */
export function Terms({ of }) {
  const gives = ({ idf, tf, length, average_length: average, n_occurrences: n }) => n * idf * (tf / (tf + K1 * (1 - B + (B * length) / average)) || 0);
  return html`<${Table} label="Words of the question" caption=${`BM25 by word; together ${number(of.score)}`} heads="word, passages with it, idf, times here, length / mean, contributes"
    rows=${of.terms.map((term) => [html`<${Text}>${term.term}</>`, `${number(term.df)} of ${number(term.n)}`, number(term.idf), number(term.tf), `${number(term.length)} / ${number(term.average_length)}`,
      html`<span title=${same(gives(term), term.contribution) ? `${number(term.idf)} × ${number(term.tf)} / (${number(term.tf)} + ${K1} × (1 − ${B} + ${B} × ${number(term.length)} / ${number(term.average_length)}))` : ""}>${number(term.contribution)}</span>`])} />`;
}

/** Places among vectors, fused, and among words, a line for each passage. */
function Slopes({ hits }) {
  const place = (hit, arm) => hit.contributions.find((part) => part.arm === arm)?.rank;
  const ranks = hits.map((hit) => [place(hit, "dense"), hit.rank, place(hit, "lexical")]);
  const most = Math.max(...ranks.flat().filter(Boolean), 2);
  const y = (rank) => 24 + (Math.log(rank) / Math.log(most)) * 250;
  const x = [150, 360, 570];
  return html`<figure class="slopes"><figcaption>Places among vectors, together, and among words</figcaption>
    <svg viewBox="0 0 720 290" role="img" aria-label=${ranks.map(([d, f, l]) => `place ${f}: vectors ${d ?? "none"}, words ${l ?? "none"}`).join("; ")}>
      ${["vectors", "together", "words"].map((name, n) => html`<text x=${x[n]} y="12" text-anchor="middle">${name}</text>`)}
      ${ranks.map(([dense, fused, lexical]) => html`<g>
        ${dense && html`<line x1=${x[0]} y1=${y(dense)} x2=${x[1]} y2=${y(fused)} class="dense" /><text x=${x[0] - 8} y=${y(dense) + 4} text-anchor="end">${dense}</text>`}
        ${lexical && html`<line x1=${x[1]} y1=${y(fused)} x2=${x[2]} y2=${y(lexical)} class="lexical" /><text x=${x[2] + 8} y=${y(lexical) + 4}>${lexical}</text>`}
        <circle cx=${x[1]} cy=${y(fused)} r="3" /></g>`)}
    </svg></figure>`;
}
