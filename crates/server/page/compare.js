// A | B: two settings side by side: their rankings, arms weighed anew without asking, or their contexts.

import { html, useMemo } from "./vendor/htm-preact.js";
import { useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Busy, Choice, Meter, Problem, Slider, Text, Times, To, Warnings, documentState, number } from "./parts.js";
import { FUSIONS, IN_SEARCH, LINKS, MODES, ORDERS, STRATEGIES, Settings, contextRequest, policy, searchRequest } from "./settings.js";
import { go } from "./state.js";

/** Passages among which arms are weighed anew. */
const DEEP = 200;

/** Settings of B that may differ from those of A; in the address they begin with `b_`. */
const OF_SEARCH = ["mode", "fusion", "links", "filter"];
const OF_CONTEXT = [...OF_SEARCH, "budget", "strategy", "order", "policy"];

/** The state of B: that of A, but for what is said of B. */
const other = (state, names) => ({ ...state, ...Object.fromEntries(names.filter((name) => state[`b_${name}`]).map((name) => [name, state[`b_${name}`]])) });

export function Compare(of) {
  const { state } = of;
  const isContexts = state.of === "contexts";
  const tab = (name, label) => html`<${To} class="button small" state=${{ ...state, of: name }} aria-current=${(name === "contexts") === isContexts ? "true" : undefined}>${label}</>`;
  return html`<nav class="tabs" aria-label="What is compared">${tab("", "Rankings")}${tab("contexts", "Contexts")}</nav>
    ${isContexts ? html`<${Contexts} key="contexts" ...${of} />` : html`<${Rankings} key="rankings" ...${of} />`}
    ${!state.q && html`<p class="hint">Ask a question, and say in what B differs.</p>`}`;
}

/** The fields of B. */
function Differs({ state, adjust, children }) {
  const choice = (name, label, options) => html`<${Choice} label=${label} name=${`b_${name}`} value=${state[`b_${name}`] ?? ""} options=${[{ value: "", label: "as A" }, ...options]} onChange=${(value) => adjust({ [`b_${name}`]: value })} />`;
  const text = (name, label) => html`<label class="grow">${label} <input name=${`b_${name}`} value=${state[`b_${name}`] ?? ""} placeholder="as A" onChange=${(event) => adjust({ [`b_${name}`]: event.target.value })} /></label>`;
  return html`<fieldset class="settings"><legend>B differs from A in</legend><div class="fields">
    ${choice("mode", "Search by", MODES)}${choice("fusion", "Fusion", FUSIONS)}${choice("links", "Links", LINKS)}
    ${state.of && html`${choice("strategy", "Strategy", STRATEGIES)}${choice("order", "Order", ORDERS)}`}
    ${text("filter", "Filter")}${state.of && text("policy", "Policy, as JSON")}
    ${children}</div></fieldset>`;
}

function Rankings({ state, collections, collection, again }) {
  const k = Math.min(DEEP, Number(state.k) || 10);
  const a = { ...searchRequest(state), k: DEEP };
  const b = { ...searchRequest(other(state, OF_SEARCH)), k: DEEP };
  const weighed = state.w !== undefined;
  const left = useRoute("/v1/search", a, { collection, again, wanted: state.q });
  const right = useRoute("/v1/search", b, { collection, again, wanted: state.q && !weighed });
  const adjust = (changes) => go({ ...state, w: undefined, ...changes }, "adjust");
  const ready = left.answer && (weighed || right.answer) && state.q;
  return html`
    <${Settings} state=${state} collections=${collections} fields=${IN_SEARCH} button="Compare" />
    <${Differs} state=${state} adjust=${adjust}>
      <${Slider} label="or: A's own candidates, weight of words" name="w" min="0" max="1" step="0.01" value=${state.w ?? 0.5} onInput=${(value) => adjust({ w: value })} />
      ${weighed && html`<button type="button" class="small" onClick=${() => adjust({})}>Retrieve for B again</button>`}
    </>
    <${Busy} on=${left.busy || right.busy} />
    <${Problem} error=${left.error ?? (weighed ? undefined : right.error)} again=${() => (left.again(), right.again())} />
    ${ready && html`<${Both} a=${left.answer} b=${weighed ? undefined : right.answer} w=${Number(state.w)} k=${k} state=${state} />
      <${Copies} of=${[collection, collections]} what=${{ path: "/v1/search", body: { ...(weighed ? a : b), k }, cli: { verb: "search" } }} />`}`;
}

/** Hits in the order of their arms' normalised scores, weighed by hand. */
function reweighed(hits, w) {
  const of = (hit, arm) => hit.contributions.find((part) => part.arm === arm)?.normalized ?? 0;
  const scored = hits.map((hit) => ({ ...hit, score: (1 - w) * of(hit, "dense") + w * of(hit, "lexical") }));
  scored.sort((one, other) => other.score - one.score || (one.id < other.id ? 1 : -1));
  return scored.map((hit, n) => ({ ...hit, rank: n + 1 }));
}

function Both({ a, b, w, k, state }) {
  const all = [a.data.hits, useMemo(() => b?.data.hits ?? reweighed(a.data.hits, w), [a, b, w])];
  const ranks = all.map((hits) => new Map(hits.map(({ id, rank }) => [id, rank])));
  const tops = all.map((hits) => hits.slice(0, k));
  const common = tops[0].filter(({ id }) => ranks[1].get(id) <= k).length;
  return html`<p class="common" data-test="common"><strong>${common} of ${Math.max(tops[0].length, tops[1].length)}</strong> passages are common${order(tops[0].map(({ id }) => id), ...ranks)}.
      ${!b && html` B is weighed among A's ${number(all[0].length)} best, on this page.`}</p>
    <${Columns} ranks=${ranks} without=${`’s ${DEEP}`} state=${state} rows=${tops.map((hits) => hits.map((hit) => ({ ...hit, place: hit.rank, name: hit.title || hit.document, said: number(hit.score) })))} />
    <${Times} answer=${b ?? a} />`;
}

/** Two lists of passages, each with its move against the other. */
function Columns({ rows, ranks, without, state, heads = [] }) {
  return html`<div class="two">${rows.map((of, n) => html`<section aria-label=${n ? "B" : "A"}><h2>${n ? "B" : "A"}</h2>${heads[n]}<ol class="ranked">
    ${of.map((row) => html`<li value=${row.place}><${To} state=${documentState(state, row)}><${Text}>${row.name}</></> <small>${row.id.slice(row.id.lastIndexOf("#"))}</small>${" "}
      <${Move} from=${ranks[1 - n].get(row.id)} to=${row.place} other=${n ? "A" : "B"} without=${without} /> <small>${row.said}</small></li>`)}</ol></section>`)}</div>`;
}

function Contexts({ state, collections, collection, again }) {
  const states = [state, other(state, OF_CONTEXT)];
  const wrong = states.map(policy).find(({ error }) => error)?.error;
  const requests = states.map(contextRequest);
  const how = { collection, again, parameters: { rejected: 0 }, wanted: state.q && !wrong };
  const [a, b] = requests.map((request) => useRoute("/v1/explain/trace", request, how));
  const adjust = (changes) => go({ ...state, ...changes }, "adjust");
  const budget = Number(states[1].budget ?? 2000) || 2000;
  return html`
    <${Settings} state=${state} collections=${collections} button="Compare" />
    <${Differs} state=${state} adjust=${adjust}>
      <${Slider} label="Budget" name="b_budget" min="0" max=${Math.max(4000, budget)} step="10" value=${budget} onInput=${(value) => adjust({ b_budget: String(value) })} />
      ${state.b_budget && html`<button type="button" class="small" onClick=${() => adjust({ b_budget: "" })}>Budget as A</button>`}
    </>
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <${Busy} on=${a.busy || b.busy} />
    <${Problem} error=${a.error ?? b.error} again=${() => (a.again(), b.again())} />
    ${a.answer && b.answer && state.q && html`<${Assembled} traces=${[a.answer.data, b.answer.data]} state=${state} />
      <${Copies} of=${[collection, collections]} what=${{ path: "/v1/context", body: requests[1], cli: { verb: "context" } }} />`}`;
}

/** The passages of a context in its order, each once. */
function placed({ delivered, assembly }) {
  const records = new Map(assembly.records.map((record) => [record.chunk_id, record]));
  const cited = delivered.citations.flatMap((one) => one.chunks.map((id) => [id, one]));
  return [...new Map(cited)].map(([id, one], n) => {
    const record = records.get(id);
    const span = record?.span && [Math.max(record.span.start, one.span.start), Math.min(record.span.end, one.span.end)];
    return { id, document: one.document, name: one.document, place: n + 1, span, tokens: record?.token_count ?? 0, said: `${number(record?.token_count)} tokens${one.cut ? ", cut" : ""}` };
  });
}

function Assembled({ traces, state }) {
  const rows = useMemo(() => traces.map(placed), traces);
  const ranks = rows.map((of) => new Map(of.map(({ id, place }) => [id, place])));
  const common = rows[0].filter(({ id }) => ranks[1].has(id));
  const sum = (of) => of.reduce((all, { tokens }) => all + tokens, 0);
  const share = (of) => `${((100 * sum(common)) / Math.max(1, sum(of))).toFixed(0)} %`;
  const heads = traces.map(({ delivered, assembly: { config, manifest } }, n) => html`
    <p class="small" data-test=${`spent-${n}`}>${number(delivered.n_tokens)} of ${number(config.budget_tokens)} tokens spent, ${config.strategy}${manifest.certificate ? `, worth ${number(manifest.certificate.value)}` : ""}: ${number(rows[n].length)} passages, ${number(rows[n].length - common.length)} of them not in ${n ? "A" : "B"}</p>
    <${Meter} of=${delivered.n_tokens} most=${config.budget_tokens} unit=${number} />`);
  return html`<${Warnings} list=${[...new Set(traces.flatMap(({ assembly }) => assembly.warnings))]} />
    <p class="common" data-test="common"><strong>${number(common.length)}</strong> passages are common, with <strong>${number(sum(common))}</strong> tokens (of the encoder): ${share(rows[0])} of A, ${share(rows[1])} of B${order(common.map(({ id }) => id), ...ranks)}.</p>
    <${Columns} rows=${rows} ranks=${ranks} without="" state=${state} heads=${heads} />`;
}

function Move({ from, to, other, without }) {
  if (from === undefined) return html`<span class="move new">not in ${other}${without}</span>`;
  const by = from - to;
  const word = by === 0 ? "same place" : `${Math.abs(by)} ${by > 0 ? "higher" : "lower"} than in ${other}`;
  return html`<span class=${`move ${by > 0 ? "up" : by < 0 ? "down" : ""}`} title=${word}><span aria-hidden="true">${by === 0 ? "=" : `${by > 0 ? "▲" : "▼"}${Math.abs(by)}`}</span><span class="hidden">${word}</span></span>`;
}

/** Kendall's tau of what both orders have; nothing for fewer than two. */
function order(ids, ours, theirs) {
  const pairs = ids.filter((id) => theirs.has(id)).map((id) => [ours.get(id), theirs.get(id)]);
  let sum = 0;
  for (let i = 0; i < pairs.length; i++) for (let j = 0; j < i; j++) sum += Math.sign((pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]));
  return pairs.length > 1 ? `; order of A's in B: Kendall's τ ${(sum / ((pairs.length * (pairs.length - 1)) / 2)).toFixed(2)}` : "";
}
