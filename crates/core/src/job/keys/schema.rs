//! The JSON Schema of job files, for editors.

use serde_json::{Map, Value as Json, json};

use super::{Key, Place, Takes, actions};

/// The JSON Schema (draft 7) of job files, made from the table of keys that the parser uses. It is
/// wider than the parser, which also looks into texts.
#[must_use]
pub fn json_schema() -> Json {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "musec job file",
    });
    let definitions: Map<String, Json> =
        [Place::Job, Place::Wave, Place::Items, Place::Results, Place::Step]
            .into_iter()
            .map(|place| (definition(place).to_owned(), object(place)))
            .collect();
    if let (Some(schema), Json::Object(file)) = (schema.as_object_mut(), object(Place::File)) {
        schema.extend(file);
        schema.insert("definitions".to_owned(), Json::Object(definitions));
    }
    schema
}

const fn definition(place: Place) -> &'static str {
    match place {
        Place::File => "file",
        Place::Job => "job",
        Place::Wave => "wave",
        Place::Items => "items",
        Place::Results => "results",
        Place::Step => "step",
    }
}

fn reference(place: Place) -> Json {
    json!({ "$ref": format!("#/definitions/{}", definition(place)) })
}

/// A table of the file.
fn object(place: Place) -> Json {
    let properties: Map<String, Json> =
        place.keys().map(|key| (key.name.to_owned(), property(key))).collect();
    let mut object = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    let alternatives: Vec<Json> = match place {
        Place::Step => actions().map(|action| json!({ "required": [action] })).collect(),
        Place::Items => place.names().map(|name| json!({ "required": [name] })).collect(),
        Place::File | Place::Job | Place::Wave | Place::Results => Vec::new(),
    };
    let required: &[&str] = match place {
        Place::Wave => &["name", "step"],
        Place::Results => &["to"],
        Place::File | Place::Job | Place::Items | Place::Step => &[],
    };
    if let Some(object) = object.as_object_mut() {
        if !alternatives.is_empty() {
            object.insert("oneOf".to_owned(), Json::from(alternatives));
        }
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
    }
    object
}

fn property(key: &Key) -> Json {
    let description = if key.default.is_empty() {
        key.doc.to_owned()
    } else {
        format!("{} Default: {}.", key.doc, key.default)
    };
    let mut property = json!({ "description": description });
    if let (Some(property), Json::Object(kind)) = (property.as_object_mut(), kind(key.takes)) {
        // Beside a reference nothing else counts, in this draft.
        if kind.contains_key("$ref") {
            property.insert("allOf".to_owned(), json!([kind]));
        } else {
            property.extend(kind);
        }
    }
    property
}

fn kind(takes: Takes) -> Json {
    let text = || json!({ "type": "string", "minLength": 1 });
    match takes {
        Takes::Name
        | Takes::Template
        | Takes::Expression
        | Takes::Duration
        | Takes::DurationTemplate => text(),
        Takes::Count => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, text()] }),
        Takes::Number => json!({ "type": "integer", "minimum": 1 }),
        Takes::Boolean => json!({ "type": "boolean" }),
        Takes::True => json!({ "const": true }),
        Takes::Names => json!({ "anyOf": [text(), { "type": "array", "items": text() }] }),
        Takes::Numbers => json!({
            "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 },
        }),
        Takes::Values => json!({ "type": "array", "minItems": 1 }),
        Takes::OneOf(names) => json!({ "enum": names }),
        Takes::Table => json!({ "type": "object" }),
        Takes::Environment => json!({
            "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        Takes::Loop => json!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": { "type": ["string", "array"] },
        }),
        Takes::Command => json!({
            "anyOf": [text(), { "type": "array", "minItems": 1, "items": { "type": "string" } }],
        }),
        Takes::Items => json!({ "anyOf": [text(), reference(Place::Items)] }),
        Takes::Results => {
            let rule = json!({ "anyOf": [text(), reference(Place::Results)] });
            json!({ "anyOf": [rule.clone(), { "type": "array", "items": rule }] })
        }
        Takes::Steps => steps(),
        Takes::Lanes => json!({
            "type": "object", "minProperties": 1, "additionalProperties": steps(),
        }),
        Takes::Job => reference(Place::Job),
        Takes::Waves => {
            json!({ "type": "array", "minItems": 1, "items": reference(Place::Wave) })
        }
    }
}

fn steps() -> Json {
    json!({
        "anyOf": [
            { "type": "array", "minItems": 1, "items": reference(Place::Step) },
            reference(Place::Step),
        ],
    })
}
