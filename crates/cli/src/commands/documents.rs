//! `cento get`, `list`, `fields` and `delete`: the documents themselves.

use std::io::Write;

use cento_engine::{FieldSummary, Filtered, ListedDocument, OsFs, Searcher, SearcherOptions, Selection};

use crate::args::{Delete, Get, Global, List, Which};
use crate::exit_code::Outcome;
use crate::{options, output};

#[derive(serde::Serialize)]
struct Listed<'a> {
    version: u32,
    generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Filtered>,
    documents: &'a [ListedDocument],
}

#[derive(serde::Serialize)]
struct Fields<'a> {
    version: u32,
    generation: u64,
    fields: &'a [FieldSummary],
}

#[derive(serde::Serialize)]
struct Deleted<'a> {
    version: u32,
    dry_run: bool,
    generation: u64,
    deleted: &'a [String],
}

fn open(global: &Global) -> anyhow::Result<Searcher> {
    Ok(Searcher::open(&global.collection, SearcherOptions::default())?)
}

pub(crate) fn get(args: &Get, global: &Global) -> anyhow::Result<Outcome> {
    let excerpt = open(global)?.get(&args.citation)?;
    if global.json {
        output::json(&excerpt)?;
    } else {
        std::io::stdout().write_all(excerpt.text.as_bytes())? // the bytes that were cited, not one more
    }
    Ok(Outcome::Done)
}

pub(crate) fn list(args: &List, global: &Global) -> anyhow::Result<Outcome> {
    let filter = options::filter(args.filter.as_deref())?;
    let options = SearcherOptions { at: options::at(&args.at), ..SearcherOptions::default() };
    let searcher = Searcher::open(&global.collection, options)?;
    let filtered = filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?;
    let documents = searcher.list(&filter.map_or(Selection::All, Selection::Filter))?;
    options::remark_filter(global, filtered.as_ref());
    if global.json {
        output::json(&Listed {
            version: output::JSON_VERSION,
            generation: searcher.manifest().generation,
            filter: filtered,
            documents: &documents,
        })?
    } else {
        documents.iter().for_each(|document| println!("{}", document.id))
    }
    Ok(if documents.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

pub(crate) fn fields(global: &Global) -> anyhow::Result<Outcome> {
    let searcher = open(global)?;
    let fields = searcher.fields()?;
    if global.json {
        let generation = searcher.manifest().generation;
        output::json(&Fields { version: output::JSON_VERSION, generation, fields: &fields })?;
        return Ok(Outcome::Done);
    }
    let rows = fields.iter().map(|field| {
        let types: Vec<String> = field.types.iter().map(ToString::to_string).collect();
        vec![field.name.clone(), types.join(", "), output::count(field.n_documents)]
    });
    println!("{}", output::table(&["field", "type", "documents"], rows));
    Ok(Outcome::Done)
}

pub(crate) fn delete(args: &Delete, global: &Global) -> anyhow::Result<Outcome> {
    let Which { documents, path, filter } = &args.which;
    let selection = match (path, options::filter(filter.as_deref())?) {
        (Some(path), _) => Selection::Path(path.clone()),
        (None, Some(filter)) => Selection::Filter(filter),
        (None, None) => Selection::Documents(documents.clone()),
    };
    let (generation, deleted) = if args.dry_run {
        let searcher = open(global)?;
        let listed = searcher.list(&selection)?.into_iter().map(|document| document.id);
        (searcher.manifest().generation, listed.collect())
    } else {
        let deleted = cento_engine::delete_selected(&global.collection, &selection, &OsFs)?;
        (deleted.generation, deleted.documents)
    };
    if global.json {
        let (version, dry_run) = (output::JSON_VERSION, args.dry_run);
        output::json(&Deleted { version, dry_run, generation, deleted: &deleted })?;
    } else if args.dry_run {
        deleted.iter().for_each(|id| println!("{id}"));
    } else if !deleted.is_empty() {
        println!("{} documents deleted; generation {generation}", deleted.len());
    }
    if deleted.is_empty() {
        if !global.quiet {
            eprintln!("no document matches; nothing {}deleted", if args.dry_run { "would be " } else { "" });
        }
        return Ok(Outcome::Nothing);
    }
    if args.dry_run && !global.quiet {
        eprintln!("{} documents would be deleted", deleted.len());
    }
    if !args.dry_run && !args.compaction.no_compact {
        super::compact::when_due(global);
    }
    Ok(Outcome::Done)
}
