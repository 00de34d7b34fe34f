//! `explain` in the terminal, in brief and in full, and its JSON; its page is a snapshot of `heap_picture`.

use report::Screen;
use report::model::explain::ExplainReport;
use report::model::schema_of;
use report::text::{self, Detail};

use crate::heap_picture::fragmented;

#[test]
fn in_brief() {
    insta::assert_snapshot!(text::explain(&fragmented(), &Screen::default()));
}

#[test]
fn in_full() {
    let mut screen = Screen::default();
    screen.detail = Detail::All;
    insta::assert_snapshot!(text::explain(&fragmented(), &screen));
}

#[test]
fn the_json_is_what_its_schema_says() {
    let schema = schema_of::<ExplainReport>().unwrap();
    let [schema, answer] = [schema, report::json(&fragmented()).unwrap()]
        .map(|text| serde_json::from_str(&text).unwrap());
    assert!(jsonschema::is_valid(&schema, &answer));
}
