//! The tools that a language model sees: their arguments, and schemas that cost few tokens.

use std::sync::Arc;

use cento_engine::api;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Passages for a question.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchTool {
    /// Question or keywords
    pub(super) query: String,
    /// Needed if there are several
    pub(super) collection: Option<String>,
    /// e.g. type = "pdf" and year >= 2020 and page <= 9
    pub(super) filter: Option<String>,
    /// Default 8
    pub(super) k: Option<usize>,
    /// Default 4000
    pub(super) max_tokens: Option<usize>,
    /// From the answer before
    pub(super) cursor: Option<String>,
}

/// A passage or document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchTool {
    /// From search or a citation
    pub(super) id: String,
    /// Needed if there are several
    pub(super) collection: Option<String>,
    /// Default 4000
    pub(super) max_tokens: Option<usize>,
    /// From the answer before
    pub(super) cursor: Option<String>,
}

/// A cited context for a question.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextTool {
    /// Question in plain words
    pub(super) question: String,
    /// Needed if there are several
    pub(super) collection: Option<String>,
    /// e.g. type = "pdf" and year >= 2020 and page <= 9
    pub(super) filter: Option<String>,
    /// Default 2000
    pub(super) budget_tokens: Option<usize>,
}

/// The collections.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusTool {}

macro_rules! requests {
    ($($tool:ty),*) => { $(impl api::Request for $tool {
        fn check(&self) -> cento_engine::Result<()> {
            Ok(()) // the request that is made of it is checked
        }
    })* };
}

requests!(SearchTool, FetchTool, ContextTool, StatusTool);

/// The tools, in an order that does not change.
pub(super) fn tools() -> Vec<Tool> {
    let tool = |name: &'static str, about: &'static str, schema| {
        let hints = ToolAnnotations::new().read_only(true).open_world(false);
        Tool::new(name, about, Arc::new(lean(schema))).with_annotations(hints)
    };
    vec![
        tool(
            "context",
            "Evidence for a question from the indexed documents: cited passages, within a token budget. Try this first.",
            schema_for!(ContextTool).to_value(),
        ),
        tool("search", "Ranked passages with ids, as JSON. Snippets only.", schema_for!(SearchTool).to_value()),
        tool("fetch", "The text of an id from search or of a citation, as JSON.", schema_for!(FetchTool).to_value()),
        tool(
            "status",
            "The collections: documents, generation, files changed since.",
            schema_for!(StatusTool).to_value(),
        ),
    ]
}

/// A schema without what a model does not need to write arguments.
fn lean(schema: Value) -> JsonObject {
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    for key in ["$schema", "title", "description", "additionalProperties"] {
        schema.remove(key);
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, field) in fields {
        let Some(field) = field.as_object_mut() else { continue };
        for key in ["format", "minimum", "default"] {
            field.remove(key);
        }
        let first = field.get("type").and_then(Value::as_array).and_then(|types| types.first()).cloned();
        field.extend(first.map(|first| ("type".to_owned(), first))); // optional, not null
    }
    schema
}

#[cfg(test)]
mod tests {
    use cento_engine::BudgetTokenizer;

    use super::*;

    #[test]
    fn all_tools_together_cost_few_tokens() {
        let tools = serde_json::to_string(&tools()).unwrap();
        let n_tokens = BudgetTokenizer::named("o200k").unwrap().count(&tools);
        assert!(n_tokens < 1_000, "{n_tokens} tokens: {tools}");
        assert!(!tools.contains("outputSchema") && !tools.contains("null"), "{tools}");
    }

    #[test]
    fn a_schema_says_what_must_be_there() {
        let tools = tools();
        let required: Vec<Value> =
            tools.iter().map(|tool| tool.input_schema.get("required").cloned().unwrap_or_default()).collect();
        let one = |name: &str| serde_json::json!([name]);
        assert_eq!(required[..3], [one("question"), one("query"), one("id")]);
        assert_eq!(tools[1].input_schema["properties"]["k"]["type"], "integer");
        assert_eq!(tools[3].input_schema["type"], "object");
    }
}
