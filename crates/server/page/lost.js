// Where did it go: the way of a passage through every stage, and the smallest change that brings it back.

import { html, useState } from "./vendor/htm-preact.js";
import { useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Part, Text, Times, To, documentState, number } from "./parts.js";
import { Terms } from "./scores.js";
import { Settings, carried, contextRequest, policy, said } from "./settings.js";

const STAGES = { lexical: "Words (BM25)", dense: "Vectors", fused: "Fused ranking" };

export function Lost(of) {
  const { state, collections, collection, again } = of;
  const request = { id: state.id ?? "", context: contextRequest(state) };
  const [typed, type] = useState();
  const wanted = state.q && state.id && !policy(state).error;
  const asked = useRoute("/v1/explain", request, { collection, again, wanted });
  const id = html`<div class="question"><label class="grow">Document, or passage (DOCUMENT#NUMBER)
    <input name="id" required dir="auto" autocomplete="off" spellcheck="false" value=${typed ?? state.id ?? ""} onInput=${(e) => type(e.target.value)} /></label></div>`;
  return html`
    <${Settings} state=${state} collections=${collections} button="Follow it" extra=${typed === undefined ? {} : { id: typed }}>${id}</>
    <${Asked} of=${asked}>Following it. Changes are tried one by one, which may take seconds …</>
    ${asked.answer && state.id && html`<${Way} answer=${asked.answer} ...${of} request=${request} />`}
    ${!wanted && html`<p class="hint">Say which document you miss, by its id (Health lists them), and the question.</p>`}`;
}

function Way({ answer, state, request, collection, collections }) {
  const { data } = answer;
  const taken = data.assembly.filter(({ record }) => record.final_decision === "selected");
  return html`<${Part} id="way" title=${html`<${To} state=${documentState(state, { document: data.id.replace(/#\d+$/, "") })}><${Text}>${data.id}</></>`} note=${`${number(data.n_chunks)} ${data.n_chunks === 1 ? "chunk" : "chunks"}`}>
    ${data.lost
      ? html`<div class="verdict lost" data-test="lost"><p><strong>Lost in ${data.lost.stage}.</strong> <${Text}>${data.lost.because}</></p><${Changes} of=${data.lost} state=${state} /></div>`
      : html`<div class="verdict found" data-test="lost"><p><strong>It is in the context</strong>, with ${taken.length} of its chunks.</p></div>`}
    <ol class="stages">
      ${Object.entries(STAGES).map(([name, title]) => html`<${Stage} key=${name} name=${name} title=${title} standing=${data[name]} depth=${name === "fused" ? undefined : data.candidates} parts=${name === "fused" ? data.contributions : undefined} />`)}
      <li class=${taken.length ? "passed" : "failed"}><h3>Assembly</h3>
        ${data.assembly.length === 0 && html`<p>None of its chunks came so far.</p>`}
        <ul tabindex="0" aria-label="Decisions">${data.assembly.slice(0, 20).map(({ record, because }) => html`<li class="small"><span class="tag">${record.chunk_id.slice(record.chunk_id.lastIndexOf("#"))}</span>
          ${" "}place ${number(record.rank)}, ${number(record.token_count)} tokens: <${Text}>${because}</></li>`)}</ul>
        ${data.assembly.length > 20 && html`<p class="small">and ${number(data.assembly.length - 20)} more</p>`}</li>
    </ol>
    ${data.terms && html`<details><summary>Words of the question in its best passage</summary><${Terms} of=${data.terms} /></details>`}
    <${Times} answer=${answer} />
    <${Copies} of=${[collection, collections]}
      what=${{ path: "/v1/explain", body: request, cli: { verb: "why-not", before: [request.context.query, request.id], body: request.context } }} />
  </>`;
}

function Stage({ title, standing, depth, parts }) {
  if (!standing) return html`<li class="failed"><h3>${title}</h3><p>Not found there, or not searched.</p></li>`;
  const { rank, n_ranked: of, score, score_needed: needed } = standing;
  const far = (place) => `${(100 * Math.log(place)) / Math.log(Math.max(of, depth ?? 1, 2))}%`;
  const passes = score >= needed;
  return html`<li class=${passes ? "passed" : "failed"}><h3>${title}</h3>
    <p>Place <strong>${number(rank)}</strong> of ${number(of)} with ${number(score)}; ${needed > 0 ? `${number(needed)} was needed, a margin of ${number(score - needed)}` : "all go on"}.</p>
    <div class="track" role="img" aria-label=${`place ${rank} of ${of}`}>
      ${depth < of && html`<i class="cut" style=${{ left: far(depth) }} title=${`the first ${depth} go on`}></i>`}<i class="here" style=${{ left: far(rank) }}></i></div>
    ${parts?.length > 0 && html`<p class="small">${parts.map(({ arm, contribution }) => `${arm} ${number(contribution)}`).join(" + ")}</p>`}</li>`;
}

/** Changes that were tried and do deliver it, each one click away. */
export function Changes({ of, state }) {
  const { changes, not_found: sought, n_runs: runs } = of;
  return html`
    ${changes.length > 0 && html`<p>Each of these alone brings it into the context, as ${runs === 1 ? "a run" : "runs"} of it showed:</p>
      <ul class="changes">${changes.map((change) => {
        const to = moved(state, change.settings);
        return html`<li>${change.settings.map(({ setting, value, instead }) => html`<code>${setting} = ${value}</code> <small>instead of ${instead ?? "nothing"}</small> `)}
          ${to && html`<${To} state=${{ ...to, view: "ask" }} class="button" data-test="undo">Try it</>`}</li>`;
      })}</ul>`}
    ${sought?.length > 0 && html`<p class="small">Moved without success: ${sought.map(({ setting, up_to: to }) => `${setting}${to ? ` up to ${to}` : ""}`).join("; ")}.</p>`}`;
}

/** The state with settings moved; nothing if the page has no field for one of them. */
function moved(state, settings) {
  const next = { ...carried(state) };
  for (const { setting, value } of settings) {
    if (["budget", "candidates", "mode", "strategy"].includes(setting)) next[setting] = value;
    else if (setting === "filter") next.filter = ""; // the one change of it there is
    else if (setting.startsWith("policy.")) {
      const [table, name] = /^(?:([a-z_]+)\.)?(.+)$/.exec(setting.slice(7)).slice(1);
      const key = name.startsWith('"') ? JSON.parse(name) : name;
      let read;
      try {
        read = JSON.parse(value);
      } catch {
        return undefined;
      }
      const now = policy(next).value;
      next.policy = JSON.stringify(table ? { ...now, [table]: { ...now[table], [key]: read } } : { ...now, [key]: read });
    } else return undefined;
  }
  return said({}, next);
}
