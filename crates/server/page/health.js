// Health: what the collection holds, how sound it is, which files were read badly, what is at work, the cache.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { ask, route, useRoute } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Figures, Long, Meter, Part, Problem, Table, Text, To, Warnings, bytes, documentState, number } from "./parts.js";
import { go, useHeard } from "./state.js";

/** Milliseconds between looks at jobs, while one is at work and while none is. */
const [SOON_MS, LATER_MS] = [1000, 5000];

export function Health({ state, collection, collections, again }) {
  const base = `/v1/collections/${encodeURIComponent(collection)}`;
  const get = (rest) => useRoute(base + rest, undefined, { again });
  const [status, reports, kept] = ["", "/reports", "/snapshots"].map(get);
  return html`
    ${collections.length > 1 && html`<nav class="tabs" aria-label="Collections">${collections.map((name) => html`<${To} class="button small" state=${{ view: "health", c: name }} aria-current=${name === collection ? "true" : undefined}>${name}</>`)}</nav>`}
    <${Asked} of=${status} />
    ${status.answer && html`<${Contents} data=${status.answer.data} name=${collection} />
    <div><${Jobs} again=${again} ended=${() => [status, reports, kept].forEach((part) => part.again())} /></div>
    <div><${Cache} fingerprint=${status.answer.data.config.model_fingerprint} again=${again} /></div>
    <div><${Files} reports=${reports} /></div>
    ${kept.answer?.data.snapshots.length > 0 && html`<${Part} id="kept" title="Snapshots">
      <ul>${kept.answer.data.snapshots.map(({ name, generation }) => html`<li><${Text}>${name}</>: generation ${number(generation)}</li>`)}</ul></>`}
    <${Documents} base=${base} state=${state} again=${again} />
    <${Copies} of=${[collection, collections]} what=${{ path: base, cli: { verb: "status", before: [] } }} />`}`;
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
  return html`<${Part} id="contents" title=${html`<${Text}>${name}</>`}>
    <${Warnings} list=${wrong} />
    ${data.n_documents === 0 && html`<p class="hint">The collection is empty. <code>cento index FOLDER</code> fills it.</p>`}
    <${Figures} of=${figures} />
    <${Table} label="Segments" caption="Segments" heads="segment, documents, rows, dead rows, vectors searched by, recall@10 of the graph, finds itself"
      rows=${segments.map(({ name, n_documents: documents, n_rows: rows, n_dead_rows: dead, scan, graphs }) => [name, number(documents), number(rows), number(dead), scan,
        ...["recall_at_10", "self_retrieval"].map((figure) => graphs?.map((graph) => number(graph[figure])).join(", ") || "–")])} />
    <details><summary>Bytes by file</summary><${Figures} of=${Object.entries(sizes).map(([file, n]) => [file, bytes(n)])} /></details></>`;
}

/** Jobs of the server, looked at again while somebody sees the page; `ended` hears that none is at work any more. */
function Jobs({ again, ended }) {
  const [turn, next] = useState(0);
  const [refused, tell] = useState();
  const asked = useRoute("/v1/jobs", undefined, { again: `${turn} ${again}` });
  const jobs = asked.answer?.data.jobs ?? [];
  const atWork = jobs.some(({ state }) => state === "running" || state === "cancelling");
  const before = useRef();
  useEffect(() => {
    if (before.current && !atWork) ended();
    before.current = atWork;
  }, [atWork]);
  const look = () => next((n) => n + 1);
  const seen = () => document.hidden || look();
  useHeard(document, "visibilitychange", seen);
  useEffect(() => {
    if (asked.busy) return undefined;
    const timer = setTimeout(seen, atWork ? SOON_MS : LATER_MS);
    return () => clearTimeout(timer);
  }, [atWork, asked.busy]);
  const cancel = (id) => ask(`/v1/jobs/${id}`, undefined, { method: "DELETE" }).then(() => (tell(), look()), tell);
  if (!jobs.length) return null;
  return html`<${Part} id="jobs" title="Jobs"><${Problem} error=${refused} /><ul class="jobs">${jobs.map((job) => {
    const [done, of] = job.n_rows_total ? [job.n_rows, job.n_rows_total] : [job.n_bytes, job.n_bytes_total];
    return html`<li key=${job.id}>${job.kind} of <${Text}>${job.collection}</>: <span role="status">${job.state}</span>${job.stage ? `, ${job.stage}` : ""}, ${number(Math.round(job.seconds))} s${job.n_tokens ? `, ${number(Math.round(job.tokens_per_second))} tokens/s` : ""}${job.eta_seconds ? `, about ${number(Math.round(job.eta_seconds))} s left` : ""}
      ${of > 0 && html`<progress aria-label=${`${job.kind} of ${job.collection}`} max=${of} value=${done}></progress>`}
      ${job.state === "running" && html` <button type="button" class="small" aria-label=${`Cancel the ${job.kind} of ${job.collection}`} onClick=${() => cancel(job.id)}>Cancel</button>`}
      ${job.error && html`<p class="wrong"><${Text}>${job.error.message}</></p>`}</li>`;
  })}</ul></>`;
}

/** The embedding cache, which all collections of the server's user share. */
function Cache({ fingerprint, again }) {
  const { answer, error, again: repeat } = useRoute("/v1/cache", undefined, { again });
  if (error) return error.code === "no_cache" ? null : html`<${Problem} error=${error} again=${repeat} />`;
  if (!answer) return null;
  const { n_bytes: used, max_bytes: most, models } = answer.data;
  return html`<${Part} id="cache" title="Embedding cache" note=${`${bytes(used)} of at most ${bytes(most)}`}>
    <${Meter} of=${used} most=${most} unit=${bytes} />
    ${models.length > 0 && html`<${Table} label="Models of the cache" test="cache" heads="model, fingerprint, dimensions, entries, bytes, last used"
      rows=${models.map((of) => [html`<${Text}>${of.model}</>`, html`<code title=${of.fingerprint}>${of.fingerprint.slice(0, 12)}</code>${of.fingerprint === fingerprint && " (this one)"}`,
        number(of.dimensions), number(of.n_embeddings), bytes(of.n_bytes), new Date(1000 * of.last_use_seconds).toISOString().slice(0, 10)])} />`}</>`;
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
  return html`<${Part} id="files" title="Files" note=${files ? `${number(files.length)} reported, ${number(odd.length)} want a look` : "text as it stands: there is nothing to report"}>
    ${files?.length > odd.length && html`<label><input type="checkbox" name="all-files" checked=${all} onChange=${(event) => show(event.target.checked)} /> those that are fine, too</label>`}
    ${shown?.length > 0 && html`<${Long} items=${shown} row=${tall} most=${420} label="Files">${(file) => html`<div class="file">
      <span class=${`tag ${file.suspicion}`}>${file.suspicion}</span> <strong title=${file.origin}><${Text}>${file.origin}</></strong> <span class="small">${file.format}, ${bytes(file.n_bytes)}${file.extraction ? `, ${number(file.extraction.n_characters)} characters` : ""}</span>
      <p class="small">${[...file.failures.map((text) => `failed: ${text}`), ...file.remarks].map((text) => html`<${Text}>${text} </>`)}</p></div>`}</>`}</>`;
}

/** All documents, or those that a filter admits; asked for when wanted. */
function Documents({ base, state, again }) {
  const [typed, type] = useState();
  const [open, set] = useState(Boolean(state.list));
  const filter = state.list === "1" ? "" : (state.list ?? "");
  const asked = useRoute(route(`${base}/documents`, { filter }), undefined, { again, wanted: open });
  const submit = (event) => {
    event.preventDefault();
    set(true);
    go({ view: "health", c: state.c, list: typed ?? filter ? (typed ?? filter) || "1" : "1" });
  };
  useEffect(() => set(Boolean(state.list)), [state.list]);
  const documents = asked.answer?.data.documents;
  const listed = useMemo(() => documents ?? [], [documents]);
  return html`<${Part} id="documents" title="Documents" note=${documents && open && number(documents.length)}>
    <form class="settings" onSubmit=${submit}><div class="question"><label class="grow">Filter <input name="list" placeholder=${'type = "pdf" and title starts with "A"'} value=${typed ?? filter} onInput=${(e) => type(e.target.value)} /></label><button>List them</button></div></form>
    ${open && html`<${Asked} of=${asked} />`}
    ${open && listed.length > 0 && html`<${Long} items=${listed} row=${54} most=${460} label="Documents">${(one) => html`<div class="listed"><${To} state=${documentState(state, { document: one.id })} title=${one.id}><${Text}>${one.id}</></>
      <span class="small"><${Text}>${one.title}</> · ${one.type} · ${number(one.n_chunks)} chunks</span></div>`}</>`}</>`;
}
