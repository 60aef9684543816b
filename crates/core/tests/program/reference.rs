//! The reference page and the schema: what they show is true, and they are up to date in the docs.

use std::path::Path;

use musec_core::job::{json_schema, parse, reference_markdown};
use serde_json::Value as Json;

use crate::{options, render};

/// Compares a file of the docs with what it should be; writes it if `MUSEC_UPDATE_DOCS` is set.
fn is_up_to_date(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src").join(file);
    if std::env::var_os("MUSEC_UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/src/{file} is not up to date: run this test with MUSEC_UPDATE_DOCS=1"
    );
}

#[test]
fn every_example_of_the_reference_is_a_right_job_file() {
    let page = reference_markdown();
    let mut examples = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        if let Err(errors) = parse(text, &options()) {
            panic!("{text}\n{}", render(text, &errors));
        }
        examples += 1;
    }
    assert_eq!(examples, page.matches("\n### ").count());
    assert!(examples > 50, "{examples}");
}

#[test]
fn every_example_uses_its_key() {
    for section in reference_markdown().split("\n### `").skip(1) {
        let (key, rest) = section.split_once('`').unwrap();
        let example = rest.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(example.contains(key), "{key}: {example}");
    }
}

#[test]
fn the_reference_page_in_the_docs_is_up_to_date() {
    is_up_to_date("reference.md", &reference_markdown());
}

#[test]
fn the_schema_in_the_docs_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&json_schema()).unwrap();
    is_up_to_date("job.schema.json", &format!("{schema}\n"));
}

#[test]
fn the_schema_names_only_what_it_defines() {
    fn references(value: &Json, found: &mut Vec<String>) {
        match value {
            Json::Object(entries) => {
                for (key, value) in entries {
                    match value {
                        Json::String(target) if key == "$ref" => found.push(target.clone()),
                        _ => references(value, found),
                    }
                }
            }
            Json::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let schema = json_schema();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.len() > 8);
    for target in found {
        let path = target.strip_prefix('#').unwrap();
        assert!(schema.pointer(path).is_some(), "{target}");
    }
}

#[test]
fn the_schema_has_the_keys_that_the_parser_knows() {
    let schema = json_schema();
    let keys = |place: &str| -> Vec<String> {
        let keys = schema.pointer(&format!("{place}/properties")).unwrap();
        keys.as_object().unwrap().keys().cloned().collect()
    };
    let unknown = |text: String| {
        let errors = parse(&text, &options()).err().map_or_else(Vec::new, |errors| errors.0);
        errors.into_iter().any(|error| error.message.starts_with("unknown key"))
    };
    for key in keys("/definitions/job") {
        assert!(!unknown(format!("[job]\n{key} = 1979-05-27\n")), "{key}");
    }
    for key in keys("/definitions/step") {
        assert!(!unknown(format!("[[step]]\n{key} = 1979-05-27\n")), "{key}");
    }
    for key in keys("/definitions/wave") {
        assert!(!unknown(format!("[[wave]]\n{key} = 1979-05-27\n")), "{key}");
    }
    assert!(unknown("[job]\nnope = 1\n".to_owned()));
}
