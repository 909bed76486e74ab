//! Connections: accepted up to a limit, given a time for their headers, and ended within a bound.
//!
//! `axum::serve` has neither the limit nor the time in its version 0.8.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// The time in which a client must have sent the head of a request; a connection that is idle for so long is closed.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// The longest head of a request.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// The time that requests in progress have when the server stops.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The time until another connection is accepted where the system had no means for one.
const AGAIN: Duration = Duration::from_millis(50);

/// Answers connections until `stop` is set, and then those that are open, for a bounded time.
pub(crate) async fn accept(listener: TcpListener, app: Arc<App>, router: Router, stop: CancellationToken) {
    let (graceful, end) = (GracefulShutdown::new(), CancellationToken::new());
    let free = Arc::new(Semaphore::new(app.options.connections.max(1)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
    http.max_header_size(HEADER_BYTES_MAX).max_headers(HEADERS_MAX);
    loop {
        let permit = select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&free).acquire_owned() => permit,
        };
        let stream = select! {
            () = stop.cancelled() => break,
            stream = next(&listener) => stream,
        };
        let _ = stream.set_nodelay(true); // an answer is one write; without it, it comes a little later
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        let (app, end) = (Arc::clone(&app), end.clone());
        tokio::spawn(async move {
            app.metrics.connections.inc();
            let _ = select! {
                ended = connection => ended, // how a connection ends is its client's affair
                () = end.cancelled() => Ok(()),
            };
            app.metrics.connections.dec();
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_TIME, pin!(graceful.shutdown())).await;
    end.cancel();
}

/// The next connection. What keeps one from being accepted passes: too many files are open, or the client has left.
async fn next(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}
