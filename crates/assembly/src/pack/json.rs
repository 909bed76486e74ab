//! The JSON form: the Markdown context as one string, with its citations beside it.

use crate::cite::Citation;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the object; a field that changes its meaning raises it.
const VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
struct Object<'a> {
    version: u32,
    /// The text that the budget counts.
    context: &'a str,
    citations: &'a [Citation],
}

/// `{"version":1,"context":"…","citations":[…]}` and a line end.
pub(crate) fn object(context: &str, citations: &[Citation]) -> String {
    let object = Object { version: VERSION, context, citations };
    serde_json::to_string(&object).expect("strings and numbers always serialise") + "\n"
}
