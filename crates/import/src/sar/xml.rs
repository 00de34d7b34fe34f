//! `sadf -x`: the data of `sadf -j` as elements and attributes. Only the five predefined entities are resolved.

use std::io::BufRead;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::SarData;
use super::element::Element;

/// Levels of elements; sadf has eight.
const DEEPEST: usize = 32;

/// Reads a document; `into` keeps what was read before an error.
pub(super) fn read(input: &mut dyn BufRead, into: &mut SarData) -> Result<(), String> {
    let mut reader = Reader::from_reader(input);
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    let mut walk = XmlWalk::default();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        match event.map_err(|error| error.to_string())? {
            Event::Start(start) => {
                walk.attributes(&start, into);
                if walk.path.len() >= DEEPEST {
                    return Err(format!("elements are nested more than {DEEPEST} deep"));
                }
                walk.path.push(name(&start));
            }
            Event::Empty(start) => {
                walk.attributes(&start, into);
                walk.end(&name(&start), into);
            }
            Event::Text(text) => walk.text(text.xml10_content().trim(), into),
            Event::End(_) => {
                if let Some(name) = walk.path.pop() {
                    walk.end(&name, into);
                }
            }
            Event::Eof if walk.path.is_empty() => return Ok(()),
            Event::Eof => return Err("the end is missing".to_owned()),
            _ => {}
        }
    }
}

fn name(start: &BytesStart<'_>) -> String {
    start.local_name().as_ref().to_owned()
}

/// The position in the document.
#[derive(Default)]
struct XmlWalk {
    /// Names of the open elements.
    path: Vec<String>,
    element: Element,
}

impl XmlWalk {
    fn attributes(&mut self, start: &BytesStart<'_>, into: &mut SarData) {
        let name = name(start);
        // The names in `sadf -j`.
        let (group, key) = match name.as_str() {
            "boot" => ("timestamp", ""),
            "disk-device" => ("disk", "dev"),
            "cpu" => ("cpu-load", "number"),
            other => (other, ""),
        };
        if matches!(name.as_str(), "disk-device" | "cpu" | "statistics" | "restarts") {
            self.element.end_row();
        }
        if name == "timestamp" {
            self.element.finish(&mut into.series);
        }
        for attribute in start.attributes().with_checks(false).flatten() {
            let attribute_name = match attribute.key.as_ref() {
                found if found == key && group == "disk" => "disk-device",
                found if found == key && group == "cpu-load" => "cpu",
                found => found,
            };
            if let Ok(value) = attribute.normalized_value(XmlVersion::Implicit1_0) {
                self.element.text(group, attribute_name, &value);
            }
        }
    }

    fn text(&mut self, text: &str, into: &mut SarData) {
        let mut around = self.path.iter().rev().map(String::as_str);
        let (Some(name), Some(group)) = (around.next(), around.next()) else {
            return;
        };
        match name {
            _ if text.is_empty() => {}
            "release" => into.host.set_release(text),
            "machine" => into.host.set_machine(text),
            "number-of-cpus" => into.host.cpus = text.parse().ok(),
            _ => self.element.text(group, name, text),
        }
    }

    fn end(&mut self, name: &str, into: &mut SarData) {
        match name {
            "timestamp" => self.element.finish(&mut into.series),
            "boot" => self.element.finish_restart(&mut into.series),
            _ => {}
        }
    }
}
