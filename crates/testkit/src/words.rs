//! Splits command lines from documentation and help texts into words.

/// Splits a command line into words like a shell, but knows only single quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            character => word.push(character),
        }
    }
    words.push(word);
    words
}
