//! The command line as documents state it: without secrets, because documents are passed on.

use crate::args::{Header, RequestArgs};
use brimful_core::secret::{self, MASK};

/// This program's.
pub fn for_documents(args: &RequestArgs) -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.map(|word| without_secrets(word, &args.headers, &args.secret_headers)).collect()
}

/// Whatever the flag before it looks like, a word that holds a header field ends with it.
fn without_secrets(word: String, headers: &[Header], secret_names: &[String]) -> String {
    let mut secrets = headers.iter().filter(|header| secret::is_header(&header.name, secret_names));
    if let Some((flag, header)) = secrets.find_map(|header| Some((word.strip_suffix(&header.written)?, header))) {
        let name = header.written.split(':').next().unwrap_or_default();
        return format!("{flag}{name}: {MASK}");
    }
    match word.contains("://") {
        true => secret::without_credentials(&word).into_owned(),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn no_spelling_of_a_secret_stays() {
        let words = [
            "brimful",
            "load",
            "http://host/",
            "-H",
            "Authorization: Bearer hunter2",
            "-Hcookie:id=hunter2",
            "-H=Proxy-Authorization : Basic hunter2",
            "--header",
            "X-INTERNAL: hunter2",
            "--header=x-api-key: hunter2: a\tb ",
            "-qH",
            "Cookie: b=hunter2",
            "-H Cookie: c=hunter2",
            "-H",
            "Accept: text/html",
            "--secret-header",
            "X-Internal",
            "--rate=5",
        ];
        let Command::Load(args) = Cli::parse_from(words).command else { panic!("it is a load") };
        let shown: Vec<String> = words
            .iter()
            .map(|word| without_secrets(word.to_string(), &args.request.headers, &args.request.secret_headers))
            .collect();
        let expected = [
            "brimful",
            "load",
            "http://host/",
            "-H",
            "Authorization: •••",
            "-Hcookie: •••",
            "-H=Proxy-Authorization : •••",
            "--header",
            "X-INTERNAL: •••",
            "--header=x-api-key: •••",
            "-qH",
            "Cookie: •••",
            "-H Cookie: •••",
            "-H",
            "Accept: text/html",
            "--secret-header",
            "X-Internal",
            "--rate=5",
        ];
        assert_eq!(shown, expected);
        let word = without_secrets("http://me:hunter2@host/".to_owned(), &[], &[]);
        assert_eq!(word, "http://•••@host/");
    }
}
