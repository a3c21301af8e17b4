//! The command line of this process in the form in which documents record it. Secrets are masked, because users share
//! documents.

use crate::flags::RequestArgs;
use brimful_core::secret::{self, CREDENTIAL_MASK};

/// This process's command line, without the secrets in the request flags.
pub fn without_secrets(args: &RequestArgs) -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.map(|word| mask_secrets(word, args)).collect()
}

/// This process's command line, without credentials in URLs.
pub fn without_url_credentials() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.map(|word| without_credentials_in_url(&word)).collect()
}

fn without_credentials_in_url(word: &str) -> String {
    if word.contains("://") { secret::without_credentials(word).into_owned() } else { word.to_owned() }
}

/// Masks the secret at the end of an argument. The beginning is kept, because one argument may contain both the flag
/// and the secret, like `-HCookie: …`.
fn mask_secrets(word: String, args: &RequestArgs) -> String {
    if let Some(flag) = args.user.as_ref().and_then(|user| word.strip_suffix(&user.argument)) {
        return format!("{flag}{CREDENTIAL_MASK}");
    }
    let mut secrets = args.headers.iter().filter(|header| secret::is_secret_header(&header.name, &args.secret_headers));
    if let Some((flag, header)) = secrets.find_map(|header| Some((word.strip_suffix(&header.argument)?, header))) {
        let name = header.argument.split(':').next().unwrap_or_default();
        return format!("{flag}{name}: {CREDENTIAL_MASK}");
    }
    without_credentials_in_url(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCommand {
        url: String,
        #[arg(short)]
        quiet: bool,
        #[arg(long)]
        rate: Option<f64>,
        #[command(flatten)]
        request: RequestArgs,
    }

    #[test]
    fn secrets_are_masked_in_every_spelling_of_their_flags() {
        let words = [
            "brimful",
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
        let args = TestCommand::parse_from(words);
        let shown: Vec<String> = words.iter().map(|word| mask_secrets(word.to_string(), &args.request)).collect();
        let expected = [
            "brimful",
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
        let word = mask_secrets("http://me:hunter2@host/".to_owned(), &args.request);
        assert_eq!(word, "http://•••@host/");
        for (words, shown) in [
            (&["-u", "me:hunter2"][..], &["-u", CREDENTIAL_MASK][..]),
            (&["-ume:hunter2"], &["-u•••"]),
            (&["-qame:hunter2"], &["-qa•••"]),
            (&["--user=me:hunter2"], &["--user=•••"]),
        ] {
            let all = ["brimful", "http://host/"].into_iter().chain(words.iter().copied());
            let args = TestCommand::parse_from(all);
            let said: Vec<String> = words.iter().map(|word| mask_secrets((*word).to_owned(), &args.request)).collect();
            assert_eq!(said, shown);
        }
    }
}
