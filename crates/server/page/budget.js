// The budget: what its tokens bought, what was rejected by which numbers, and how the choice moves with its settings.

import { html, useMemo, useState } from "./vendor/htm-preact.js";
import { useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Long, Part, Slider, Table, Text, Times, To, Warnings, below, documentState, number } from "./parts.js";
import { Settings, carried, contextRequest, policy } from "./settings.js";
import { go } from "./state.js";

/** The decisions in words; the numbers stand beside them. */
const REASONS = {
  passed_all_gates: "taken whole", cut_to_fit: "taken in part", included: "taken, as the request includes it", beyond_candidates: "not among the likeliest",
  low_relevance: "too little relevance", document_chunks_exceeded: "its document has as many as allowed", section_chunks_exceeded: "its section has as many as allowed",
  budget_exceeded: "does not fit the budget", section_budget_exceeded: "does not fit its section's share", too_redundant: "said already",
  dropped_in_repair: "dropped, as the whole came out too long", not_found: "not found, and not looked at", not_proposed: "in no segment that is wanted",
  run_too_long: "too many in a row", excluded: "the request leaves it out", unlikely: "no likelier than chance", not_supported: "the collection has no answer",
};

/** Gates of redundancy that a strategy keeps to: table, key and name. */
const GATES = {
  cento: [["cento", "same_words", "Same words, from (other documents: half)"], ["cento", "same_meaning", "Same meaning, from"]],
  bubble: [[null, "delta", "Redundant, from"]],
};

/** Rejected candidates that are asked for at first. */
const REJECTED = 100;

export function Budget(of) {
  const { state, collections, collection, again } = of;
  const request = contextRequest(state);
  const parameters = { rejected: state.reason || state.all ? 1e6 : REJECTED };
  const asked = useRoute("/v1/explain/trace", request, { collection, again, parameters, wanted: state.q && !policy(state).error });
  return html`
    <${Settings} state=${state} collections=${collections} button="Assemble" />
    <${Asked} of=${asked} />
    ${asked.answer && state.q && html`<${Spent} answer=${asked.answer} ...${of} request=${request} />`}
    ${!state.q && html`<p class="hint">Ask a question to see what its budget buys.</p>`}`;
}

function Spent({ answer, state, request, collection, collections, again }) {
  const { assembly, delivered, rejected } = answer.data;
  const { manifest, config, records } = assembly;
  const taken = useMemo(() => records.filter(({ final_decision: decision }) => decision === "selected")
    .sort((one, other) => (one.step_details.tokens_used ?? 0) - (other.step_details.tokens_used ?? 0) || one.rank - other.rank), [records]);
  const { certificate } = manifest;
  return html`<${Part} id="spent" title=${html`<span data-test="tokens">${number(delivered.n_tokens)}</span> of ${number(config.budget_tokens)} tokens spent`} note=${`${config.strategy}, counted by ${config.tokenizer}`}>
    <${Warnings} list=${assembly.warnings} />
    <${Sliders} state=${state} config=${config} />
    <p class="certificate" data-test="certificate">${certificate
      ? `Value ${number(certificate.value)} of at most ${number(certificate.bound)}: ${certificate.gap === 0 ? "proven best within this budget" : `${below(certificate.gap)} below the best, at most`}.`
      : "This strategy knows no bound on the best choice."}</p>
    <div class="columns">
      <${Bars} title="By section" rows=${manifest.sections.map(({ label, tokens, limit }) => ({ name: label, tokens, limit }))} budget=${config.budget_tokens} whole=${delivered.n_tokens} />
      <${Bars} title="By document" unit="tokens of the encoder" rows=${byDocument(taken)} budget=${config.budget_tokens} whole=${delivered.n_tokens} state=${state} />
      <${Needs} needs=${manifest.needs ?? []} />
    </div>
    <${Curve} state=${state} request=${request} collection=${collection} again=${again} spent=${delivered.n_tokens} />
    <${Steps} taken=${taken} state=${state} budget=${config.budget_tokens} />
    <${Decisions} records=${records} counts=${rejected} state=${state} config=${config} />
    <${Times} answer=${answer} />
    <${Copies} of=${[collection, collections]}
      what=${{ path: "/v1/explain/trace", body: request, cli: { verb: "context", after: ["--trace", "trace.json"] } }} />
  </>`;
}

function byDocument(taken) {
  const sums = new Map();
  for (const { document, token_count: tokens } of taken) sums.set(document, (sums.get(document) ?? 0) + tokens);
  return [...sums].map(([name, tokens]) => ({ name, tokens, document: name }));
}

/** Settings that assemble again as they are moved. */
function Sliders({ state, config }) {
  const now = policy(state).value;
  const set = (changes) => go({ ...state, ...changes }, "adjust");
  const change = (table, name, value) => {
    const next = table ? { ...now, [table]: { ...now[table], [name]: value } } : { ...now, [name]: value };
    set({ policy: JSON.stringify(next) });
  };
  const gates = GATES[config.strategy];
  const said = (table, name) => (now[table] ?? now)[name] ?? (config.policy[table] ?? config.policy)[name];
  const open = said(null, "gate") === "none";
  const top = Math.max(4000, Number(state.budget) || 0);
  const labels = (table, text) => {
    const pairs = text.split(";").map((pair) => /^\s*(.+?)\s*=\s*(-?[\d.]+)\s*$/.exec(pair)).filter(Boolean);
    const next = { ...now, [table]: Object.fromEntries(pairs.map(([, label, value]) => [label, Number(value)])) };
    if (!pairs.length) delete next[table];
    set({ policy: Object.keys(next).length ? JSON.stringify(next) : "" });
  };
  const shown = (table) => Object.entries(now[table] ?? {}).map(([label, value]) => `${label} = ${value}`).join("; ");
  return html`<div class="sliders" role="group" aria-label="Assemble again with">
    <${Slider} label="Budget" name="budget-slider" min="0" max=${top} step="10" value=${/^\d+$/.test(state.budget) ? Number(state.budget) : config.budget_tokens} onInput=${(value) => set({ budget: String(value) })} />
    ${!open && gates?.map(([table, name, label]) => html`<${Slider} key=${name} label=${label} name=${name} min="0.05" max="1" step="0.01" value=${said(table, name)} onInput=${(value) => change(table, name, value)} />`)}
    ${gates && html`<label><input type="checkbox" name="repeats" checked=${open} onChange=${({ target }) => change(null, "gate", target.checked ? "none" : "pairwise")} /> Take what is said already, too</label>`}
    ${config.strategy === "cento" && html`<${Slider} label="Worth of meeting every need" name="coverage-slider" min="0" max="10" step="0.5" value=${said("cento", "coverage")} onInput=${(value) => change("cento", "coverage", value)} />`}
    <label>Shares of headings <input name="shares" placeholder="* = 0.5; appendix = 0.1" value=${shown("rho")} onChange=${(event) => labels("rho", event.target.value)} /></label>
    <label>Priors of headings <input name="priors" placeholder="scope of works = 0.5" value=${shown("priors")} onChange=${(event) => labels("priors", event.target.value)} /></label>
  </div>`;
}

function Bars({ title, unit = "tokens of texts", rows, budget, whole, state }) {
  const sum = rows.reduce((all, { tokens }) => all + tokens, 0);
  const most = Math.max(...rows.map(({ tokens, limit }) => Math.max(tokens, limit ?? 0)), 1);
  return html`<figure class="tokens"><figcaption>${title} <small>${number(sum)} ${unit}${!state && whole > sum ? `, ${number(whole - sum)} of marks and joins` : ""}</small></figcaption>
    <ul>${rows.map(({ name, tokens, limit, document }) => html`<li data-tokens=${tokens}><span class="what">${document ? html`<${To} state=${documentState(state, { document })}><${Text}>${name}</></>` : html`<${Text}>${name || "(no heading)"}</>`}</span>
      <span class="room" title=${limit ? `${tokens} of its share of ${limit}` : `${((100 * tokens) / Math.max(1, budget)).toFixed(1)} % of the budget`}>
        ${limit && html`<i class="limit" style=${{ width: `${(100 * limit) / most}%` }}></i>`}<i class="used" style=${{ width: `${(100 * tokens) / most}%` }}></i></span>
      <span class="n">${number(tokens)}${limit ? ` / ${number(limit)}` : ""}</span></li>`)}</ul>
    ${!rows.length && html`<p class="small">Nothing was delivered.</p>`}</figure>`;
}

/** What the question asks for, and which passages meet it. */
function Needs({ needs }) {
  if (!needs.length) return null;
  return html`<figure class="tokens"><figcaption>Needs of the question <small>share of its worth</small></figcaption>
    <ul>${needs.map(({ text, kind, share, met_by: met }) => html`<li class=${met.length ? "" : "unmet"}><span class="what"><${Text}>${text}</> <small>${kind}</small></span>
      <span class="room"><i class="used" style=${{ width: `${100 * share}%` }}></i></span>
      <span class="n">${(100 * share).toFixed(0)} %, ${met.length ? `met by ${met.length}` : "not met"}</span></li>`)}</ul></figure>`;
}

/** Value against tokens, asked for when it is opened. */
function Curve({ state, request, collection, again, spent }) {
  const [open, set] = useState(Boolean(state.curve));
  const most = Math.max(4000, spent);
  const asked = useRoute("/v1/context/curve", { ...request, budget: most }, { collection, again, wanted: open });
  const toggle = (event) => {
    set(event.target.open);
    if (event.target.open !== Boolean(state.curve)) go({ ...state, curve: event.target.open ? "1" : "" }, "adjust");
  };
  return html`<details class="curve" open=${open || undefined} onToggle=${toggle}><summary>Would more tokens help? The worth of every budget</summary>
    <${Asked} of=${asked}>Solving budgets up to ${number(most)} …</>
    ${open && asked.answer && html`<${Plot} of=${asked.answer.data} spent=${spent} state=${state} />`}</details>`;
}

function Plot({ of: { points, knee, solved, budget_tokens: most }, spent, state }) {
  if (!points.length) return html`<p>No budget holds anything of worth.</p>`;
  const high = points.at(-1).value || 1;
  const x = (tokens) => 46 + (tokens / most) * 620;
  const y = (value) => 220 - (value / high) * 200;
  const line = points.map(({ tokens, value }, n) => `${n ? `H${x(tokens)}V` : `M${x(tokens)} `}${y(value)}`).join("") + `H${x(most)}`;
  return html`<svg class="plot" viewBox="0 0 690 260" role="img" aria-label=${`Worth of budgets up to ${most} tokens; ${knee ? `knee at ${knee}` : "no knee"}`}>
      <path class="axis" d="M46 20V220H666" /><path class="line" d=${line} />
      ${solved.map(({ tokens, certificate }) => html`<circle class="solved" cx=${x(tokens)} cy=${y(certificate.value)} r="3.5"><title>${tokens} tokens: ${number(certificate.value)}</title></circle>`)}
      ${knee && html`<path class="knee" d=${`M${x(knee)} 20V220`} /><text x=${x(knee) + 6} y="180">knee: ${number(knee)} tokens</text>`}
      <path class="spent" d=${`M${x(spent)} 20V220`} /><text x=${x(spent) + 4} y="214">spent</text>
      <text x="46" y="238">0</text><text x="666" y="238" text-anchor="end">${number(most)} tokens</text><text x="0" y="14">100 %</text>
    </svg>
    <p class="small">The line is the most that a budget could hold if no two passages said the same; dots are whole choices, solved.
      ${knee && html` Beyond the knee each token buys less than on average. <${To} state=${{ ...state, budget: knee }} data-test="knee">Spend ${number(knee)} tokens</>`}</p>
    <${Table} label="Solved budgets" caption="Solved budgets" heads=${`tokens, value, share of that at ${number(most)}, below the best at most`}
      rows=${solved.map(({ tokens, certificate: { value, gap } }) => [number(tokens), number(value), `${((100 * value) / (solved.at(-1).certificate.value || 1)).toFixed(0)} %`, below(gap)])} />`;
}

/** The choice, step by step, in the order in which its tokens were spent. */
function Steps({ taken, state, budget }) {
  const [step, move] = useState();
  const now = Math.min(step ?? taken.length, taken.length);
  if (!taken.length) return null;
  const used = taken.slice(0, now).reduce((all, { step_details: of, token_count }) => all + (of.tokens_needed ?? token_count), 0);
  return html`<${Part} id="steps" head="h3" title="Taken, in the order of the choice">
    <${Slider} label=${`Step ${now} of ${taken.length}: about ${number(used)} of ${number(budget)} tokens`} name="step" min="0" max=${taken.length} step="1" value=${now} onInput=${move} />
    <ol class="taken">${taken.slice(0, now).map((record) => html`<li><${To} state=${documentState(state, { ...record, span: [record.span.start, record.span.end], chunks: [record.chunk_id] })}><${Text}>${record.chunk_id}</></>${" "}
      <span class="small">${number(record.token_count)} tokens${record.step_details.value !== undefined ? `, worth ${number(record.step_details.value)}` : ""}${record.is_neighbor ? ", beside what was found" : ""}${record.meets?.length ? `, meets ${record.meets.join(", ")}` : ""}</span></li>`)}</ol></>`;
}

/** What was not taken, by reason, with the numbers of the decision. */
function Decisions({ records, counts, state, config }) {
  const rejected = useMemo(() => records.filter(({ final_decision: decision }) => decision === "rejected"), [records]);
  const all = counts.reduce((sum, { n }) => sum + n, 0);
  const wanted = state.reason && counts.some(({ reason }) => reason === state.reason) ? state.reason : "";
  const shown = useMemo(() => (wanted ? rejected.filter(({ final_reason: reason }) => reason === wanted) : rejected), [rejected, wanted]);
  return html`<${Part} id="rejected" head="h3" title=${`Rejected: ${number(all)}`}>
    <div class="tabs" role="group" aria-label="Reason">
      <button type="button" class="small" aria-pressed=${!wanted} onClick=${() => go({ ...state, reason: "" }, "adjust")}>all</button>
      ${counts.map(({ reason, n }) => html`<button type="button" class="small" aria-pressed=${reason === wanted} onClick=${() => go({ ...state, reason }, "adjust")}>${REASONS[reason] ?? reason}: ${number(n)}</button>`)}</div>
    <${Long} items=${shown} row=${52} most=${420} label="Rejected candidates">${(record) => html`<div class="decision">
      <span class="n">${number(record.rank)}</span>
      <${To} state=${{ ...carried(state), view: "lost", id: record.chunk_id }} title=${record.chunk_id}><${Text}>${record.chunk_id}</></>
      <span class="small why" title=${details(record.step_details)}>${number(record.token_count)} tokens; ${REASONS[record.final_reason] ?? record.final_reason}${held(record, config)}${details(record.step_details)}</span></div>`}</>
    ${!wanted && rejected.length < all && html`<p><button type="button" class="small" data-test="all" onClick=${() => go({ ...state, all: "1" }, "adjust")}>The first ${number(rejected.length)} stand here; show all ${number(all)}</button></p>`}</>`;
}

/** The gates of `cento` that a repeated passage does not pass. */
function held({ document, final_reason: reason, step_details: { overlap, cosine, partner } }, { strategy, policy: { cento } }) {
  if (strategy !== "cento" || reason !== "too_redundant") return "";
  const [part, of] = partner?.startsWith(`${document}#`) ? [1, ""] : [2, "half of "];
  const by = [overlap >= cento.same_words / part && `same words, ${of}${cento.same_words}`, cosine >= cento.same_meaning && `same meaning, ${cento.same_meaning}`];
  return ` by ${by.filter(Boolean).join("; by ")}`;
}

/** The numbers of a decision, under the names that traces give them. */
function details(of) {
  const said = Object.entries(of).filter(([, value]) => typeof value === "number" || typeof value === "string");
  return said.length ? ` (${said.map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`).join(", ")})` : "";
}
