//! brimful
fn main() {}
