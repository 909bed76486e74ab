//! Who may ask: the name that a client calls this machine by, the web page that it asks for, and its key.
//!
//! A page of somebody else can make a browser ask a server of this machine, also under a name of the page's own that
//! points here (rebinding). So a name must be known; an address cannot be made to point elsewhere. And where a browser
//! says which page it asks for, that page must be this server's own or one that is allowed.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use url::Url;

use crate::keys::{Keys, Scope};
use crate::refusal::Refusal;

/// Another header that clients put a key into.
const API_KEY: &str = "x-api-key";

/// The clients that are answered.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Names of this machine, in lower case.
    pub(crate) hosts: Vec<String>,
    /// Origins as browsers write them.
    pub(crate) origins: Vec<String>,
    pub(crate) keys: Option<Keys>,
}

impl Guard {
    /// An error unless the request calls this machine by a name it has, and comes from no foreign page.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), Refusal> {
        let refused = |code, message: &str| Err(Refusal::new(StatusCode::FORBIDDEN, code, message));
        let Some(host) = only(request.headers(), HOST.as_str()) else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "host", "the request needs one header Host"));
        };
        let in_uri = request.uri().authority().map(|authority| authority.as_str());
        if ![Some(host), in_uri].into_iter().flatten().all(|authority| self.knows(authority)) {
            return refused("host", "this server does not go by the name in the header Host");
        }
        match only(request.headers(), ORIGIN.as_str()) {
            None if request.headers().contains_key(ORIGIN) => refused("origin", "the header Origin is not readable"),
            Some(origin) if !self.is_own(origin, host) => {
                refused("origin", "pages of that origin may not ask this server")
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An error unless the request shows a key that lets its owner do so much.
    pub(crate) fn authorize(&self, headers: &HeaderMap, wanted: Scope) -> Result<(), Refusal> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let shown = shown(headers);
        match shown.and_then(|key| keys.scope(key)) {
            Some(scope) if scope >= wanted => Ok(()),
            Some(_) => Err(Refusal::new(StatusCode::FORBIDDEN, "scope", "this key may read only")),
            None => {
                let message = if shown.is_some() { "this key is not known" } else { "this server asks for a key" };
                Err(Refusal::new(StatusCode::UNAUTHORIZED, "key", message).hint("Authorization: Bearer KEY"))
            }
        }
    }

    fn knows(&self, authority: &str) -> bool {
        let Ok(url) = Url::parse(&format!("http://{authority}/")) else { return false };
        if !url.username().is_empty() || url.password().is_some() || url.path() != "/" {
            return false;
        }
        match url.host() {
            Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => true,
            Some(url::Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || self.hosts.iter().any(|known| known == name)
            }
            None => false,
        }
    }

    fn is_own(&self, origin: &str, host: &str) -> bool {
        origin == format!("http://{host}") || self.origins.iter().any(|known| known == origin)
    }
}

/// The value of a header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let (first, more) = (values.next()?, values.next());
    first.to_str().ok().filter(|_| more.is_none())
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    let bearer = |value: &'_ str| -> Option<usize> {
        let (scheme, _) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(scheme.len() + 1)
    };
    match only(headers, AUTHORIZATION.as_str()) {
        Some(value) => bearer(value).map(|at| value[at..].trim()),
        None => only(headers, API_KEY),
    }
}

/// True for an address that only this machine reaches.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn guard() -> Guard {
        let (hosts, origins) = (vec!["box.example".to_owned()], vec!["https://app.example".to_owned()]);
        Guard { hosts, origins, keys: None }
    }

    fn asked(uri: &str, headers: &[(&str, &str)]) -> Request {
        let request =
            headers.iter().fold(Request::builder().uri(uri), |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn names_that_are_not_this_machines_are_refused() {
        for host in
            ["localhost", "localhost:8181", "LOCALHOST.", "127.0.0.1:1", "[::1]:8181", "10.0.0.7", "box.example"]
        {
            assert!(guard().admit(&asked("/", &[("host", host)])).is_ok(), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8181", "localhost.evil.example", "", "a b", "u@localhost", "localhost/x"]
        {
            assert!(guard().admit(&asked("/", &[("host", host)])).is_err(), "{host}");
        }
        assert!(guard().admit(&asked("/", &[])).is_err(), "no name at all");
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert!(guard().admit(&asked("/", &two)).is_err(), "two names");
        assert!(
            guard().admit(&asked("http://evil.example/", &[("host", "localhost")])).is_err(),
            "a name in the address"
        );
    }

    #[test]
    fn pages_of_others_are_refused() {
        let from = |origin: &str| guard().admit(&asked("/", &[("host", "localhost:8181"), ("origin", origin)]));
        for origin in ["http://localhost:8181", "https://app.example"] {
            assert!(from(origin).is_ok(), "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:3000", "https://localhost:8181", "", "file://"]
        {
            assert_eq!(from(origin).unwrap_err().status, 403, "{origin}");
        }
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")];
        assert!(guard().admit(&asked("/", &two)).is_err());
    }
}
