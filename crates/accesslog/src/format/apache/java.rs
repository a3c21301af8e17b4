//! Translates patterns of Java's `SimpleDateFormat`, which Tomcat accepts where Apache expects a `strftime` format.

/// Translates a pattern to Apache directives: `yyyy-MM-dd HH:mm` → `%{%Y-%m-%d %H:%M}t`. Returns `None` if the text is
/// not such a pattern.
pub(super) fn as_strftime(pattern: &str) -> Option<String> {
    if pattern.contains('%') || !["yy", "MM", "dd", "HH", "hh", "mm", "ss"].iter().any(|field| pattern.contains(field))
    {
        return None;
    }
    let mut directives = Directives::default();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let length = rest.chars().take_while(|c| *c == first).map(char::len_utf8).sum();
        let (run, after) = rest.split_at_checked(length)?;
        rest = after;
        match first {
            '\'' => {
                let (quoted, after) = after.split_once('\'').unwrap_or((after, ""));
                directives.open_strftime(quoted);
                rest = after;
            }
            'S' => directives.push_alone("msec_frac"),
            // Apache writes the zone without a colon. A zone after a fraction needs a separate directive.
            'Z' | 'X' | 'x' => directives.open_strftime("%z"),
            _ => directives.open_strftime(strftime(first, run)),
        }
    }
    Some(directives.finish())
}

fn strftime(letter: char, run: &str) -> &str {
    match (letter, run.len()) {
        ('y' | 'u', 1 | 3..) => "%Y",
        ('y' | 'u', _) => "%y",
        ('M' | 'L', 3..) => "%b",
        ('M' | 'L', _) => "%m",
        ('d', _) => "%d",
        ('D', _) => "%j",
        ('E', _) => "%a",
        ('H' | 'k', _) => "%H",
        ('h' | 'K', _) => "%I",
        ('m', _) => "%M",
        ('s', _) => "%S",
        ('a', _) => "%p",
        ('z', _) => "%Z",
        _ => run,
    }
}

/// A sequence of directives. Adjacent `strftime` fields share one directive. Apache's own formats, such as `msec_frac`,
/// need a separate directive each.
#[derive(Default)]
struct Directives {
    text: String,
    is_open: bool,
}

impl Directives {
    fn open_strftime(&mut self, text: &str) {
        if !self.is_open {
            self.text.push_str("%{");
            self.is_open = true;
        }
        self.text.push_str(text);
    }

    fn push_alone(&mut self, word: &str) {
        let separator = self.close();
        self.text.push_str(&separator);
        self.text.push_str("%{");
        self.text.push_str(word);
        self.text.push_str("}t");
    }

    /// Closes the open directive. If it ends with a point or comma, removes and returns this character, which must be
    /// outside of the directive.
    fn close(&mut self) -> String {
        if !self.is_open {
            return String::new();
        }
        self.is_open = false;
        let separator = match self.text.pop() {
            Some(separator @ ('.' | ',')) => separator.to_string(),
            Some(other) => {
                self.text.push(other);
                String::new()
            }
            None => String::new(),
        };
        self.text.push_str("}t");
        separator
    }

    fn finish(mut self) -> String {
        let separator = self.close();
        self.text + &separator
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_java_calls_a_time_strftime_has_as_well() {
        for (java, strftime) in [
            ("yyyy-MM-dd HH:mm:ss", "%{%Y-%m-%d %H:%M:%S}t"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "%{%Y-%m-%dT%H:%M:%S}t.%{msec_frac}t%{%z}t"),
            ("dd/MMM/yyyy:HH:mm:ss,SSS", "%{%d/%b/%Y:%H:%M:%S}t,%{msec_frac}t"),
            ("EEE, d MMM yy hh:mm a z", "%{%a, %d %b %y %I:%M %p %Z}t"),
        ] {
            assert_eq!(as_strftime(java).as_deref(), Some(strftime), "{java}");
        }
        for other in ["sec", "msec_frac", "%Y-%m-%d", "", "T"] {
            assert_eq!(as_strftime(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in "[yMdHhmsSaEzZX':./é -]{0,30}") {
            let _ = as_strftime(&pattern);
        }
    }
}
