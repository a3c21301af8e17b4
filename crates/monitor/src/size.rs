//! Computes an upper bound of the memory that a sample occupies, so that the size of a history can be limited.
//!
//! `serde` walks over all values, so a new group is counted without additional code. Each field and each element counts
//! with its own size, on every level of nesting. The result is therefore at least the memory that a sample occupies,
//! including half-empty vectors and tree nodes. It is at most about four times as much. Parts that several samples
//! share are counted in each sample.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};
use std::fmt::Error;

/// An upper bound of the memory that a value occupies, in bytes.
pub(crate) fn size_of_all<T: Serialize>(value: &T) -> usize {
    let mut size = Size(size_of::<T>());
    // Counting never fails. A value that cannot be serialized causes an error when it is sent.
    let _ = value.serialize(&mut size);
    size.0
}

/// Number of bytes counted so far.
struct Size(usize);

impl Size {
    fn add<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.0 += size_of_val(value);
        value.serialize(self)
    }
}

/// Implements the serializers of values without memory on the heap. They add nothing, because the size of the enclosing
/// value includes such a value.
macro_rules! inline {
    ($($method:ident($($value:ty),*);)+) => {
        $(fn $method(self, $(_: $value),*) -> Result<(), Error> {
            Ok(())
        })+
    };
}

impl<'s> Serializer for &'s mut Size {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = &'s mut Size;
    type SerializeTuple = &'s mut Size;
    type SerializeTupleStruct = &'s mut Size;
    type SerializeTupleVariant = &'s mut Size;
    type SerializeMap = &'s mut Size;
    type SerializeStruct = &'s mut Size;
    type SerializeStructVariant = &'s mut Size;

    inline! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.0 += text.len();
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.0 += bytes.len();
        Ok(())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<&'s mut Size, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<&'s mut Size, Error> {
        Ok(self)
    }
}

/// Implements the serializers that count the parts of a value one after another, such as the elements of a list.
macro_rules! parts {
    ($($part:ident $method:ident;)+) => {
        $(impl $part for &mut Size {
            type Ok = ();
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })+
    };
}

parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// Implements the serializers that count parts with names, such as the fields of a struct.
macro_rules! named_parts {
    ($($part:ident)+) => {
        $(impl $part for &mut Size {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Result<(), Error> {
                self.add(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })+
    };
}

named_parts! { SerializeStruct SerializeStructVariant }

impl SerializeMap for &mut Size {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        self.add(key)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::samples_of_run;
    use crate::module::{ClassSample, ServerSample};
    use crate::{ModuleSample, ProgramSample};
    use std::collections::BTreeMap;

    #[test]
    fn every_element_of_a_collection_counts_with_its_size() {
        assert_eq!(size_of_all(&7_u64), 8);
        assert_eq!(size_of_all(&"1234567"), size_of::<&str>() + 7);
        assert!(size_of_all(&vec![0_u64; 1000]) >= 8 * 1000);
        assert!(size_of_all(&BTreeMap::from([(1_u64, [0_u64; 9])])) >= 80);
        let program = ProgramSample { pids: vec![1; 1000].into(), ..ProgramSample::default() };
        let programs = vec![program; 10];
        let occupied = 10 * (size_of::<ProgramSample>() + 4 * 1000);
        assert!((occupied..4 * occupied).contains(&size_of_all(&programs)));
        let server = ServerSample { classes: vec![ClassSample::default(); 1000], ..ServerSample::default() };
        let module = ModuleSample { servers: vec![server.into()] };
        let occupied = 1000 * size_of::<ClassSample>();
        assert!((occupied..4 * occupied).contains(&size_of_all(&module)), "{}", size_of_all(&module));
    }

    #[test]
    fn an_ordinary_sample_counts_a_few_kilobytes() {
        let size = size_of_all(&samples_of_run(0).remove(0));
        assert!((1 << 10..32 << 10).contains(&size), "{size}");
    }
}
