//! What every request is answered with: the service, the engine threads, the guard and the metrics.

use std::sync::Arc;

use cento_engine::Service;

use crate::error::Result;
use crate::guard::Guard;
use crate::jobs::Jobs;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::work::Work;

/// The parts of a server that its requests share.
pub(crate) struct App {
    pub(crate) service: Arc<Service>,
    pub(crate) options: ServerOptions,
    pub(crate) guard: Guard,
    pub(crate) work: Work,
    pub(crate) metrics: Metrics,
    pub(crate) jobs: Arc<Jobs>,
}

impl App {
    /// # Errors
    /// Those of [`Keys::read`] and [`Work::start`].
    pub(crate) fn new(service: Arc<Service>, options: ServerOptions) -> Result<Self> {
        let keys = options.keys.as_deref().map(Keys::read).transpose()?;
        let hosts = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let guard = Guard { hosts, origins: options.origins.clone(), keys };
        let work = Work::start(options.workers, options.queue)?;
        Ok(Self { service, options, guard, work, metrics: Metrics::new(), jobs: Arc::default() })
    }
}
