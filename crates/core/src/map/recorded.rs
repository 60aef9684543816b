//! A map as it is recorded with a run, there and back. Its items are recorded apart.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ByteItems, Map, decode, encode};

/// As it stands in the journal, with words of any bytes as text.
#[derive(Serialize, Deserialize)]
struct Recorded {
    map: Words,
}

#[derive(Serialize, Deserialize)]
struct Words {
    command: Vec<String>,
    put: Option<String>,
    folder: String,
    items: usize,
    workers: u32,
    timeout_ns: Option<u64>,
}

impl Map {
    /// What is recorded of it, but for its items, of which their number is.
    #[must_use]
    pub fn to_json(&self) -> String {
        let map = Words {
            command: self.command.iter().map(|word| encode(word)).collect(),
            put: self.put.as_deref().map(encode),
            folder: encode(&self.folder),
            items: self.items.len(),
            workers: self.workers,
            timeout_ns: self
                .timeout
                .map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
        };
        serde_json::json!(Recorded { map }).to_string()
    }

    /// The map of a run, as it was recorded; nothing if the run was of a job file.
    ///
    /// # Errors
    /// In words, if items are missing.
    pub fn from_json(text: &str, items: ByteItems) -> Result<Option<Self>, String> {
        let Ok(Recorded { map }) = serde_json::from_str(text) else { return Ok(None) };
        if map.items != items.len() {
            return Err(format!("of {} items {} are recorded", map.items, items.len()));
        }
        let bytes = |word: &String| decode(word).into_owned();
        Ok(Some(Self {
            command: map.command.iter().map(bytes).collect(),
            items,
            put: map.put.as_ref().map(bytes),
            folder: bytes(&map.folder),
            workers: map.workers,
            timeout: map.timeout_ns.map(Duration::from_nanos),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_any_bytes_comes_back_as_it_was_recorded() {
        let mut items = ByteItems::default();
        items.push(b"\xff%41");
        let map = Map {
            command: vec![b"a%\xfe".to_vec(), b"{in}".to_vec()],
            items: items.clone(),
            put: Some(b"out/\xfd{index}".to_vec()),
            folder: b"/home/\xfc".to_vec(),
            workers: 3,
            timeout: Some(Duration::from_millis(1)),
        };
        let text = map.to_json();
        let back = Map::from_json(&text, items).expect("sound").expect("a map");
        assert_eq!(format!("{back:?}"), format!("{map:?}"));
        assert!(Map::from_json(&text, ByteItems::default()).is_err());
        assert!(matches!(Map::from_json("{}", ByteItems::default()), Ok(None)));
    }
}
