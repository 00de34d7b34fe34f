//! `sadf -j`: one element of `statistics` after the other, however many there are.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Read;
use super::columns;
use super::element::Element;

/// Reads a document; what was read of one that breaks off stays.
pub(super) fn read(
    input: &mut dyn std::io::BufRead,
    into: &mut Read,
) -> Result<(), serde_json::Error> {
    let mut document = serde_json::Deserializer::from_reader(input);
    Node::Root(into).deserialize(&mut document)
}

/// A place in the document that matters.
enum Node<'a> {
    Root(&'a mut Read),
    Sysstat(&'a mut Read),
    Hosts(&'a mut Read),
    Host(&'a mut Read),
    HostField(&'a mut Read, &'a str),
    Statistics(&'a mut Read),
    Moment(&'a mut Element),
    Restarts(&'a mut Read),
    Restart(&'a mut Element),
    /// Figures of one thing, or a list of such.
    Group(&'a mut Element, &'a str),
    Figure(&'a mut Element, &'a str, &'a str),
}

impl Node<'_> {
    /// What a key leads to; `None` where nothing below it matters.
    fn inner<'b>(&'b mut self, key: &'b str) -> Option<Node<'b>> {
        Some(match (self, key) {
            (Self::Root(read), "sysstat") => Node::Sysstat(read),
            (Self::Sysstat(read), "hosts") => Node::Hosts(read),
            (Self::Host(read), "statistics") => Node::Statistics(read),
            (Self::Host(read), "restarts") => Node::Restarts(read),
            (Self::Host(read), _) => Node::HostField(read, key),
            (Self::Moment(element), "timestamp") => Node::Group(element, key),
            (Self::Moment(element), _) if is_read(key) => Node::Group(element, key),
            (Self::Restart(element), "boot") => Node::Group(element, "timestamp"),
            // The kinds of pressure are groups in a group.
            (Self::Group(element, "psi"), _) => Node::Group(element, key),
            (Self::Group(element, group), _) => Node::Figure(element, group, key),
            _ => return None,
        })
    }
}

fn is_read(group: &str) -> bool {
    columns::is_group(group) || matches!(group, "psi" | "cpu-load-all")
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what sadf -j prints")
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
            Self::Hosts(read) => while items.next_element_seed(Node::Host(read))?.is_some() {},
            Self::Statistics(read) => {
                let mut element = Element::default();
                while items
                    .next_element_seed(Node::Moment(&mut element))?
                    .is_some()
                {
                    element.finish(&mut read.recording);
                }
            }
            Self::Restarts(read) => {
                let mut element = Element::default();
                while items
                    .next_element_seed(Node::Restart(&mut element))?
                    .is_some()
                {
                    element.finish_restart(&mut read.recording);
                }
            }
            Self::Group(element, group) => {
                while items
                    .next_element_seed(Node::Group(element, group))?
                    .is_some()
                {
                    element.next_row();
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

    #[allow(clippy::cast_precision_loss)] // figures of this size are no sizes of memory
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
