//! `cento get`, `list`, `fields` and `delete`: the documents themselves.

use cento_engine::api::{GetRequest, LinksRequest, ListRequest};
use cento_engine::{At, Cancel, FieldOf, OsFs, Searcher, SearcherOptions, Selection, Service, ServiceOptions};

use crate::args::{Delete, Get, Global, List, Which};
use crate::exit_code::Outcome;
use crate::{options, output};

#[derive(serde::Serialize)]
struct Deleted<'a> {
    version: u32,
    dry_run: bool,
    generation: u64,
    deleted: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
}

fn service(at: At) -> anyhow::Result<Service> {
    Ok(Service::new(ServiceOptions { at, ..ServiceOptions::default() })?)
}

pub(crate) fn get(args: &Get, global: &Global) -> anyhow::Result<Outcome> {
    if args.links {
        return links(&args.citation, global);
    }
    let request = GetRequest { citation: args.citation.clone() };
    let excerpt = service(At::Current)?.get(global.collection.as_path(), &request, &Cancel::default())?;
    if global.json {
        output::json(&excerpt)?;
    } else {
        excerpt.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        output::text(&excerpt.text) // the bytes that were cited, not one more
    }
    Ok(Outcome::Done)
}

fn links(citation: &str, global: &Global) -> anyhow::Result<Outcome> {
    let request = LinksRequest { citation: citation.to_owned() };
    let found = service(At::Current)?.links(global.collection.as_path(), &request, &Cancel::default())?;
    let outcome = if found.outgoing.is_empty() && found.incoming.is_empty() { Outcome::Nothing } else { Outcome::Done };
    if global.json {
        output::json(&found)?;
        return Ok(outcome);
    }
    found.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    let bytes = |[start, end]: [u64; 2]| format!("bytes {start}-{end}");
    let outgoing = found.outgoing.iter().map(|link| {
        let to = match (&link.document, &link.section) {
            (None, _) => "not in the collection".to_owned(),
            (Some(document), None) => document.clone(),
            (Some(document), Some(section)) => format!("{document} > {}", section.heading),
        };
        [link.kind, &link.target, &to, &bytes(link.span)].map(output::printable).to_vec()
    });
    if !found.outgoing.is_empty() {
        println!("{}", output::table(&["link", "target", "leads to", "stands at"], outgoing));
    }
    let incoming = found
        .incoming
        .iter()
        .map(|link| [link.kind, &link.target, &link.document, &bytes(link.span)].map(output::printable).to_vec());
    if !found.incoming.is_empty() {
        println!("{}", output::table(&["linked by", "target", "in", "stands at"], incoming));
    }
    if outcome == Outcome::Nothing && !global.quiet {
        eprintln!("{} links to nothing, and nothing links to it", found.document);
    }
    Ok(outcome)
}

pub(crate) fn list(args: &List, global: &Global) -> anyhow::Result<Outcome> {
    let request = ListRequest { filter: args.filter.clone() };
    options::filter(request.filter.as_deref())?; // what is wrong with it is said before the collection is opened
    let service = service(options::at(&args.at))?;
    let list = service.list(global.collection.as_path(), &request, &Cancel::default())?;
    options::remark_filter(global, list.filter.as_ref());
    if global.json {
        output::json(&list)?
    } else {
        list.documents.iter().for_each(|document| println!("{}", document.id))
    }
    Ok(if list.documents.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

pub(crate) fn fields(global: &Global) -> anyhow::Result<Outcome> {
    let list = service(At::Current)?.fields(global.collection.as_path(), &Cancel::default())?;
    if global.json {
        output::json(&list)?;
        return Ok(Outcome::Done);
    }
    let rows = list.fields.iter().map(|field| {
        let types: Vec<String> = field.types.iter().map(ToString::to_string).collect();
        let of = match field.of {
            FieldOf::Document => "documents",
            FieldOf::Chunk => "chunks",
        };
        vec![field.name.clone(), of.to_owned(), types.join(", "), output::count(field.n_documents)]
    });
    println!("{}", output::table(&["field", "of", "type", "documents"], rows));
    Ok(Outcome::Done)
}

pub(crate) fn delete(args: &Delete, global: &Global) -> anyhow::Result<Outcome> {
    let Which { documents, path, filter } = &args.which;
    let selection = match (path, options::filter(filter.as_deref())?) {
        (Some(path), _) => Selection::Path(path.clone()),
        (None, Some(filter)) => Selection::Filter(filter),
        (None, None) => Selection::Documents(documents.clone()),
    };
    let (generation, deleted, remark) = if args.dry_run {
        let searcher = Searcher::open(&global.collection, SearcherOptions::default())?;
        let listed = searcher.list(&selection)?.into_iter().map(|document| document.id);
        (searcher.manifest().generation, listed.collect(), None)
    } else {
        let deleted = cento_engine::delete_selected(&global.collection, &selection, &OsFs)?;
        (deleted.generation, deleted.documents, deleted.remark)
    };
    if let Some(remark) = remark.as_ref().filter(|_| !global.quiet) {
        eprintln!("{remark}");
    }
    if global.json {
        let (version, dry_run) = (output::JSON_VERSION, args.dry_run);
        output::json(&Deleted { version, dry_run, generation, deleted: &deleted, remark: remark.as_deref() })?;
    } else if args.dry_run {
        deleted.iter().for_each(|id| println!("{id}"));
    } else if !deleted.is_empty() {
        println!("{} deleted; generation {generation}", output::counted(deleted.len() as u64, "document"));
    }
    if deleted.is_empty() {
        if !global.quiet {
            eprintln!("no document matches; nothing {}deleted", if args.dry_run { "would be " } else { "" });
        }
        return Ok(Outcome::Nothing);
    }
    if args.dry_run && !global.quiet {
        eprintln!("{} would be deleted", output::counted(deleted.len() as u64, "document"));
    }
    if !args.dry_run && !args.compaction.no_compact {
        super::compact::when_due(global);
    }
    Ok(Outcome::Done)
}
