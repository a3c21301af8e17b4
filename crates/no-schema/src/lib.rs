//! A derive macro `JsonSchema` that generates nothing.
//!
//! Only tests generate JSON Schemas: they compare the types of the documents with the files in `schema/`, and the program
//! contains these files. In builds without the feature `schema`, this macro replaces that of the crate schemars, which
//! would otherwise take half of the compile time of `brimful-core`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Accepts the attributes of schemars, and generates nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
