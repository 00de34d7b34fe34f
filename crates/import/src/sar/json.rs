//! `sadf -j`, read as a stream: one element of `statistics` at a time.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::SarData;
use super::columns;
use super::element::Element;

/// Reads a document; `into` keeps what was read before an error.
pub(super) fn read(
    input: &mut dyn std::io::BufRead,
    into: &mut SarData,
) -> Result<(), serde_json::Error> {
    let mut document = serde_json::Deserializer::from_reader(input);
    JsonNode::Root(into).deserialize(&mut document)
}

/// A place in the document that is read.
enum JsonNode<'a> {
    Root(&'a mut SarData),
    Sysstat(&'a mut SarData),
    Hosts(&'a mut SarData),
    Host(&'a mut SarData),
    HostField(&'a mut SarData, &'a str),
    Statistics(&'a mut SarData),
    Sample(&'a mut Element),
    Restarts(&'a mut SarData),
    Restart(&'a mut Element),
    /// Figures of one entity, or a list of such.
    Group(&'a mut Element, &'a str),
    Figure(&'a mut Element, &'a str, &'a str),
}

impl JsonNode<'_> {
    /// The value of a key; `None` if nothing in it is read.
    fn inner<'b>(&'b mut self, key: &'b str) -> Option<JsonNode<'b>> {
        Some(match (self, key) {
            (Self::Root(read), "sysstat") => JsonNode::Sysstat(read),
            (Self::Sysstat(read), "hosts") => JsonNode::Hosts(read),
            (Self::Host(read), "statistics") => JsonNode::Statistics(read),
            (Self::Host(read), "restarts") => JsonNode::Restarts(read),
            (Self::Host(read), _) => JsonNode::HostField(read, key),
            (Self::Sample(element), "timestamp") => JsonNode::Group(element, key),
            (Self::Sample(element), _) if is_read(key) => JsonNode::Group(element, key),
            (Self::Restart(element), "boot") => JsonNode::Group(element, "timestamp"),
            // Each kind of pressure is a group within `psi`.
            (Self::Group(element, "psi"), _) => JsonNode::Group(element, key),
            (Self::Group(element, group), _) => JsonNode::Figure(element, group, key),
            _ => return None,
        })
    }
}

fn is_read(group: &str) -> bool {
    columns::is_group(group) || matches!(group, "psi" | "cpu-load-all")
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("output of sadf -j")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.inner(&key) {
                Some(inner) => map.next_value_seed(inner)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        match self {
            Self::Hosts(read) => while items.next_element_seed(JsonNode::Host(read))?.is_some() {},
            Self::Statistics(read) => {
                let mut element = Element::default();
                while items.next_element_seed(JsonNode::Sample(&mut element))?.is_some() {
                    element.finish(&mut read.series);
                }
            }
            Self::Restarts(read) => {
                let mut element = Element::default();
                while items.next_element_seed(JsonNode::Restart(&mut element))?.is_some() {
                    element.finish_restart(&mut read.series);
                }
            }
            Self::Group(element, group) => {
                while items.next_element_seed(JsonNode::Group(element, group))?.is_some() {
                    element.end_row();
                }
            }
            _ => while items.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        match self {
            Self::Figure(element, group, name) => element.text(group, name, text),
            Self::HostField(read, "release") => read.host.set_release(text),
            Self::HostField(read, "machine") => read.host.set_machine(text),
            _ => {}
        }
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if let Self::Figure(element, group, name) = self {
            element.number(group, name, number);
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // no size of memory is that large
    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        if let Self::HostField(read, "number-of-cpus") = &mut self {
            read.host.cpus = u32::try_from(number).ok();
        }
        if let Self::Figure(element, group, name) = self {
            element.number(group, name, number as f64);
        }
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
