//! Addresses as people write them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An address with or without a port; one of version 6 may have its brackets in both cases.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let bracketed = || inner?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let bare = || text.parse::<IpAddr>().ok().or_else(bracketed);
    let cure = "write it as ADDRESS or ADDRESS:PORT, like 127.0.0.1:4000 or [::1]:4000";
    text.parse().ok().or_else(|| bare().map(|ip| SocketAddr::new(ip, 0))).ok_or_else(|| cure.into())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_of_both_versions_are_taken_with_and_without_port_and_brackets() {
        for (text, address_of) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("127.0.0.1:4000", "127.0.0.1:4000"),
            ("::1", "[::1]:0"),
            ("[::1]", "[::1]:0"),
            ("[::1]:4000", "[::1]:4000"),
        ] {
            assert_eq!(address(text).map(|at| at.to_string()), Ok(address_of.into()));
        }
        for text in ["", "localhost", "[127.0.0.1]", "[::1", "127.0.0.1:x", "[[::1]]"] {
            assert!(address(text).is_err_and(|error| error.contains("[::1]:4000")), "{text}");
        }
    }
}
