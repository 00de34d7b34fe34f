//! Units in JSON: plain numbers, with the unit in the name of their field. Lengths of time are in seconds.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Bytes, Count, PerSecond, Ratio, SignedBytes, Span, Unit};

/// Declares which number a type is in JSON, also in its schema.
macro_rules! number_in_json {
    ($($name:ty $(where $unit:ident)?: $number:ty = $get:expr;)*) => {$(
        impl$(<$unit: Unit>)? Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let number: $number = $get(*self);
                number.serialize(serializer)
            }
        }

        impl$(<$unit: Unit>)? JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                <$number>::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$number>::json_schema(generator)
            }
        }
    )*};
}

number_in_json! {
    Bytes: u64 = Self::get;
    Count: u64 = Self::get;
    SignedBytes: i64 = Self::get;
    Span: f64 = Self::as_secs_f64;
    Ratio: f64 = Self::get;
    PerSecond<U> where U: f64 = Self::get;
}

/// Declares how a type is read from the number that it is in JSON.
macro_rules! number_from_json {
    ($($name:ty: $number:ty = $new:expr;)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$number>::deserialize(deserializer).map($new)
            }
        }
    )*};
}

number_from_json! {
    Bytes: u64 = Self::new;
    Count: u64 = Self::new;
    Span: f64 = Self::from_secs_f64;
    Ratio: f64 = Self::new;
}
