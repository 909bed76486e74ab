// Document: its text with the cited bytes marked, its outline, its neighbours, and what its reader lost.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { ask, route, useAnswer } from "./api.js";
import { Copies } from "./copies.js";
import { Asked, Figures, Long, Part, Text, To, number } from "./parts.js";
import { go } from "./state.js";

/** Bytes of a block of text, and blocks that are drawn at once. */
const BLOCK = 2048;
const BLOCKS = 300;

/** Passages by which the outline is warmed. */
const WARM = 100;

const span = (text) => {
  const [, start, end] = /^(\d+)-(\d+)$/.exec(text ?? "") ?? [];
  return start === undefined ? undefined : [Number(start), Number(end)];
};

export function Document({ state, collection, collections, again }) {
  const [typed, type] = useState();
  const of = state.doc && `${collection}${again}${state.doc} ${state.chunks ?? ""}`;
  const asked = useAnswer(of, (signal) => load(state, collection, signal));
  const warm = useAnswer(of && state.q && `${of} ${state.q}`, (signal) =>
    ask("/v1/search", { query: state.q, within: [state.doc], k: WARM, candidates: 1000 }, { signal, collection }));
  const open = (event) => {
    event.preventDefault();
    go({ view: "document", c: state.c, q: state.q, doc: typed ?? state.doc });
  };
  return html`
    <form class="settings" onSubmit=${open}><div class="question">
      <label class="grow">Document <input name="doc" required dir="auto" autocomplete="off" value=${typed ?? state.doc ?? ""} onInput=${(e) => type(e.target.value)} /></label>
      <button class="main">Open</button></div></form>
    <${Asked} of=${asked} />
    ${asked.answer && state.doc && html`<${Opened} key=${state.doc} ...${asked.answer} hits=${warm.answer?.data.hits} state=${state} collection=${collection} collections=${collections} />`}
    ${!state.doc && html`<p class="hint">Open a document by its id. <${To} state=${{ view: "health", c: state.c }}>All documents</> are listed under Health; citations and results lead here too.</p>`}`;
}

async function load(state, collection, signal) {
  const of = `/v1/collections/${encodeURIComponent(collection)}`;
  const part = (citation) => ask(route(`${of}/text`, { citation }), undefined, { signal, collection }).then(({ data }) => data);
  const [text, sections, reports] = await Promise.all([
    part(state.doc),
    ask(route(`${of}/sections`, { document: state.doc }), undefined, { signal }).then(({ data }) => data.sections),
    ask(`${of}/reports`, undefined, { signal }).then(({ data }) => data.files ?? [], () => []), // a document is read without it
  ]);
  const chunks = span(state.chunks);
  const numbers = chunks ? [chunks[0] - 1, chunks[1] + 1].filter((n) => n >= 0 && n < text.n_chunks) : [];
  const near = await Promise.all(numbers.map((n) => part(`${state.doc}#${n}`).then((data) => ({ ...data, n }), () => null)));
  return { text, sections, report: reports.find(({ origin }) => origin === text.origin), near: near.filter(Boolean) };
}

function Opened({ text, sections, report, near, hits, state, collection, collections }) {
  const at = span(state.at);
  const outside = at && (at[1] > text.span[1] || at[0] > at[1]);
  const citation = at ? `${state.doc} bytes ${at[0]}-${at[1]}` : state.doc;
  return html`<${Part} id="document" title=${html`<${Text}>${text.title || state.doc}</>`}>
    <p class="small"><${Text}>${state.doc}</> · ${number(text.span[1])} bytes · ${number(text.n_chunks)} chunks ·
      ${" "}${text.text_kind === "source" ? "the text is the file's own bytes" : "the text was extracted from the file"}${text.origin && text.origin !== state.doc ? html` <${Text}>${text.origin}</>` : ""}</p>
    ${outside && html`<p class="problem" role="alert">The document has no bytes ${state.at}: it may have changed since that citation.</p>`}
    ${at && !outside && html`<p data-test="span">Marked: bytes ${number(at[0])}–${number(at[1])}${near.length > 0 && html`; around it, paler, ${near.map(({ n }) => html` <${To} state=${{ ...state, at: spanOf(near, n), chunks: `${n}-${n}` }}>chunk ${n}</>`)}`}.</p>`}
    <${Reader} report=${report} />
    <${Metadata} of=${text.metadata} />
    <div class="beside reading">
      <${Outline} sections=${sections} hits=${hits} state=${state} />
      <${Body} text=${text} at=${outside ? undefined : at} near=${near} state=${state} />
    </div>
    <${Copies} of=${[collection, collections]}
      what=${{ path: `/v1/collections/${encodeURIComponent(collection)}/text`, parameters: { citation }, cli: { verb: "get", before: [citation] } }} />
  </>`;
}

const spanOf = (near, n) => near.find((one) => one.n === n).span.join("-");

/** What the reader of the file says of it. */
function Reader({ report }) {
  if (!report) return null;
  const { extraction: got, suspicion, failures, remarks } = report;
  const figures = got && [
    ["engine", got.engine], ["pages, slides or sheets", got.n_pages], ["characters", got.n_characters], ["tables", got.n_tables],
    ["images, not read", got.n_images], ["characters without a meaning", got.n_unmapped], ["words longer than 25 letters", got.n_long_words],
    ["share of words that a second reading finds too", got.completeness],
  ].filter(([, value]) => value !== null && value !== undefined && value !== 0);
  const said = [...failures.map((text) => `Failed: ${text}`), ...remarks, ...(got?.unread ?? []).map((text) => `Not read: ${text}`)];
  const blank = got?.pages_without_text ?? [];
  return html`<details class=${`reader ${suspicion}`} open=${suspicion !== "fine" || undefined}><summary>What the reader got: ${suspicion}</summary>
    ${figures && html`<${Figures} of=${figures.map(([name, value]) => [name, typeof value === "number" ? number(value) : value])} />`}
    ${blank.length > 0 && html`<p>Pages without text: ${blank.slice(0, 50).join(", ")}${blank.length > 50 ? " …" : ""}</p>`}
    ${said.length > 0 && html`<ul>${said.map((text) => html`<li><${Text}>${text}</></li>`)}</ul>`}
  </details>`;
}

function Metadata({ of }) {
  const fields = Object.entries(of ?? {});
  if (!fields.length) return null;
  return html`<details><summary>Metadata, ${fields.length} fields</summary><${Figures} of=${fields.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])} /></details>`;
}

/** The headings, for a question each with the best score of a passage under it. */
function Outline({ sections, hits, state }) {
  const listed = useMemo(() => {
    const found = hits ?? [];
    const most = (of) => of.reduce((most, { score }) => Math.max(most, score), 0);
    const best = most(found) || 1;
    const named = sections.filter(({ level, heading }) => level > 0 || heading);
    return named.map((section) => ({ ...section, score: most(found.filter(({ span: [start, end] }) => start < section.span[1] && end > section.span[0])) / best }));
  }, [sections, hits]);
  const target = span(state.at)?.[0] ?? Number(state.to ?? 0);
  const from = Math.max(0, listed.findLastIndex((section) => section.span[0] <= target) - 3);
  if (!listed.length) return html`<nav class="outline" aria-label="Outline"><p class="small">No headings.</p></nav>`;
  const least = listed.reduce((least, { level }) => Math.min(least, level), listed[0].level);
  return html`<nav class="outline" aria-label="Outline"><h3>Outline${hits ? ", by how well passages answer" : ""}</h3>
    <${Long} items=${listed} row=${28} most=${560} from=${from} label="Headings">${(section) => html`
      <${To} class="heading" state=${{ ...state, at: undefined, chunks: undefined, to: section.span[0] }} title=${section.heading} style=${{ paddingLeft: `${Math.min(8, section.level - least) * 14 + 6}px` }}>
        ${hits && html`<span class="heat" aria-hidden="true"><span style=${{ width: `${section.score * 100}%` }}></span></span>`}
        <${Text}>${section.heading || "(no heading)"}</>${section.score > 0 && html`<span class="hidden"> ${number(section.score)} of the best</span>`}</>`}</>
  </nav>`;
}

/** Bytes of a text, cut into blocks at the ends of lines. */
function blocksOf(text) {
  const whole = new TextEncoder().encode(text);
  const blocks = [];
  for (let start = 0; start < whole.length; ) {
    let end = Math.min(whole.length, start + BLOCK);
    const line = whole.lastIndexOf(10, end - 1);
    if (end < whole.length && line > start) end = line + 1;
    while (end < whole.length && (whole[end] & 0xc0) === 0x80) end++; // never inside a character
    blocks.push([start, end]);
    start = end;
  }
  return { whole, blocks };
}

function Body({ text, at, near, state }) {
  const { whole, blocks } = useMemo(() => blocksOf(text.text), [text]);
  const base = text.span[0];
  const target = at?.[0] ?? Number(state.to ?? 0);
  const wanted = Math.max(0, blocks.findIndex(([, end]) => base + end > target));
  const [from, show] = useState(0);
  const mark = useRef();
  const first = Math.max(0, wanted - BLOCKS / 3);
  useEffect(() => show(first), [text, first]);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [text, state.at, state.to, from]);
  const marks = [...near.map(({ span }) => ({ span, kind: "near" })), ...(at ? [{ span: at, kind: "cited" }] : [])];
  const pieces = (block) => {
    const cuts = marks.flatMap(({ span }) => span).map((n) => n - base).filter((n) => n > block[0] && n < block[1]);
    const ends = [block[0], ...cuts.sort((a, b) => a - b), block[1]];
    const decoder = new TextDecoder();
    return ends.slice(1).map((end, n) => {
      const [start, words] = [ends[n], decoder.decode(whole.subarray(ends[n], end))];
      const kind = marks.findLast(({ span }) => span[0] - base <= start && span[1] - base >= end)?.kind;
      if (!kind) return words;
      return html`<mark class=${kind} data-start=${base + start} ref=${kind === "cited" && base + start === at[0] ? mark : undefined}>${words}</mark>`;
    });
  };
  const shown = blocks.slice(from, from + BLOCKS);
  return html`<div class="body" tabindex="0" role="region" aria-label="Text of the document" data-test="text">
    ${from > 0 && html`<button type="button" class="small" onClick=${() => show(Math.max(0, from - BLOCKS / 2))}>Earlier text</button>`}
    ${shown.map((block, n) => html`<pre class="block" dir="auto" key=${block[0]} ref=${!at && from + n === wanted && state.to ? mark : undefined}>${pieces(block)}</pre>`)}
    ${from + BLOCKS < blocks.length && html`<button type="button" class="small" onClick=${() => show(from + BLOCKS / 2)}>Later text</button>`}
    ${!blocks.length && html`<p class="small">The document has no text.</p>`}
  </div>`;
}
