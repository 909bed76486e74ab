// Ask: the context that answers a question, as its reader gets it.

import { html } from "./vendor/htm-preact.js";
import { useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Copy, Meter, Part, Text, Times, To, Warnings, below, documentState, number } from "./parts.js";
import { Settings, carried, contextRequest, policy } from "./settings.js";

const OUTCOMES = {
  whole: "Every passage stands here whole.",
  cut: "The best passage is longer than the budget; its beginning stands here.",
  nothing_relevant: "Nothing is delivered: the collection has too little to say to this question.",
  nothing_fits: "Nothing is delivered: no passage fits this budget.",
};

export function Ask(of) {
  const { state, collections, collection, again } = of;
  const request = contextRequest(state);
  const asked = useRoute("/v1/context", request, { collection, again, wanted: state.q && !policy(state).error });
  return html`
    <${Settings} state=${state} collections=${collections} />
    <${Asked} of=${asked} />
    ${asked.answer && state.q && html`<${Answer} answer=${asked.answer} ...${of} request=${request} />`}
    ${!state.q && html`<p class="hint">Ask a question. The answer is the text that a model would read: passages of the collection within the budget, each with its source.</p>`}`;
}

function Answer({ answer, state, request, collection, collections }) {
  const { data } = answer;
  const { certificate, support } = data;
  return html`<${Part} id="context" title="Context" note=${html`<span data-test="tokens">${number(data.n_tokens)}</span> of ${number(data.budget_tokens)} tokens (${data.tokenizer})`}>
    <${Meter} of=${data.n_tokens} most=${data.budget_tokens} unit=${(n) => `${number(n)} tokens`} />
    <${Warnings} list=${data.warnings} />
    <p class=${`outcome ${data.outcome}`} data-test="outcome">${OUTCOMES[data.outcome] ?? data.outcome}
      ${" "}${certificate && (certificate.gap === 0 ? "No choice within the budget is worth more." : `Below the best choice by ${below(certificate.gap)} at most.`)}
      ${" "}${support && html`Support of the question: ${number(support.support)}.`}
      ${" "}${data.filter && html`${number(data.filter.n_admitted)} of ${number(data.filter.n_documents)} documents pass the filter.`}</p>
    <div class="beside">
      <div>
        <div class="tools"><${Copy} text=${data.context} label="Copy the context" /></div>
        <pre class="context" tabindex="0" role="region" aria-label="The context" data-test="context" dir="auto"><${Marked} data=${data} state=${state} /></pre>
      </div>
      <ol class="citations" aria-label="Citations">
        ${data.citations.map((cited) => html`<li value=${cited.n}><${To} class="citation" state=${citedState(state, cited)}><${Text}>${cited.document}</></>
          ${cited.path.length > 0 && html`<div class="path"><${Text}>${cited.path.join(" › ")}</></div>`}
          <div class="small">bytes ${number(cited.span.start)}–${number(cited.span.end)}${where(cited)}${cited.cut ? ", cut" : ""}</div></li>`)}
      </ol>
    </div>
    <p class="ways">Look further:
      ${" "}<${To} state=${{ ...carried(state), view: "budget" }}>what the budget bought</>,
      ${" "}<${To} state=${{ ...carried(state), view: "scores" }}>how passages were ranked</>,
      ${" "}<${To} state=${{ ...carried(state), view: "lost" }}>where another document went</>.</p>
    <${Times} answer=${answer} />
    <${Copies} of=${[collection, collections]}
      what=${{ path: "/v1/context", body: request, cli: { verb: "context" } }} />
  </>`;
}

const citedState = (state, cited) => documentState(state, { ...cited, span: [cited.span.start, cited.span.end] });

/** Page, sheet, rows and lines of a citation, those that it has. */
function where(cited) {
  const said = ["page", "row", "line"].filter((name) => cited[name]).map((name) => {
    const { first, last } = cited[name];
    return first === last ? `, ${name} ${first}` : `, ${name}s ${first}–${last}`;
  });
  return `${cited.sheet ? `, sheet ${cited.sheet}` : ""}${said.join("")}`;
}

/** The text of a context, the mark of each piece a link to its document. */
function Marked({ data, state }) {
  const parts = [];
  let at = 0;
  for (const cited of data.citations) {
    const { mark, found } = [`[${cited.n}]`, `<source n="${cited.n}"`]
      .map((mark) => ({ mark, found: at === 0 && data.context.startsWith(mark) ? 0 : (data.context.indexOf(`\n${mark}`, at) + 1 || -1) }))
      .find(({ found }) => found >= 0) ?? {};
    if (mark === undefined) continue; // a further piece of the same source
    parts.push(data.context.slice(at, found), html`<${To} class="mark" state=${citedState(state, cited)} aria-label=${`Source ${cited.n}: ${cited.document}`}>${mark}</>`);
    at = found + mark.length;
  }
  return [...parts, data.context.slice(at)];
}
