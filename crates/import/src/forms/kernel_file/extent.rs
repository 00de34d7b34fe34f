//! How far the text of a file reaches.

use super::field_file::{self, FieldFile};
use super::shape::FileShape;
use super::{is_prompt, pairs};

/// At most 2 other lines between two fields (`…`, `[snip]`).
const BETWEEN_MAX: usize = 2;
/// At most 4 unknown fields at the start of a truncated text.
const BEFORE_KNOWN_MAX: usize = 4;

/// The end of the text of a file that begins at `from`.
pub(super) fn end(lines: &[&str], from: usize, shape: FileShape, path: &str) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    let first = rest.first().copied().unwrap_or_default();
    if is_prompt(first) {
        return from;
    }
    match (shape, FieldFile::at(path)) {
        (FileShape::Fields, Some(file)) => from + count_fields(rest, file),
        _ if shape.is_one_line() => from + usize::from(shape.continues(first)),
        _ => from + rest.iter().take_while(|l| shape.continues(l)).count(),
    }
}

/// How many of the lines are fields of a file. One of the first must be known; one or two other lines may be between
/// fields.
pub(super) fn count_fields(lines: &[&str], file: FieldFile) -> usize {
    let mut end = 0;
    let mut knows_any = false;
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() || is_prompt(line) || at > end + BETWEEN_MAX {
            break;
        }
        match pairs::parse(line) {
            Some(pairs) => {
                let knows = pairs.iter().any(|pair| file.knows(pair.name));
                let is_of_another = !knows && field_file::files_with(pairs[0].name) != 0;
                // A field of a new kernel may have a name from another file: then known fields follow.
                if is_of_another && !knows_next(lines.get(at + 1), file) {
                    break;
                }
                // After another line, only a known name shows that the file continues.
                if at > end && !knows {
                    break;
                }
                knows_any |= knows;
                end = at + 1;
            }
            None if end == 0 => break,
            None => {}
        }
        if !knows_any && end > BEFORE_KNOWN_MAX {
            break;
        }
    }
    if knows_any { end } else { 0 }
}

fn knows_next(line: Option<&&str>, file: FieldFile) -> bool {
    let pairs = line.and_then(|line| pairs::parse(line));
    pairs.is_some_and(|pairs| pairs.iter().any(|pair| file.knows(pair.name)))
}
