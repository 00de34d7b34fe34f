//! The catalogues as Markdown: `docs/rules.md` and `docs/signals.md`. A test checks that both files are current.

use std::fmt::Write as _;

use timeline::facts::KernelVersion;
use timeline::settings::{
    self, AllowedValues, DefaultValue, FromKernel, SettingScope, SettingUnit,
};

use crate::model::{RuleEntry, SignalEntry};

/// Returns the text of `docs/rules.md`.
pub fn rules(rules: &[RuleEntry]) -> String {
    let mut text = String::from(
        "# Rules\n\nWhat `memtide check` looks for. Generated from the rules' own documentation \
         (`BLESS=1 cargo test -p memtide-report`);\n`memtide rules ID` shows the same.\n",
    );
    for (purpose, heading) in [("finding", "Findings"), ("note", "Notes")] {
        let listed = || rules.iter().filter(|rule| rule.purpose == purpose);
        let _ = write!(text, "\n## {heading}\n\n");
        for rule in listed() {
            let _ = writeln!(text, "- [`{0}`](#{0}): {1}", rule.id, rule.summary);
        }
        for rule in listed() {
            let _ = write!(text, "\n### {}\n\n", rule.id);
            for line in rule.docs.trim_end().lines() {
                match line.strip_prefix("## ") {
                    Some(heading) => {
                        let _ = write!(text, "\n#### {heading}\n\n");
                    }
                    None => {
                        let _ = writeln!(text, "{line}");
                    }
                }
            }
        }
    }
    text.replace("\n\n\n", "\n\n")
}

/// Returns the text of `docs/signals.md`.
pub fn signals(signals: &[SignalEntry]) -> String {
    let mut text = String::from(
        "# Signals\n\nThe catalogue: what memtide reads and knows, with its names in other tools. Generated \
         (`BLESS=1 cargo test -p memtide-report`);\n`memtide signals NAME` shows the same.\n\n\
         A gauge is a level; a counter only rises, so that only its rate says anything. Units are those of stored \
         readings.\n\n\
         Names in other tools are what their current versions offer, in units of their own: for node_exporter with \
         its optional collectors,\nbut of `/proc/vmstat` only what it exports unless told otherwise; columns of sar \
         for a counter are its rate.\n",
    );
    let mut entity = "";
    for signal in signals {
        if signal.entity != entity {
            entity = signal.entity;
            let _ = write!(
                text,
                "\n## Of {}\n\n| name | kind | unit | source | since | meaning | sar | PCP | node_exporter |\n\
                 |---|---|---|---|---|---|---|---|---|\n",
                signal.subject()
            );
        }
        let cells = [
            code(signal.name),
            signal.kind.to_owned(),
            signal.unit.to_owned(),
            format!("{} {}", cell(signal.file), code(signal.field)),
            signal.since.unwrap_or_default().to_owned(),
            cell(signal.meaning),
            signal.sar.map_or_else(String::new, code),
            signal.pcp.map_or_else(String::new, code),
            signal.node_exporter.map_or_else(String::new, code),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// Returns the section of `docs/signals.md` about settings.
pub fn settings() -> String {
    let mut text = String::from(
        "\n## Settings\n\nWhat rules name and fixes change: defaults and values of the newest kernel first. A cell of the \
         last column names a file of the kernel's sources.\n\n\
         | name | file | since | default | values | unit | of | takes effect | undone by | documented in |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for setting in settings::ALL {
        let cells = [
            code(setting.name),
            code(setting.file),
            setting.since.to_owned(),
            newest_first(setting.default, default_text),
            newest_first(setting.values, values_text),
            unit_text(setting.unit).to_owned(),
            scope_text(setting.scope).to_owned(),
            cell(setting.takes_effect),
            cell(setting.undone_by),
            cell(setting.source),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// `0 to 200; before 5.8 0 to 100`.
fn newest_first<T>(all: &[FromKernel<T>], text: fn(&T) -> String) -> String {
    let newest = all.last().map(|it| text(&it.value)).unwrap_or_default();
    let older = all.windows(2).rev().filter_map(|pair| {
        let [older, newer] = pair else { return None };
        let KernelVersion { major, minor } = newer.kernel;
        Some(format!("; before {major}.{minor} {}", text(&older.value)))
    });
    std::iter::once(newest).chain(older).collect()
}

fn default_text(default: &DefaultValue) -> String {
    match default {
        DefaultValue::Number(number) => number.to_string(),
        DefaultValue::Word(word) => code(word),
        DefaultValue::Computed(how) => cell(how),
        DefaultValue::BuildOption(option) => format!("when built: {}", cell(option)),
        DefaultValue::Nothing => "–".to_owned(),
    }
}

fn values_text(values: &AllowedValues) -> String {
    let range = |min: u64, max: u64| match max {
        settings::INT_MAX.. => format!("{min} or more"),
        _ if min == max => min.to_string(),
        _ => format!("{min} to {max}"),
    };
    match *values {
        AllowedValues::Number { min, max } => range(min, max),
        AllowedValues::Numbers { min_count, max_count } if min_count == max_count => {
            format!("{min_count} numbers")
        }
        AllowedValues::Numbers { max_count, .. } => format!("up to {max_count} numbers"),
        AllowedValues::Choice(words) => words.join(", "),
        AllowedValues::Switch => "`Y`, `N`".to_owned(),
        AllowedValues::Bits => "`y`, `n`, or bits".to_owned(),
        AllowedValues::Limit => "a size, or `max`".to_owned(),
        AllowedValues::LimitV1 => "a size, or `-1`".to_owned(),
        AllowedValues::Trigger { min, max } => format!("{}: done once", range(min, max)),
        AllowedValues::Word => "a word".to_owned(),
    }
}

const fn unit_text(unit: SettingUnit) -> &'static str {
    match unit {
        SettingUnit::Plain => "",
        SettingUnit::Bytes => "bytes",
        SettingUnit::Kib => "KiB",
        SettingUnit::Pages => "pages",
        SettingUnit::PowerOfTwoPages => "2ⁿ pages",
        SettingUnit::Percent => "%",
        SettingUnit::PerTenThousand => "1/10,000",
        SettingUnit::Centiseconds => "1/100 s",
        SettingUnit::MibPerSecond => "MiB/s",
    }
}

const fn scope_text(scope: SettingScope) -> &'static str {
    match scope {
        SettingScope::Host => "host",
        SettingScope::NetworkNamespace => "network namespace",
        SettingScope::Device => "device",
        SettingScope::Cgroup => "cgroup",
        SettingScope::Process => "process",
    }
}

/// Escapes a bar, which would end the table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(text: &str) -> String {
    format!("`{}`", cell(text))
}
