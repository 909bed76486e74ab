//! Addresses that a host may be reached at where nobody vouches for the host: public ones.
//!
//! A name is looked up once, and the connection goes to an address that was looked at: there is no second look-up that
//! a name server could answer otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A name of an address of the machine itself, of its network, or of no network.
#[derive(Debug, thiserror::Error)]
#[error("{ip} is no public address: only a host that the user names may be there")]
pub(super) struct Private {
    ip: IpAddr,
}

/// The address of a host that is written as one, if it is not public.
pub(super) fn private(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    (!is_public(ip)).then_some(ip)
}

/// Looks names up, and gives none that has an address that is not public.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().map(SocketAddr::ip).find(|ip| !is_public(*ip)) {
                Some(ip) => Err(Private { ip }.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// True for an address that anybody on the internet reaches the same host by.
///
/// Source: the IANA registries of special-purpose addresses. Addresses that carry an IPv4 address are what that is.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => carried(ip).map_or_else(|| is_public_v6(ip), is_public_v4),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_multicast();
    let is_special = special
        || match ip.octets() {
            [0, ..] => true,                           // this network
            [100, second, ..] => second & 0xc0 == 64,  // shared by carriers
            [192, 0, 0, _] | [192, 88, 99, _] => true, // protocols; relays of 6to4
            [198, second, ..] => second & 0xfe == 18,  // benchmarks
            [first, ..] => first >= 240,               // reserved
        };
    !is_special
}

/// Only 2000::/3 is given out, and not all of it to hosts.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x2001, second, ..] if second < 0x200 => false, // protocols, Teredo among them
        [0x2001, 0xdb8, ..] => false,                    // documentation
        [0x3fff, second, ..] if second < 0x1000 => false, // documentation
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, translated (NAT64) or tunnelled (6to4).
fn carried(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_known_in_every_spelling() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.1",
            "198.51.100.1",
            "203.0.113.7",
            "192.88.99.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "4000::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for url in [
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://[::ffff:7f00:1]/",
            "http://[fe80::1]:9/",
        ] {
            assert!(private(&Url::parse(url).unwrap()).is_some(), "{url}");
        }
        assert!(private(&Url::parse("http://1.1.1.1/").unwrap()).is_none());
        assert!(private(&Url::parse("http://localhost/").unwrap()).is_none(), "a name is looked up when it is asked");
    }
}
