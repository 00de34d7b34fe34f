//! The schemas of all answers, as files.

use report::model::headroom::HeadroomReport;
use report::model::series::SeriesReport;
use report::model::{CompareReport, EventsReport, WhereByReport, schema_of};

use crate::answer::Body;
use crate::refusal::Unanswered;

/// Names of schemas, each with the addresses of which it describes the answer.
pub(crate) const ALL: [(&str, &str); 6] = [
    ("report", "/api/v1/check"),
    ("where-by", "/api/v1/where?by="),
    ("headroom", "/api/v1/headroom"),
    ("compare", "/api/v1/compare"),
    ("events", "/api/v1/events"),
    ("series", "/api/v1/series"),
];

/// Returns a schema by the name of its file.
pub(crate) fn file(name: &str) -> Result<Body, Unanswered> {
    let schema = match name.strip_suffix(".schema.json").unwrap_or(name) {
        "report" => schema_of::<report::Report>(),
        "where-by" => schema_of::<WhereByReport>(),
        "headroom" => schema_of::<HeadroomReport>(),
        "compare" => schema_of::<CompareReport>(),
        "events" => schema_of::<EventsReport>(),
        "series" => schema_of::<SeriesReport>(),
        _ => {
            let names = ALL.map(|(name, _)| name).join(", ");
            return Err(Unanswered::absent("there is no such schema")
                .with_help(format!("there are {names}")));
        }
    };
    Ok(Body::json(schema?))
}

/// Returns the list of all addresses for programs.
pub(crate) fn index() -> Result<Body, Unanswered> {
    let schemas: serde_json::Map<String, serde_json::Value> = ALL
        .iter()
        .map(|(name, address)| {
            ((*address).to_owned(), format!("/schemas/{name}.schema.json").into())
        })
        .collect();
    let value = serde_json::json!({
        "memtide": env!("CARGO_PKG_VERSION"),
        "addresses": ["/api/v1/check", "/api/v1/where", "/api/v1/headroom", "/api/v1/compare", "/api/v1/events",
                      "/api/v1/series", "/changes", "/mcp", "/metrics", "/healthz"],
        "schemas": schemas,
    });
    Ok(Body::json(report::json(&value)?))
}
