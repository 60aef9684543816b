//! Values of a job file, and how they are written.

use std::fmt::Write as _;

/// A value of TOML; tables keep the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text. Where a job file takes expressions, it is one; `'a'` is the text `a` there.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// Yes or no.
    Boolean(bool),
    /// Several.
    List(Vec<Self>),
    /// Several with names.
    Table(Vec<(String, Self)>),
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    &str => Text, String => Text,
    i32 => Integer, u32 => Integer, i64 => Integer,
    f64 => Float, bool => Boolean, Vec<Self> => List,
}

impl<V: Into<Self>, const N: usize> From<[V; N]> for Value {
    fn from(values: [V; N]) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl Value {
    /// Writes it; lists of tables over several lines, `indent` levels deep.
    pub(super) fn write(&self, out: &mut String, indent: usize) {
        match self {
            Self::Text(text) => write_text(out, text),
            Self::Integer(number) => drop(write!(out, "{number}")),
            Self::Float(number) if number.is_nan() => out.push_str("nan"),
            // With a point, or as `inf`.
            Self::Float(number) => drop(write!(out, "{number:?}")),
            Self::Boolean(value) => drop(write!(out, "{value}")),
            Self::List(values) if values.iter().any(|value| matches!(value, Self::Table(_))) => {
                write_steps(out, values, indent);
            }
            Self::List(values) => {
                separated(out, ['[', ']'], values, |out, value| value.write(out, indent));
            }
            Self::Table(entries) if entries.is_empty() => out.push_str("{}"),
            Self::Table(entries) => {
                separated(out, ['{', '}'], entries, |out, (key, value)| {
                    write_entry(out, key, value, indent);
                });
            }
        }
    }
}

/// `key = value`.
pub(super) fn write_entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        out.push_str(key);
    } else {
        write_text(out, key);
    }
    out.push_str(" = ");
    value.write(out, indent);
}

fn separated<T>(
    out: &mut String,
    [open, close]: [char; 2],
    values: &[T],
    write: impl Fn(&mut String, &T),
) {
    let space = if open == '{' { " " } else { "" };
    out.push(open);
    out.push_str(space);
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        write(out, value);
    }
    out.push_str(space);
    out.push(close);
}

fn write_steps(out: &mut String, values: &[Value], indent: usize) {
    out.push_str("[\n");
    for value in values {
        out.push_str(&"    ".repeat(indent + 1));
        value.write(out, indent + 1);
        out.push_str(",\n");
    }
    out.push_str(&"    ".repeat(indent));
    out.push(']');
}

/// A basic string of TOML.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_as_it_was() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain(['😀', '\u{fffd}']).collect();
        let values = [
            Value::from(all.as_str()),
            Value::from(i64::MIN),
            Value::from(0.1),
            Value::from(1e300),
            Value::from(f64::INFINITY),
            Value::from(true),
            Value::from([1, 2]),
            Value::Table(Vec::new()),
            Value::Table(vec![("a b\"\n".to_owned(), Value::from(["x", "y"]))]),
            Value::List(vec![Value::Table(vec![("do".to_owned(), Value::List(Vec::new()))])]),
        ];
        for value in values {
            let mut text = String::new();
            write_entry(&mut text, "v", &value, 0);
            let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(read(&table["v"]), value, "{text}");
        }
    }

    fn read(value: &toml::Value) -> Value {
        match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Integer(number) => Value::Integer(*number),
            toml::Value::Float(number) => Value::Float(*number),
            toml::Value::Boolean(value) => Value::Boolean(*value),
            toml::Value::Array(values) => Value::List(values.iter().map(read).collect()),
            toml::Value::Table(table) => {
                Value::Table(table.iter().map(|(key, value)| (key.clone(), read(value))).collect())
            }
            toml::Value::Datetime(_) => unreachable!("nothing writes one"),
        }
    }
}
