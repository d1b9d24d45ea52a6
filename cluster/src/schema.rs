//! The JSON schema of the cluster file, for editors that complete and check TOML.

use serde_json::{Map, Value, json};

use crate::keys::{FILE, Keys, Kind};

/// The schema (JSON Schema draft 2020-12) as text, ending in a line feed.
///
/// An editor checks keys, kinds of values and words with it; ranges, references and what belongs
/// together are checked by [`parse`](crate::parse) only.
///
/// # Panics
/// Never: a value of strings and numbers can always be written.
pub fn schema() -> String {
    let mut schema = object(FILE);
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("Meikyo cluster file"));
    schema.insert("required".into(), json!(["name"]));
    let text = serde_json::to_string_pretty(&Value::Object(schema));
    text.expect("strings and numbers can always be written") + "\n"
}

fn object(keys: Keys) -> Map<String, Value> {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.into(), property(key.kind, key.doc))).collect();
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("additionalProperties".to_owned(), json!(false)),
        ("properties".to_owned(), Value::Object(properties)),
    ])
}

fn property(kind: Kind, doc: &str) -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let texts = json!({ "type": "array", "items": text, "minItems": 1 });
    let mut value = match kind {
        Kind::Text => text,
        Kind::Names => json!({ "anyOf": [text, texts] }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Secret => {
            json!({ "type": "string", "pattern": "^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$" })
        }
        Kind::Span => {
            json!({ "type": "string", "pattern": "^[0-9_]+(\\.[0-9_]+)? *(ns|us|µs|ms|s|min|h|d)$" })
        }
        Kind::Count(least, greatest) => {
            json!({ "type": "integer", "minimum": least, "maximum": greatest })
        }
        Kind::Level => json!({ "anyOf": [{ "type": "number" }, text] }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Measures => texts,
        Kind::Section(keys) => Value::Object(object(keys)),
        Kind::Sections(keys) => json!({ "type": "array", "items": object(keys) }),
        Kind::Named(keys) => json!({ "type": "object", "additionalProperties": object(keys) }),
    };
    value["description"] = json!(doc);
    value
}
