//! Faults: an error as a door sends it, with a code that stays and the data behind the words.

use cento_assembly::Error as AssemblyError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::Error;
use cento_collection::describe;

/// The error that occurred.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fault {
    /// A name of the kind of error that does not change.
    pub code: String,
    /// The error in words.
    pub message: String,
    /// The values in those words, where a program may want them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        Self { code: error.code().to_owned(), message: describe(error), data: data(error) }
    }
}

fn data(error: &Error) -> Option<Value> {
    if let Error::UnknownDocument { id, nearest } = error {
        return Some(json!({ "id": id, "nearest": nearest }));
    }
    if let Error::NotTraced { id, nearest } = error {
        return Some(json!({ "id": id, "nearest": nearest }));
    }
    if let Error::OutOfRange { id, what, has } = error {
        return Some(json!({ "id": id, "what": what, "has": has }));
    }
    if let Error::UnknownField { field, nearest } = error {
        return Some(json!({ "field": field, "nearest": nearest }));
    }
    if let Error::Request { field, reason } = error {
        return Some(json!({ "field": field, "reason": reason }));
    }
    if let Error::UnknownCollection { name, known } = error {
        return Some(json!({ "name": name, "known": known }));
    }
    if let Error::TooManyResults { k, depth } = error {
        return Some(json!({ "k": k, "candidates": depth }));
    }
    if let Error::Setting { setting, value, reason } = error {
        return Some(json!({ "setting": setting, "value": value, "reason": reason }));
    }
    if let Error::Assembly(AssemblyError::BudgetTooSmall { budget, needed }) = error {
        return Some(json!({ "budget": budget, "needed": needed }));
    }
    if let Error::Assembly(AssemblyError::IncludeTooLong { ids, needed, budget }) = error {
        return Some(json!({ "ids": ids, "needed": needed, "budget": budget }));
    }
    None
}
