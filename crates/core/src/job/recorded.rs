//! Options as they are recorded with a run, there and back: with them the job file makes the same
//! program again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Options;

/// As it stands in the journal. What is not there is as if it had not been given.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Recorded {
    params: BTreeMap<String, String>,
    at_once: Option<u32>,
    timeout_ns: Option<u64>,
    inputs: Option<String>,
    only: Option<Vec<u32>>,
    /// Columns of the tables that were there before the run.
    csv_headers: BTreeMap<String, Vec<String>>,
}

impl Options {
    /// What is recorded of the options. The name is not: it is the job's, which is recorded itself.
    #[must_use]
    pub fn to_json(&self) -> String {
        let headers = self.csv_headers.iter();
        // With another table there is no program.
        let headers = headers.filter_map(|(key, columns)| Some((key, columns.as_ref().ok()?)));
        let recorded = Recorded {
            params: self.params.clone(),
            at_once: self.at_once,
            timeout_ns: self
                .timeout
                .map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
            inputs: self.inputs.clone(),
            only: self.only.clone(),
            csv_headers: headers.map(|(key, columns)| (key.clone(), columns.clone())).collect(),
        };
        serde_json::json!(recorded).to_string()
    }

    /// The options of a run, as they were recorded, for a job of this name.
    ///
    /// # Errors
    /// In words, if the text was not made by [`Self::to_json`].
    pub fn from_json(text: &str, name: &str) -> Result<Self, String> {
        let recorded: Recorded = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let headers = recorded.csv_headers.into_iter();
        Ok(Self {
            name: name.to_owned(),
            params: recorded.params,
            at_once: recorded.at_once,
            timeout: recorded.timeout_ns.map(Duration::from_nanos),
            only: recorded.only,
            inputs: recorded.inputs,
            csv_headers: headers.map(|(key, columns)| (key, Ok(columns))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_back_as_they_were_recorded() {
        let options = Options {
            name: "job".to_owned(),
            params: [("k".to_owned(), "\"v\"\n".to_owned())].into(),
            at_once: Some(3),
            timeout: Some(Duration::from_micros(1500)),
            inputs: Some("/in puts".to_owned()),
            only: Some(vec![1, 7]),
            csv_headers: [("in:a.csv".to_owned(), Ok(vec!["x".to_owned()]))].into(),
        };
        assert_eq!(Options::from_json(&options.to_json(), "job"), Ok(options));
        let none = Options { name: "job".to_owned(), ..Options::default() };
        assert_eq!(Options::from_json("{}", "job"), Ok(none));
        assert!(Options::from_json("[", "job").is_err());
    }
}
