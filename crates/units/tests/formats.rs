//! How values of charts look, as a list that the page's own formatter is tested with, too: `formats.json`, written anew by
//! `BLESS=1 cargo test -p memtide-units --test formats`.

use std::path::Path;

use units::{Bytes, BytesPerSecond, Count, Pages, PerSecond, Quantity, Ratio, Span};

/// Where rounding, digits, groups of digits and small words begin and end.
const NUMBERS: [f64; 30] = [
    0.0,
    0.000_4,
    0.000_949,
    0.000_951,
    0.004_9,
    0.009_49,
    0.009_51,
    0.012_5,
    0.094_9,
    0.095_1,
    0.25,
    0.35,
    0.5,
    1.0,
    1.04,
    1.25,
    2.5,
    9.94,
    9.949_9,
    9.95,
    9.96,
    10.5,
    11.5,
    99.4,
    999.5,
    1_000.0,
    1_023.4,
    1_023.6,
    11_900.0,
    1_234_567.0,
];

const PREFIXES: [f64; 6] =
    [1.0, 1_024.0, 1_048_576.0, 1_073_741_824.0, 1_099_511_627_776.0, 1_125_899_906_842_624.0];

type Print = fn(f64) -> String;

/// Each unit of charts, how its values print, and whether they have prefixes and may be negative.
const UNITS: [(&str, Print, bool, bool); 7] = [
    ("bytes", bytes, true, true),
    ("bytes/s", |value| BytesPerSecond::from_f64(value).to_string(), true, true),
    ("pages/s", |value| PerSecond::<Pages>::from_f64(value).to_string(), false, true),
    ("share", |value| Ratio::from_f64(value).to_string(), false, true),
    ("count", |value| Count::from_f64(value).to_string(), false, false),
    ("count/s", |value| PerSecond::<Count>::from_f64(value).to_string(), false, true),
    ("ms", |value| Span::from_secs_f64(value / 1e3).to_string(), false, false),
];

/// A size has no sign; a difference of sizes has.
fn bytes(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", Bytes::from_f64(value.abs()))
}

/// Where a length of time changes its unit, in milliseconds.
const MILLISECONDS: [f64; 16] = [
    0.000_4,
    0.4,
    0.999_4,
    0.999_6,
    1.5,
    12.0,
    999.4,
    999.6,
    1_500.0,
    59_940.0,
    119_400.0,
    119_600.0,
    7_169_000.0,
    7_171_000.0,
    170_990_000.0,
    171_010_000.0,
];

fn values(unit: &str, has_prefixes: bool, may_be_negative: bool) -> Vec<f64> {
    let mut values: Vec<f64> = match unit {
        "share" => NUMBERS.iter().map(|number| number / 100.0).collect(),
        "ms" => NUMBERS.into_iter().chain(MILLISECONDS).collect(),
        _ => NUMBERS.to_vec(),
    };
    if has_prefixes {
        values.push(6_501_171.2);
        values.extend(PREFIXES.iter().flat_map(|prefix| NUMBERS.map(|number| number * prefix)));
    }
    if may_be_negative {
        values.extend([-0.000_4, -0.25, -1.5, -11_900.0, -6_501_171.2]);
    }
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn list() -> String {
    let mut text = String::from("[\n");
    for (unit, print, has_prefixes, may_be_negative) in UNITS {
        for value in values(unit, has_prefixes, may_be_negative) {
            let printed = print(value);
            text.push_str(&format!(
                "  {{\"unit\":\"{unit}\",\"value\":{value},\"text\":\"{printed}\"}},\n"
            ));
        }
    }
    text.truncate(text.trim_end().len() - 1);
    text + "\n]\n"
}

#[test]
fn the_list_of_formats_is_what_units_print() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats.json");
    let list = list();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &list).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == list,
        "{} is out of date: BLESS=1 cargo test -p memtide-units --test formats",
        path.display()
    );
}
