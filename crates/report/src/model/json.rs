//! Any answer as JSON text, and the schemas of all.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::Report;
use timeline::plain::is_plain;

/// The report as JSON text, indented. What is not plainly visible is written as `\u202e`: programs read the same, and a
/// terminal that it is printed to is not steered by a name.
///
/// # Errors
/// None in practice: all values of the contract can be written.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string_pretty(value)?;
    // Outside of strings there is nothing but ASCII and the ends of lines.
    let is_harmless = |c: char| c == '\n' || is_plain(c);
    if text.chars().all(is_harmless) {
        return Ok(text);
    }
    let mut safe = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_harmless(c) {
            safe.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Ok(safe)
}

/// The JSON Schema of [`Report`], as published in `docs/report.schema.json`.
///
/// # Errors
/// None in practice, as for [`json`].
pub fn json_schema() -> Result<String, serde_json::Error> {
    schema_of::<Report>()
}

/// The JSON Schema of a command's answer; `docs/` has those of `check`, `headroom`, `compare`, `events` and
/// `record --status`.
///
/// # Errors
/// None in practice, as for [`json`].
pub fn schema_of<T: JsonSchema>() -> Result<String, serde_json::Error> {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    json(&schema)
}
