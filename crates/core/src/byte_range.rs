//! Ranges of bytes as people write them: `0-1023`, `1024-`, `-512`.

use musec_protocol::ByteRange;

/// Parses a range. Both ends are included.
pub(crate) fn parse(text: &str) -> Result<ByteRange, String> {
    let wrong =
        || format!("`{text}` is no range of bytes; write \"0-1023\", \"1024-\" or \"-512\"");
    let (from, to) = text.trim().split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| -> Result<Option<u64>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Some).ok_or_else(wrong)
    };
    match (number(from)?, number(to)?) {
        (Some(from), Some(to)) if from > to => Err(format!("`{text}` ends before it begins")),
        (Some(from), to) => Ok(ByteRange::From { from, to }),
        (None, Some(0)) => Err(format!("`{text}` is no byte at all")),
        (None, Some(last)) => Ok(ByteRange::Last(last)),
        (None, None) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_writes_them() {
        assert_eq!(parse("0-1023"), Ok(ByteRange::From { from: 0, to: Some(1023) }));
        assert_eq!(parse("7-7"), Ok(ByteRange::From { from: 7, to: Some(7) }));
        assert_eq!(parse("1024-"), Ok(ByteRange::From { from: 1024, to: None }));
        assert_eq!(parse("-512"), Ok(ByteRange::Last(512)));
        for text in
            ["", "-", "5", "a-b", "1-2-3", "5-4", "-0", "+1-2", "1 - 2", "99999999999999999999-"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
