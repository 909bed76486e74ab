//! `cento get`, `list`, `fields` and `delete`: the documents themselves.

use std::io::Write;

use cento_engine::api::{DocumentList, FieldList, ListRequest};
use cento_engine::{OsFs, Searcher, SearcherOptions, Selection};

use crate::args::{Delete, Get, Global, List, Which};
use crate::exit_code::Outcome;
use crate::{options, output};

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
    let request = ListRequest { filter: args.filter.clone() };
    options::filter(request.filter.as_deref())?; // what is wrong with it is said before the collection is opened
    let options = SearcherOptions { at: options::at(&args.at), ..SearcherOptions::default() };
    let list = DocumentList::new(&Searcher::open(&global.collection, options)?, &request)?;
    options::remark_filter(global, list.filter.as_ref());
    if global.json {
        output::json(&list)?
    } else {
        list.documents.iter().for_each(|document| println!("{}", document.id))
    }
    Ok(if list.documents.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

pub(crate) fn fields(global: &Global) -> anyhow::Result<Outcome> {
    let list = FieldList::new(&open(global)?)?;
    if global.json {
        output::json(&list)?;
        return Ok(Outcome::Done);
    }
    let rows = list.fields.iter().map(|field| {
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
