//! The doors over a network and over pipes: HTTP and MCP on one service of the engine.
//!
//! A request is read within bounds (`ask`), admitted or not (`edge`, `guard`, `keys`), and answered on an engine thread
//! (`work`) by a handler of a few lines (`routes`, `mcp`), which hands the engine's own requests and answers through.
//! `page` shows people what these routes answer.

#![recursion_limit = "256"] // whether an encoder may go to another thread is asked of all types of a GPU's driver

mod error;
mod options;
mod refusal;
mod log;
mod keys;
mod guard;
mod metrics;
mod work;
mod jobs;
mod app;
mod ask;
mod page;
mod edge;
mod listen;
mod mcp;
mod routes;

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cento_engine::api::TextKind;
use cento_engine::{Cancel, Service};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::refusal::Refusal;
use crate::work::Lane;

pub use crate::error::{Error, Result};
pub use crate::options::{
    DEFAULT_BODY_BYTES, DEFAULT_CONNECTIONS, DEFAULT_DEADLINE, DEFAULT_PORT, DEFAULT_QUEUE, DEFAULT_TOOL_TOKENS,
    Folders, Life, Log, LongTexts, ServerOptions,
};

/// Threads that read and write connections; answers are made on the engine's.
const CONNECTION_THREADS: usize = 2;

/// The time that what is left of a server has to end by itself.
const END_TIME: Duration = Duration::from_secs(1);

/// The time that jobs have to end when the server does; what is not committed then is as if it had never begun.
const JOBS_END_TIME: Duration = Duration::from_secs(5);

/// Serves the collections of a service over HTTP until the process is told to stop (Ctrl-C, TERM, or as
/// [`Life`] says). `listening` is called with the address once connections are accepted.
///
/// # Errors
/// [`Error::Unguarded`], [`Error::Keys`], [`Error::Listen`], [`Error::System`].
pub fn serve(service: Service, options: ServerOptions, listening: impl FnOnce(SocketAddr)) -> Result<()> {
    let address = options.address;
    if options.keys.is_none() && !guard::is_loopback(address.ip()) {
        return Err(Error::Unguarded { address });
    }
    let app = Arc::new(App::new(Arc::new(service), options)?);
    let runtime = runtime()?;
    runtime.block_on(async {
        let refused = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let stop = CancellationToken::new();
        stop_on_signals(&stop)?;
        if app.options.life == Life::Stdin {
            stop_at_end(io::stdin(), &stop);
        }
        warm_up(&app);
        listening(listener.local_addr().map_err(refused)?);
        let router = routes::router(Arc::clone(&app), mcp::route(&app, &stop));
        listen::accept(listener, Arc::clone(&app), router, stop).await;
        Ok(())
    })?;
    let n_jobs = app.jobs.end(JOBS_END_TIME);
    log::line(&json!({ "unix_ms": log::unix_ms(), "server": "stopped", "jobs_cancelled": n_jobs }));
    runtime.shutdown_timeout(END_TIME);
    Ok(())
}

/// Answers one client over stdin and stdout in the Model Context Protocol, until stdin ends.
///
/// # Errors
/// [`Error::Protocol`] if the client says something else first, [`Error::System`].
pub fn serve_pipes(service: Service, options: ServerOptions) -> Result<()> {
    let app = Arc::new(App::new(Arc::new(service), options)?);
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        warm_up(&app);
        mcp::over_pipes(&app).await
    });
    runtime.shutdown_background(); // a read of stdin may be left, which nothing ends
    ended
}

fn runtime() -> Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(CONNECTION_THREADS).enable_all().build();
    runtime.map_err(Error::System)
}

/// Loads the encoders of all collections on an engine thread, so that the first question need not wait for them. What
/// cannot be loaded is said to whoever asks.
fn warm_up(app: &Arc<App>) {
    for name in app.service.collections().keys().cloned() {
        let (app, of_job) = (Arc::clone(app), Arc::clone(app));
        let load = move |cancel: &Cancel| {
            let loaded = of_job.service.embeddings(name.as_str(), &[], TextKind::Query, cancel);
            loaded.map(drop).map_err(Refusal::from)
        };
        tokio::spawn(async move { drop(app.work.run(Lane::Bulk, app.options.deadline, load).await) });
    }
}

fn stop_on_signals(stop: &CancellationToken) -> Result<()> {
    let (stop, mut terminated) = (stop.clone(), terminated()?);
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => (),
            () = terminated.wait() => (),
        }
        stop.cancel();
    });
    Ok(())
}

/// Reads on a thread that nothing waits for: a read of stdin cannot be ended.
fn stop_at_end(mut input: impl Read + Send + 'static, stop: &CancellationToken) {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink()); // an input that cannot be read has ended
        stop.cancel();
    });
}

/// The signal that asks a process to end.
struct Terminated {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn terminated() -> Result<Terminated> {
    let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    Ok(Terminated { signal: signal.map_err(Error::System)? })
}

#[cfg(not(unix))]
fn terminated() -> Result<Terminated> {
    Ok(Terminated {})
}

impl Terminated {
    #[cfg(unix)]
    async fn wait(&mut self) {
        let _ = self.signal.recv().await;
    }

    #[cfg(not(unix))]
    async fn wait(&mut self) {
        std::future::pending::<()>().await;
    }
}
