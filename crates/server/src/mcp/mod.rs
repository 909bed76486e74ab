//! The Model Context Protocol: four tools, over pipes and over HTTP, of the revision of today and of those before.
//!
//! An answer is one block of text and nothing structured beside it: clients drop the one where there is the other, or
//! count both. No client is asked anything, so nothing is kept between requests.

mod tools;
mod fit;
mod answers;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt as _};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::answers::Call;
use crate::app::App;
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use crate::work::Lane;

/// The largest message; arguments are short.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Words on the server as a whole, for models.
const INSTRUCTIONS: &str = "Documents of the user, indexed. `context` gives cited evidence for a question; \
    `search` and `fetch` look further; `status` names the collections.";

/// The tools of an application.
#[derive(Clone)]
struct Tools {
    app: Arc<App>,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("cento", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(INSTRUCTIONS.to_owned());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        if self.get_tool(&name).is_none() {
            return Err(ErrorData::invalid_params(format!("no tool {name:?}"), None));
        }
        let (app, arguments) = (Arc::clone(&self.app), Value::Object(arguments.unwrap_or_default()));
        let job = move |cancel: &cento_engine::Cancel| {
            let collections = app.service.collections();
            Call { app: &app, collections: &collections, cancel }.answer(&name, &arguments)
        };
        let answer = tokio::select! {
            answer = self.app.work.run(Lane::Query, self.app.options.deadline, job) => answer,
            () = context.ct.cancelled() => Err(Refusal::late()),
        };
        Ok(CallToolResponse::from(match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(told(&refusal))]),
        }))
    }
}

/// A refusal in words that a model can act on.
fn told(refusal: &Refusal) -> String {
    let body = &refusal.body;
    let hint = body.hint.as_ref().filter(|hint| !hint.contains("/v1/")); // addresses are of another door
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{}: {}{hint}", body.code, body.message)
}

/// The route `/mcp`. `stop` ends the streams that clients hold open.
pub(crate) fn route(app: &Arc<App>, stop: &CancellationToken) -> Router<Arc<App>> {
    let tools = Tools { app: Arc::clone(app) };
    // The guard looks at host and origin before; sessions would be lost by clients and keep nothing here.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX)
        .with_cancellation_token(stop.clone())
        .disable_allowed_hosts();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
    let answer = move |State(_): State<Arc<App>>, request: Request| {
        let service = service.clone();
        let is_json = says_json(request.headers());
        async move { with_type(service.handle(request).await.map(Body::new), is_json) }
    };
    Router::new().route("/mcp", any(answer))
}

/// Says if the Content-Type is JSON's, whatever its parameters.
fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// An error of the transport in the form of all errors, where it has no type of its own.
fn with_type(response: Response, is_json: bool) -> Response {
    // The transport answers a body that it cannot read as one of another type.
    let is_unread = is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let status = if is_unread { StatusCode::BAD_REQUEST } else { response.status() };
    if status.as_u16() < 400 || response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let message = match status {
        StatusCode::METHOD_NOT_ALLOWED => "messages are sent by POST; there is no stream to get, and no session to end",
        StatusCode::NOT_ACCEPTABLE => "Accept must name application/json and text/event-stream",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "Content-Type must be application/json",
        StatusCode::PAYLOAD_TOO_LARGE => "the message is too large",
        _ if is_unread => "the body is not one JSON-RPC message",
        _ => "the message, or the revision that MCP-Protocol-Version names, is not known here",
    };
    let mut refused = Refusal::new(status, "protocol", message).into_response();
    let allow = response.headers().get(axum::http::header::ALLOW).cloned();
    refused.headers_mut().extend(allow.map(|allow| (axum::http::header::ALLOW, allow)));
    refused
}

/// Answers one client over stdin and stdout until stdin ends.
///
/// # Errors
/// [`Error::Protocol`].
pub(crate) async fn over_pipes(app: &Arc<App>) -> Result<()> {
    let protocol = |error: &dyn std::fmt::Display| Error::Protocol { reason: error.to_string() };
    let tools = Tools { app: Arc::clone(app) };
    let running = match tools.serve(rmcp::transport::io::stdio()).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()), // nobody asked anything
        Err(error) => return Err(protocol(&error)),
    };
    running.waiting().await.map_err(|error| protocol(&error))?;
    Ok(())
}
