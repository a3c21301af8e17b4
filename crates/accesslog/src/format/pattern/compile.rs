//! Compiles the elements of a format string into fields, each with the literal text that follows the field.

use super::{Field, FieldKind, Piece, Tail, Traits};

/// Joins adjacent literal texts. Also joins adjacent fields whose values can be read as one field, such as a path and a
/// query.
pub(super) fn join_adjacent(pieces: Vec<Piece>) -> Result<Vec<Piece>, String> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(before)), Piece::Literal(text)) => before.extend(text),
            (Some(Piece::Field { kind: before, name: first, .. }), Piece::Field { kind, rank, name }) => {
                if before.ends_itself() {
                    joined.push(Piece::Field { kind, rank, name });
                } else if let Some(both) = merged_kind(*before, kind) {
                    *before = both;
                } else {
                    return Err(format!(
                        "has nothing between {first} and {name}: put a space there, in the server too"
                    ));
                }
            }
            (_, piece) => joined.push(piece),
        }
    }
    Ok(joined)
}

/// The kind of field that reads the values of two adjacent fields as one value. `None` if no such kind exists, because
/// nothing marks the end of the first value.
fn merged_kind(first: FieldKind, second: FieldKind) -> Option<FieldKind> {
    match (first, second) {
        (FieldKind::Path | FieldKind::Target, FieldKind::Query) => Some(FieldKind::Target),
        (FieldKind::Query, FieldKind::Query) => Some(FieldKind::Query),
        (FieldKind::Host, FieldKind::Path | FieldKind::Target) | (FieldKind::HostTarget, FieldKind::Query) => {
            Some(FieldKind::HostTarget)
        }
        (FieldKind::Skip, FieldKind::Skip) => Some(FieldKind::Skip),
        _ => None,
    }
}

/// Keeps the field with the lowest rank for each purpose, and ignores the values of all other fields with this purpose.
/// If the format has a request line, the fields for method, target, query and protocol are ignored, too.
pub(super) fn keep_best_ranked(pieces: &mut [Piece]) {
    let ranks: Vec<(usize, &'static str, u8)> = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| match piece {
            Piece::Literal(_) => None,
            Piece::Field { kind, rank, .. } => kind.purpose().map(|purpose| (index, purpose, *rank)),
        })
        .collect();
    let has_request = ranks.iter().any(|(_, purpose, _)| *purpose == "request");
    let mut best: Vec<(usize, &'static str, u8)> = ranks.clone();
    best.sort_by_key(|(index, purpose, rank)| (*purpose, *rank, *index));
    best.dedup_by_key(|(_, purpose, _)| *purpose);
    let kind_of = |index: usize| pieces.get(index).and_then(Piece::kind);
    let whole_target =
        best.iter().any(|(at, _, _)| matches!(kind_of(*at), Some(FieldKind::Target | FieldKind::HostTarget)));
    for (index, purpose, _) in ranks {
        let is_best = best.iter().any(|(best, _, _)| *best == index);
        let is_part = has_request && matches!(purpose, "method" | "target" | "query" | "protocol");
        let is_known = whole_target && purpose == "query";
        if let Some(Piece::Field { kind, .. }) = pieces.get_mut(index)
            && (!is_best || is_part || is_known || (has_request && *kind == FieldKind::HostTarget))
        {
            *kind = kind.skipped();
        }
    }
}

/// Returns the literal text at the start of each line, and the fields.
pub(super) fn compile_fields(pieces: Vec<Piece>, traits: Traits) -> (Box<[u8]>, Vec<Field>) {
    let mut head: Box<[u8]> = Box::default();
    let mut fields: Vec<Field> = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => {
                match fields.last_mut() {
                    Some(field) => {
                        field.is_quoted &= text.starts_with(b"\"");
                        field.literal = text.clone().into();
                    }
                    None => head = text.clone().into(),
                }
                before = text;
            }
            Piece::Field { kind, .. } => {
                let is_quoted = before.ends_with(b"\"");
                fields.push(Field { kind, is_quoted, literal: Box::default(), is_last: false });
                before.clear();
            }
        }
    }
    if let Some(last) = fields.last_mut() {
        last.is_last = traits.tail == Tail::End;
        last.is_quoted &= !last.literal.is_empty();
    }
    (head, fields)
}
