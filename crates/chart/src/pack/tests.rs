//! Packed values can be read back as exactly as they are drawn; `web` tests read the same bytes.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use flate2::read::DeflateDecoder;
use proptest::prelude::*;
use units::Span;

use super::*;
use crate::{ChartKind, ChartSeries, ChartUnit, Colour};

type Column = Vec<Option<f64>>;

/// Creates a chart with this many series.
fn chart(series: usize) -> Chart {
    let series = (0..series).map(|number| ChartSeries {
        id: format!("s{number}"),
        label: String::new(),
        colour: Colour::Nth(number),
        is_steps: false,
        is_negative: false,
        signals: Vec::new(),
        related: Vec::new(),
        inputs: Vec::new(),
        group: None,
        standing: None,
    });
    Chart {
        id: "test".to_owned(),
        title: String::new(),
        help: "",
        kind: ChartKind::Lines,
        unit: ChartUnit::Bytes,
        size: crate::ChartSize::Small,
        band: None,
        is_of_changes: false,
        is_log: false,
        top: None,
        series: series.collect(),
        limits: Vec::new(),
        quiet_up_to: None,
        absent: None,
        is_of_host: true,
        draw: Box::new(|_| Vec::new()),
    }
}

fn level(times: &[u64], cells: Vec<Vec<ColumnCells>>) -> CurveLevel {
    CurveLevel {
        times: times.iter().map(|ms| Span::from_millis(*ms)).collect(),
        is_reduced: false,
        cells,
    }
}

fn means(mean: Column) -> ColumnCells {
    ColumnCells { mean, extremes: None }
}

fn drawing(levels: Vec<CurveLevel>) -> Drawing {
    let mut drawing = Drawing::default();
    drawing.levels = levels;
    drawing
}

/// Reads packed bytes as the page does.
struct Unpack {
    bytes: std::vec::IntoIter<u8>,
}

impl Unpack {
    fn new(packed: &PackedLevels) -> Self {
        let mut bytes = Vec::new();
        let mut inflate = DeflateDecoder::new(packed.bytes.as_slice());
        inflate.read_to_end(&mut bytes).unwrap();
        Self { bytes: bytes.into_iter() }
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.bytes.next().unwrap();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    fn times(&mut self, rows: usize) -> Vec<u64> {
        let mut at = 0;
        let mut next = || {
            at += self.number();
            at
        };
        (0..rows).map(|_| next()).collect()
    }

    #[allow(clippy::cast_precision_loss)] // within 2⁵²
    fn column(&mut self, rows: usize, scale: f64) -> Column {
        let mut at: i64 = 0;
        let mut next = || {
            let zigzag = self.number().checked_sub(1)?;
            at += (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
            Some(at as f64 * scale)
        };
        (0..rows).map(|_| next()).collect()
    }

    /// `None` for a series that is absent.
    fn cells(&mut self, rows: usize, scale: f64) -> Option<ColumnCells> {
        let flag = self.bytes.next().unwrap();
        let mut columns = (0..flag).map(|_| self.column(rows, scale));
        let mean = columns.next()?;
        Some(ColumnCells { mean, extremes: columns.next().zip(columns.next()) })
    }

    fn level(
        &mut self,
        rows: usize,
        scales: &[Vec<f64>],
    ) -> (Vec<u64>, Vec<Vec<Option<ColumnCells>>>) {
        let times = self.times(rows);
        let charts = scales.iter().map(|scales| {
            let series = scales.iter().map(|scale| self.cells(rows, *scale));
            series.collect()
        });
        (times, charts.collect())
    }
}

fn unpacked(
    charts: &[Chart],
    drawing: &Drawing,
) -> (PackedLevels, Vec<Vec<Vec<Option<ColumnCells>>>>) {
    let packed = pack(charts, drawing);
    let mut unpack = Unpack::new(&packed);
    let levels = drawing.levels.iter().map(|level| {
        let (times, cells) = unpack.level(level.times.len(), &packed.scales);
        let sent = level.times.iter().map(|time| time.as_nanos() / 1_000_000);
        assert_eq!(times, sent.collect::<Vec<_>>());
        cells
    });
    let levels = levels.collect();
    assert_eq!(unpack.bytes.next(), None, "more than was announced");
    (packed, levels)
}

fn any_value() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        Just(Some(0.0)),
        (-1e12..1e12).prop_map(Some),
        (-1.0..1.0).prop_map(Some),
        any::<f64>().prop_map(Some),
    ]
}

fn any_cells() -> impl Strategy<Value = ColumnCells> {
    let column = || prop::collection::vec(any_value(), 0..40);
    let extremes = prop::option::of((column(), column()));
    (column(), extremes).prop_map(|(mean, extremes)| ColumnCells { mean, extremes })
}

/// Whether a value may be read back as this one.
fn is_near(sent: Option<f64>, got: Option<f64>, scale: f64) -> bool {
    match (sent.filter(|value| value.is_finite()), got) {
        (None, None) => true,
        // Only 0 is drawn as 0.
        (Some(sent), Some(got)) if sent.abs() < scale / 2.0 => {
            got == if sent == 0.0 { 0.0 } else { scale * sent.signum() }
        }
        (Some(sent), Some(got)) => (sent - got).abs() <= scale / 2.0,
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_unpacked_is_what_was_packed_but_for_half_a_step(
        first in prop::collection::vec(any_cells(), 3),
        second in prop::collection::vec(any_cells(), 3),
    ) {
        let times: Vec<u64> = (0..30).map(|row| row * row * 7).collect();
        let charts = [chart(2), chart(1)];
        let split = |mut cells: Vec<ColumnCells>| {
            let last = cells.split_off(2);
            vec![cells, last]
        };
        let levels = vec![level(&times, split(first)), level(&times[..9], split(second))];
        let drawing = drawing(levels);
        let (packed, got) = unpacked(&charts, &drawing);
        for (level, got) in drawing.levels.iter().zip(&got) {
            for ((sent, got), scales) in level.cells.iter().zip(got).zip(&packed.scales) {
                for ((sent, got), scale) in sent.iter().zip(got).zip(scales) {
                    let Some(got) = got else {
                        prop_assert!(sent.is_empty());
                        continue;
                    };
                    let got: Vec<_> = columns(got).collect();
                    for (sent, got) in columns(sent).zip(got) {
                        prop_assert_eq!(got.len(), level.times.len());
                        for (row, got) in got.iter().enumerate() {
                            let value = sent.get(row).copied().flatten();
                            prop_assert!(is_near(value, *got, *scale), "{value:?} {got:?} {scale}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rounding_is_invisible_and_sizes_of_pages_are_exact() {
    let values: Column = (0..200).map(|page| Some(f64::from(page) * 4096.0)).collect();
    let times: Vec<u64> = (0..200).map(|second| second * 1000).collect();
    let drawing = drawing(vec![level(&times, vec![vec![means(values.clone())]])]);
    let (_, got) = unpacked(&[chart(1)], &drawing);
    assert_eq!(got[0][0][0].as_ref().unwrap().mean, values);
    for largest in [0.001, 1.0, 3.7e9, 1e15] {
        assert!(scale(largest, STEPS) <= largest / STEPS);
        assert!(scale(largest, STEPS) > largest / STEPS / 2.1);
    }
}

#[test]
fn a_chart_that_shows_nothing_takes_no_byte() {
    let nothing = || means(vec![None, Some(f64::NAN)]);
    let charts = [chart(1), chart(2)];
    let cells = vec![
        vec![ColumnCells::default()],
        vec![ColumnCells::default(), means(vec![Some(1.0), None])],
    ];
    let one = drawing(vec![level(&[0, 1], cells)]);
    let packed = pack(&charts, &one);
    assert_eq!(packed.scales[0], Vec::<f64>::new());
    assert_eq!(packed.scales[1].len(), 2);
    assert!(!one.has(0) && one.has(1));
    let bad = drawing(vec![level(&[0, 1], vec![vec![nothing()]])]);
    let (_, got) = unpacked(&charts[..1], &bad);
    assert_eq!(got[0].first().map(Vec::len), Some(if bad.has(0) { 1 } else { 0 }));
}

#[test]
fn more_levels_never_shift_what_was_not_told() {
    let charts = [chart(2)];
    let whole = vec![means(vec![Some(5.0), None]), means(vec![Some(-2.0), Some(0.0)])];
    let part = vec![ColumnCells::default(), means(vec![Some(7.0)])];
    let drawing = drawing(vec![level(&[0, 60_000], vec![whole]), level(&[1_500], vec![part])]);
    let (_, got) = unpacked(&charts, &drawing);
    assert_eq!(got[1][0][0], None);
    assert_eq!(got[1][0][1].as_ref().unwrap().mean, [Some(7.0)]);
}

/// The data that `web` tests unpack: all kinds of columns, numbers of one to eight bytes, an absent series, two levels.
fn fixture() -> (Vec<Chart>, Drawing) {
    let sizes = vec![Some(0.0), Some(4096.0), None, Some(17_179_869_184.0), Some(1.0)];
    let rates = ColumnCells {
        mean: vec![Some(0.5), Some(12.25), Some(-3.0), None, Some(1e-3)],
        extremes: Some((
            vec![Some(0.25), Some(0.0), Some(-9.5), None, Some(1e-3)],
            vec![Some(1.75), Some(99.0), Some(0.0), None, Some(1e-3)],
        )),
    };
    let wide = means(vec![
        Some(4_503_599_627_370_496.0),
        Some(-4_503_599_627_370_496.0),
        Some(0.0),
        Some(1.0),
        None,
    ]);
    let whole = vec![vec![means(sizes), ColumnCells::default()], vec![rates], vec![wide]];
    let sharp = vec![
        vec![means(vec![Some(8192.0), None]), means(vec![Some(3.0), Some(4.0)])],
        vec![means(vec![None, Some(-1.5)])],
        vec![ColumnCells::default()],
    ];
    let levels = vec![
        level(&[0, 1_000, 2_500, 604_800_000, 604_800_001], whole),
        level(&[1_250, 1_500], sharp),
    ];
    (vec![chart(2), chart(1), chart(1)], drawing(levels))
}

#[test]
#[allow(clippy::disallowed_methods)] // a fixture beside the page's tests
fn the_page_is_tested_with_what_is_packed_here() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/fixtures/packed.json");
    let text = fixture_text();
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "web/test/fixtures/packed.json is out of date: BLESS=1 cargo test -p memtide-chart"
    );
}

fn fixture_text() -> String {
    let (charts, drawing) = fixture();
    let (packed, got) = unpacked(&charts, &drawing);
    let mut text = String::from("{\n\"meta\":{\"levels\":[");
    let mut heads = Vec::new();
    for level in &drawing.levels {
        let seconds = |time: &Span| time.as_secs_f64();
        let (from, to) =
            (level.times.first().map_or(0.0, seconds), level.times.last().map_or(0.0, seconds));
        let rows = level.times.len();
        heads.push(format!(r#"{{"from_s":{from},"to_s":{to},"rows":{rows},"is_reduced":false}}"#));
    }
    let scales = packed.scales.iter().map(|scales| {
        let series = scales.iter().map(|scale| format!(r#"{{"scale":{scale}}}"#));
        format!(r#"{{"series":[{}]}}"#, series.collect::<Vec<_>>().join(","))
    });
    let scales = scales.collect::<Vec<_>>().join(",");
    write!(text, "{}],\n\"charts\":[{scales}]}},\n", heads.join(",")).unwrap();
    writeln!(text, "\"base64\":\"{}\",", base64(&packed.bytes)).unwrap();
    let levels = got.iter().zip(&drawing.levels).map(|(charts, level)| {
        let times: Vec<String> =
            level.times.iter().map(|time| time.as_secs_f64().to_string()).collect();
        let charts = charts.iter().map(|series| {
            let series =
                series.iter().map(|cells| cells.as_ref().map_or("null".to_owned(), cells_text));
            format!("[{}]", series.collect::<Vec<_>>().join(","))
        });
        let charts = charts.collect::<Vec<_>>().join(",\n  ");
        format!("{{\"times\":[{}],\"charts\":[\n  {charts}]}}", times.join(","))
    });
    let levels = levels.collect::<Vec<_>>().join(",\n");
    write!(text, "\"expected\":[\n{levels}]\n}}\n").unwrap();
    text
}

fn cells_text(cells: &ColumnCells) -> String {
    let column = |values: &[Option<f64>]| {
        let values =
            values.iter().map(|value| value.map_or("null".to_owned(), |it| it.to_string()));
        format!("[{}]", values.collect::<Vec<_>>().join(","))
    };
    let optional = |which: fn(&(Column, Column)) -> &Column| {
        cells.extremes.as_ref().map_or("null".to_owned(), |it| column(which(it)))
    };
    let (least, most) = (optional(|it| &it.0), optional(|it| &it.1));
    format!(r#"{{"mean":{},"min":{least},"max":{most}}}"#, column(&cells.mean))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..three.len()].copy_from_slice(three);
        let number = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for digit in 0..4 {
            let place = usize::try_from(number >> (18 - 6 * digit) & 63).unwrap();
            let is_padding = digit > three.len();
            text.push(char::from(if is_padding { b'=' } else { DIGITS[place] }));
        }
    }
    text
}
