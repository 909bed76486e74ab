// Health: what the collection holds, which files were read badly, how sound its graphs are, what is at work on it.

import { html, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import { ask, route, useAnswer } from "./api.js";
import { Copies } from "./copies.js";
import { Busy, Long, Problem, Text, To, Warnings, bytes, documentState, number } from "./parts.js";
import { go } from "./state.js";

const EVERY_MS = 1000;

export function Health({ state, collection, collections, again }) {
  const base = `/v1/collections/${encodeURIComponent(collection)}`;
  const status = useAnswer(`${base}${again}`, (signal) => ask(base, undefined, { signal }));
  const reports = useAnswer(`${base}${again}`, (signal) => ask(`${base}/reports`, undefined, { signal }));
  const kept = useAnswer(`${base}${again}`, (signal) => ask(`${base}/snapshots`, undefined, { signal }));
  return html`
    ${collections.length > 1 && html`<nav class="tabs" aria-label="Collections">${collections.map((name) => html`<${To} class="button small" state=${{ view: "health", c: name }} aria-current=${name === collection ? "true" : undefined}>${name}</>`)}</nav>`}
    <${Busy} on=${status.busy} />
    <${Problem} error=${status.error} again=${status.again} />
    ${status.answer && html`<${Contents} data=${status.answer.data} name=${collection} />`}
    ${status.answer && html`<${Jobs} again=${again} />`}
    ${status.answer && html`<${Files} reports=${reports} />`}
    ${kept.answer?.data.snapshots.length > 0 && html`<section aria-labelledby="kept-title"><h2 id="kept-title">Snapshots</h2>
      <ul>${kept.answer.data.snapshots.map(({ name, generation }) => html`<li><${Text}>${name}</>: generation ${number(generation)}</li>`)}</ul></section>`}
    ${status.answer && html`<${Documents} base=${base} state=${state} collection=${collection} again=${again} />`}
    ${status.answer && html`<${Copies} what=${{ path: base, cli: { verb: "status", after: collections.length > 1 ? ["--collection", collection, "--json"] : ["--json"] } }} />`}`;
}

function Contents({ data, name }) {
  const { config, segments, n_bytes: sizes } = data;
  const total = Object.values(sizes).reduce((all, n) => all + n, 0);
  const wrong = [
    ...(data.losses ?? []).map((loss) => `Damaged beyond repair, not indexed again since: ${loss.id ?? JSON.stringify(loss)}`),
    ...(data.stale ?? []).map((stale) => `Answers as it was before, as its file could not be read: ${stale.id ?? JSON.stringify(stale)}`),
    ...(data.n_quarantined_bytes ? [`${bytes(data.n_quarantined_bytes)} of damaged segments are set aside.`] : []),
  ];
  const figures = [
    ["documents", number(data.n_documents)], ["chunks", number(data.n_chunks)], ["generation", number(data.generation)], ["bytes on disk", bytes(total)],
    ["deleted or replaced, still on disk", number(data.n_dead_documents)], ["encoder", config.model || "none: vectors were given"], ["dimensions", number(config.dimensions)],
    ["tokens of a chunk", config.chunk_tokens], ["language of words", config.language], ["roots", Object.keys(data.roots).join(", ") || "none"],
  ];
  return html`<section aria-labelledby="contents-title"><h2 id="contents-title"><${Text}>${name}</></h2>
    <${Warnings} list=${wrong} />
    ${data.n_documents === 0 && html`<p class="hint">The collection is empty. <code>cento index FOLDER</code> fills it.</p>`}
    <dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd><${Text}>${value}</></dd></div>`)}</dl>
    <div class="wide" tabindex="0" role="region" aria-label="Segments"><table><caption>Segments</caption>
      <thead><tr><th scope="col">segment</th><th scope="col">documents</th><th scope="col">rows</th><th scope="col">dead rows</th><th scope="col">vectors searched by</th><th scope="col">recall@10 of the graph</th><th scope="col">finds itself</th></tr></thead>
      <tbody>${segments.map(({ name, n_documents: documents, n_rows: rows, n_dead_rows: dead, scan, graphs }) => html`<tr><th scope="row">${name}</th><td>${number(documents)}</td><td>${number(rows)}</td><td>${number(dead)}</td><td>${scan}</td>
        <td>${graphs?.map(({ recall_at_10: recall }) => number(recall)).join(", ") || "–"}</td><td>${graphs?.map(({ self_retrieval: self }) => number(self)).join(", ") || "–"}</td></tr>`)}</tbody></table></div>
    <details><summary>Bytes by file</summary><dl class="figures">${Object.entries(sizes).map(([file, n]) => html`<div><dt>${file}</dt><dd>${bytes(n)}</dd></div>`)}</dl></details></section>`;
}

/** Jobs of the server, looked at again while one is at work. */
function Jobs({ again }) {
  const [turn, next] = useState(0);
  const asked = useAnswer(`jobs ${turn} ${again}`, (signal) => ask("/v1/jobs", undefined, { signal }));
  const jobs = asked.answer?.data.jobs ?? [];
  const atWork = jobs.some(({ state }) => state === "running" || state === "cancelling");
  useEffect(() => {
    if (!atWork || asked.busy) return undefined;
    const timer = setTimeout(() => next((n) => n + 1), EVERY_MS);
    return () => clearTimeout(timer);
  }, [atWork, asked.busy]);
  if (!jobs.length) return null;
  return html`<section aria-labelledby="jobs-title"><h2 id="jobs-title">Jobs</h2><ul class="jobs">${jobs.map((job) => {
    const [done, of] = job.n_rows_total ? [job.n_rows, job.n_rows_total] : [job.n_bytes, job.n_bytes_total];
    return html`<li>${job.kind} of <${Text}>${job.collection}</>: ${job.state}${job.stage ? `, ${job.stage}` : ""}, ${number(Math.round(job.seconds))} s${job.n_tokens ? `, ${number(Math.round(job.tokens_per_second))} tokens/s` : ""}${job.eta_seconds ? `, about ${number(Math.round(job.eta_seconds))} s left` : ""}
      ${of > 0 && html`<progress aria-label=${`${job.kind} of ${job.collection}`} max=${of} value=${done}></progress>`}
      ${job.error && html`<p class="wrong"><${Text}>${job.error.message}</></p>`}</li>`;
  })}</ul></section>`;
}

/** What the readers say of files, those that want attention first. */
function Files({ reports }) {
  const files = reports.answer?.data.files;
  const [all, show] = useState(false);
  if (reports.error) return html`<${Problem} error=${reports.error} again=${reports.again} />`;
  if (!reports.answer) return null;
  const odd = (files ?? []).filter(({ suspicion }) => suspicion !== "fine");
  const shown = all ? files : odd;
  const tall = 76;
  return html`<section aria-labelledby="files-title"><h2 id="files-title">Files <small>${files ? `${number(files.length)} reported, ${number(odd.length)} want a look` : "text as it stands: there is nothing to report"}</small></h2>
    ${files?.length > odd.length && html`<label><input type="checkbox" name="all-files" checked=${all} onChange=${(event) => show(event.target.checked)} /> those that are fine, too</label>`}
    ${shown?.length > 0 && html`<${Long} items=${shown} row=${tall} most=${420} label="Files">${(file) => html`<div class="file">
      <span class=${`tag ${file.suspicion}`}>${file.suspicion}</span> <strong title=${file.origin}><${Text}>${file.origin}</></strong> <span class="small">${file.format}, ${bytes(file.n_bytes)}${file.extraction ? `, ${number(file.extraction.n_characters)} characters` : ""}</span>
      <p class="small">${[...file.failures.map((text) => `failed: ${text}`), ...file.remarks].map((text) => html`<${Text}>${text} </>`)}</p></div>`}</>`}</section>`;
}

/** All documents, or those that a filter admits; asked for when wanted. */
function Documents({ base, state, again }) {
  const [typed, type] = useState();
  const [open, set] = useState(Boolean(state.list));
  const filter = state.list === "1" ? "" : (state.list ?? "");
  const asked = useAnswer(open && `${base} ${filter} ${again}`, (signal) => ask(route(`${base}/documents`, { filter }), undefined, { signal }));
  const submit = (event) => {
    event.preventDefault();
    set(true);
    go({ view: "health", c: state.c, list: typed ?? filter ? (typed ?? filter) || "1" : "1" });
  };
  useEffect(() => set(Boolean(state.list)), [state.list]);
  const documents = asked.answer?.data.documents;
  const listed = useMemo(() => documents ?? [], [documents]);
  return html`<section aria-labelledby="documents-title"><h2 id="documents-title">Documents${documents && open ? html` <small>${number(documents.length)}</small>` : ""}</h2>
    <form class="settings" onSubmit=${submit}><div class="question"><label class="grow">Filter <input name="list" placeholder=${'type = "pdf" and title contains "report"'} value=${typed ?? filter} onInput=${(e) => type(e.target.value)} /></label><button>List them</button></div></form>
    ${open && html`<${Busy} on=${asked.busy} /><${Problem} error=${asked.error} again=${asked.again} />`}
    ${open && listed.length > 0 && html`<${Long} items=${listed} row=${54} most=${460} label="Documents">${(one) => html`<div class="listed"><${To} state=${documentState(state, { document: one.id })} title=${one.id}><${Text}>${one.id}</></>
      <span class="small"><${Text}>${one.title}</> · ${one.type} · ${number(one.n_chunks)} chunks</span></div>`}</>`}</section>`;
}
