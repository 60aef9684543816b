//! Items out of files: lines, and rows of a table.

use csv::StringRecord;
use serde_json::{Map, Value as Json};

use crate::job::{is_identifier, is_reserved_for_columns};
use crate::limits::ITEMS_MAX;

/// Lines without their ends; empty ones are passed over.
pub(super) fn lines(text: &[u8]) -> Result<Vec<Json>, String> {
    let text = utf8(text)?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(Json::from).collect())
}

/// A file's text, without a byte order mark.
fn utf8(text: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = text.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The names in a table's first line (RFC 4180).
///
/// # Errors
/// Says what is wrong with them: no name, two of one, or one that an expression cannot name.
pub fn header(text: &[u8]) -> Result<Vec<String>, String> {
    // A file of which only the beginning was read may end within a character.
    let first = text.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = if text.contains(&b'"') { text } else { first };
    names(&mut reader(utf8(text)?))
}

/// The rows of a table with a header, each a table of its own. Columns may not be called as one of
/// `params`.
pub(super) fn rows(text: &[u8], params: &[&str]) -> Result<Vec<Json>, String> {
    let mut reader = reader(utf8(text)?);
    let names = names(&mut reader)?;
    if let Some(name) = names.iter().find(|name| params.contains(&name.as_str())) {
        return Err(format!("its column `{name}` is called like a parameter of the job"));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(in_words)?;
        let values = record.iter().map(typed);
        let row: Map<String, Json> = names.iter().cloned().zip(values).collect();
        rows.push(Json::Object(row));
        if rows.len() as u64 > ITEMS_MAX {
            return Err(format!("it has more than {ITEMS_MAX} rows"));
        }
    }
    Ok(rows)
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().has_headers(true).from_reader(text.as_bytes())
}

fn names(reader: &mut csv::Reader<&[u8]>) -> Result<Vec<String>, String> {
    let header: StringRecord = reader.headers().map_err(in_words)?.clone();
    let mut names: Vec<String> = Vec::new();
    for name in header.iter().map(str::trim) {
        if !is_identifier(name) {
            let name = name.escape_debug();
            return Err(format!(
                "its column `{name}` cannot be used in an expression: use letters, digits and `_`, \
                 not a digit first"
            ));
        }
        if is_reserved_for_columns(name) {
            return Err(format!("its column `{name}` has a name of musec's own: rename it"));
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("it has two columns `{name}`"));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() {
        return Err("it has no header".to_owned());
    }
    Ok(names)
}

/// A field as the value that it looks like. What would not come out as it was written stays a text:
/// `007` is no number.
fn typed(field: &str) -> Json {
    match field {
        "true" => return Json::from(true),
        "false" => return Json::from(false),
        _ => {}
    }
    let digits = field.strip_prefix('-').unwrap_or(field);
    let has_zeros = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let is_numeric = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit());
    if !is_numeric || has_zeros {
        return Json::from(field);
    }
    if let Ok(number) = field.parse::<i64>() {
        return if field == "-0" { Json::from(field) } else { Json::from(number) };
    }
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let float = field.parse::<f64>().ok().filter(|_| !is_whole);
    float.and_then(serde_json::Number::from_f64).map_or_else(|| Json::from(field), Json::Number)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn in_words(error: csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            format!("line {line} has {len} fields, the header has {expected_len}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_the_values_that_they_look_like() {
        for (field, value) in [
            ("1", json!(1)),
            ("-17", json!(-17)),
            ("0", json!(0)),
            ("1.5", json!(1.5)),
            ("0.25", json!(0.25)),
            ("1e3", json!(1000.0)),
            ("true", json!(true)),
            ("007", json!("007")),
            ("-0", json!("-0")),
            ("1e999", json!("1e999")),
            ("99999999999999999999", json!("99999999999999999999")),
            ("inf", json!("inf")),
            ("1.", json!("1.")),
            ("+1", json!("+1")),
            (" 1", json!(" 1")),
            ("True", json!("True")),
            ("", json!("")),
        ] {
            assert_eq!(typed(field), value, "{field:?}");
        }
    }

    #[test]
    fn rows_follow_rfc_4180() {
        let text = "a,b\r\n\"x, \"\"y\"\"\nz\",2\r\n,\r\n";
        assert_eq!(
            rows(text.as_bytes(), &[]),
            Ok(vec![json!({"a": "x, \"y\"\nz", "b": 2}), json!({"a": "", "b": ""})])
        );
        assert_eq!(rows("\u{feff}a\n1".as_bytes(), &[]), Ok(vec![json!({"a": 1})]));
        assert_eq!(rows(b"a,b\n", &[]), Ok(Vec::new()));
    }

    #[test]
    fn tables_that_are_none_are_refused_with_their_line() {
        for (text, error) in [
            (&b"a,b\n1\n"[..], "line 2 has 1 fields, the header has 2"),
            (b"a,a\n", "two columns `a`"),
            (b"a b\n", "`a b` cannot be used"),
            (b"a,\n", "`` cannot be used"),
            (b"index\n", "a name of musec's own"),
            (b"n\n1\n", "called like a parameter"),
            (b"", "no header"),
            (b"a\n\xff\n", "line 2 is not UTF-8"),
        ] {
            let found = rows(text, &["n"]).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
        assert_eq!(rows(b"name\nx\n", &[]), Ok(vec![json!({"name": "x"})]));
    }

    #[test]
    fn lines_have_no_ends_and_are_never_empty() {
        let found = lines("a b\r\n\n c\nend".as_bytes()).unwrap();
        assert_eq!(found, ["a b", " c", "end"]);
        assert!(lines(b"a\n\xff").is_err());
    }

    #[test]
    fn a_header_is_read_without_the_rest() {
        assert_eq!(header(b"a,b\n1,\xff").unwrap(), ["a", "b"]);
        assert_eq!(header(b"\"a\",b\n1,2").unwrap(), ["a", "b"]);
    }
}
