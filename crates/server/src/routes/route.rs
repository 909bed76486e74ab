//! A route: its address, what goes in and comes out, and who answers. The router and the description of the whole are
//! made of the same list, so that neither can have what the other lacks.

use std::sync::Arc;

use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::app::App;

/// Makes the schema of a type, its parts kept in the generator.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    /// The method as descriptions write it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }
}

/// The collection that a route asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scoped {
    /// One that the parameter `collection` names, where there are several.
    Query,
    /// One in the address, or none.
    Path,
    /// One in the address; the answer is a job that has begun.
    Begun,
    /// One in the address, which is made.
    Made,
}

/// A body and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) schema: SchemaOf,
}

/// A route.
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) scoped: Scoped,
    /// The body of POST and PUT, the parameters of GET; the body of a PUT without one is bare bytes.
    pub(crate) request: Option<SchemaOf>,
    pub(crate) answer: Content,
    pub(crate) handler: MethodRouter<Arc<App>>,
}

impl Route {
    /// A route that is asked by GET, with its collection in the address if it has one.
    pub(crate) fn get(
        path: &'static str,
        about: &'static str,
        request: Option<SchemaOf>,
        answer: Content,
        handler: MethodRouter<Arc<App>>,
    ) -> Self {
        Self { verb: Verb::Get, path, about, scoped: Scoped::Path, request, answer, handler }
    }
}

/// JSON of a type.
pub(crate) fn json<T: JsonSchema>() -> Content {
    Content { kind: "application/json", schema: of::<T> }
}

/// The schema of a type.
pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
