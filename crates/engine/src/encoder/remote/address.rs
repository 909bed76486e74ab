//! Where an encoder elsewhere is, and who may be told a key.

use std::fmt;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::line::{self, Reach, Target};

/// The beginning of a model that is at an OpenAI-compatible endpoint.
const SCHEME: &str = "openai:";

/// The variable that holds the key.
const KEY_NAME: &str = "CENTO_ENCODER_KEY";

/// Time that one request may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Requests in the air at once.
const REQUESTS_AT_ONCE: usize = 4;

/// An encoder elsewhere, written `openai:NAME@URL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The name of the model there.
    pub(crate) name: String,
    /// The address above `/embeddings`.
    url: String,
}

impl Address {
    /// The address that a model's name is; none where it names a model of this machine.
    ///
    /// # Errors
    /// [`Error::Setting`] for one that begins as an address and is none, or has a query.
    pub(crate) fn parse(model: &str) -> Result<Option<Self>> {
        let Some(rest) = model.strip_prefix(SCHEME) else { return Ok(None) };
        let at = rest.find("@http://").or_else(|| rest.find("@https://"));
        let Some((name, url)) = at.map(|at| (&rest[..at], &rest[at + 1..])).filter(|(name, _)| !name.is_empty()) else {
            return Err(wrong(
                rest.split('@').next().unwrap_or_default(),
                "is no encoder at an endpoint; expected openai:NAME@URL, as in openai:bge-m3@http://localhost:8000/v1",
            ));
        };
        let (scheme, place) = url.split_once("://").unwrap_or_default();
        let place = place.trim_end_matches('/').trim_end_matches(PATH);
        if place.is_empty() || place.starts_with('/') {
            return Err(wrong(name, "has an address without a host"));
        }
        if url.contains(['?', '#']) {
            return Err(wrong(name, "has an address with a query; the key is taken from CENTO_ENCODER_KEY alone"));
        }
        let version = if place.contains('/') { "" } else { "/v1" }; // the routes of OpenAI lie there
        let parsed = Self { name: name.to_owned(), url: format!("{scheme}://{place}{version}") };
        line::host_of(&parsed.target())?; // an address at all, and without a password
        Ok(Some(parsed))
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target { url: &self.url, path: PATH, setting: "model", key_name: KEY_NAME }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}@{}", self.name, self.url)
    }
}

/// True for the name of a model at an endpoint.
#[must_use]
pub fn is_at_endpoint(model: &str) -> bool {
    model.starts_with(SCHEME)
}

fn wrong(name: &str, reason: &str) -> Error {
    Error::Setting { setting: "model", value: format!("{SCHEME}{name}@…"), reason: reason.to_owned() }
}

const PATH: &str = "/embeddings";

/// Whoever named the place of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// The request.
    Request,
    /// The collection, which may be a stranger's.
    Collection,
}

/// The way encoders elsewhere are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderAccess {
    /// The key of the host that a request names, or of one host.
    pub key: Option<EncoderKey>,
    /// The hosts that a request may name; a collection may name public ones.
    pub reach: Reach,
    /// Time that one request may take.
    pub timeout: Duration,
    /// Requests in the air at once, at least 1.
    pub n_requests: usize,
}

impl Default for EncoderAccess {
    fn default() -> Self {
        Self { key: None, reach: Reach::Any, timeout: TIMEOUT, n_requests: REQUESTS_AT_ONCE }
    }
}

impl EncoderAccess {
    /// The key that an address gets, and the hosts that it may be at. A key that names its host goes there whoever
    /// named the address, as the user named the host with it; one without goes to hosts that the user names alone.
    pub(super) fn of(&self, address: &Address, named: Named) -> Result<(Option<&str>, Reach)> {
        let host = line::host_of(&address.target())?;
        let is_users = named == Named::Request && self.reach == Reach::Any;
        let key = match &self.key {
            Some(EncoderKey { host: Some(of_host), key }) if *of_host == host => return Ok((Some(key), Reach::Any)),
            Some(EncoderKey { host: None, key }) if is_users => Some(key.as_str()),
            _ => None,
        };
        Ok((key, if is_users { Reach::Any } else { Reach::Public }))
    }
}

/// A key, and the host that it is for. Neither is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct EncoderKey {
    host: Option<String>,
    key: String,
}

impl EncoderKey {
    /// The variable that a key is taken from.
    pub const NAME: &'static str = KEY_NAME;

    /// A key (`sk-…`), or the host it is for and the key (`api.openai.com sk-…`); none if there is nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (host, key) = text.split_once(char::is_whitespace).map_or((None, text), |(host, key)| (Some(host), key));
        let (host, key) = (host.map(str::to_owned), key.trim().to_owned());
        (!key.is_empty()).then_some(Self { host, key })
    }
}

impl fmt::Debug for EncoderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncoderKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name_and_a_url() {
        for (model, shown) in [
            ("openai:m@http://h:1", "openai:m@http://h:1/v1"),
            ("openai:m@http://h:1/v1/", "openai:m@http://h:1/v1"),
            ("openai:org/m@rev@https://h/v1/embeddings", "openai:org/m@rev@https://h/v1"),
            ("openai:m@https://h/openai/v1", "openai:m@https://h/openai/v1"),
        ] {
            assert_eq!(Address::parse(model).unwrap().unwrap().to_string(), shown);
        }
        assert_eq!(Address::parse("all-minilm-l6-v2").unwrap(), None);
        for wrong in
            ["openai:m", "openai:@http://h", "openai:m@ftp://h", "openai:m@http://h?key=s3cret", "openai:m@http://"]
        {
            let error = Address::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        let error = Address::parse("openai:m@http://me:s3cret@h/v1").unwrap_err().to_string();
        assert!(error.contains("password") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn a_key_belongs_to_a_host() {
        let address = Address::parse("openai:m@http://localhost:8000").unwrap().unwrap();
        let access =
            |key: &str, reach| EncoderAccess { key: EncoderKey::parse(key), reach, ..EncoderAccess::default() };
        for (key, reach, named, expected) in [
            ("sk-1", Reach::Any, Named::Request, (Some("sk-1"), Reach::Any)),
            ("sk-1", Reach::Public, Named::Request, (None, Reach::Public)),
            ("sk-1", Reach::Any, Named::Collection, (None, Reach::Public)),
            ("localhost:8000 sk-1", Reach::Any, Named::Collection, (Some("sk-1"), Reach::Any)),
            ("localhost:8001 sk-1", Reach::Any, Named::Request, (None, Reach::Any)),
            (" ", Reach::Any, Named::Request, (None, Reach::Any)),
        ] {
            assert_eq!(access(key, reach).of(&address, named).unwrap(), expected, "{key} {reach:?} {named:?}");
        }
        assert!(!format!("{:?}", access("sk-1", Reach::Any)).contains("sk-1"));
    }
}
