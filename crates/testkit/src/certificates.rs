//! Certificates for tests, good ones and bad ones, made by `openssl` in a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// An authority, and what it has issued; all is gone when this is dropped.
pub struct Certificates {
    dir: TempDir,
}

/// A certificate with those that lead to its authority, and its private key; PEM files.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What is wrong with a certificate, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// Issued by an intermediate authority, which is shown with it: that is not wrong.
    Intermediate,
    /// Issued by an intermediate authority, which is not shown.
    MissingIntermediate,
    /// It vouches for itself.
    SelfSigned,
    /// The same, and it is an authority's, as `openssl req -x509` makes them by default.
    SelfSignedAuthority,
}

impl Certificates {
    /// Makes the authority.
    pub fn new() -> Certificates {
        let made = Certificates { dir: tempfile::tempdir().expect("create a temporary directory") };
        made.self_signed("root", "/CN=brimful's authority for tests", &["basicConstraints=critical,CA:TRUE"]);
        made
    }

    /// The authority's own certificate.
    pub fn authority(&self) -> PathBuf {
        self.file("root.pem")
    }

    /// A certificate for these names, like `DNS:localhost,IP:127.0.0.1`.
    pub fn issue(&self, names: &str, flaw: Flaw) -> Identity {
        let name = format!("{}-{flaw:?}", names.replace([':', ',', '*'], "-"));
        let alternatives = format!("subjectAltName={names}");
        let subject = "/CN=brimful's server for tests";
        match flaw {
            Flaw::None => self.issued("root", &name, subject, &alternatives, "2"),
            Flaw::Expired => self.issued("root", &name, subject, &alternatives, "-1"),
            Flaw::NotYetValid => self.issued_for_later(&name, subject, &alternatives),
            Flaw::SelfSigned => {
                self.self_signed(&name, subject, &["basicConstraints=critical,CA:FALSE", &alternatives])
            }
            Flaw::SelfSignedAuthority => self.self_signed(&name, subject, &[&alternatives]),
            Flaw::Intermediate | Flaw::MissingIntermediate => {
                let authority = "basicConstraints=critical,CA:TRUE";
                let between = format!("{name}-between");
                let between_them = self.issued("root", &between, "/CN=between", authority, "2");
                let issued = self.issued(&between, &name, subject, &alternatives, "2");
                if flaw == Flaw::Intermediate {
                    let read = |path: &Path| fs::read_to_string(path).expect("read a certificate just made");
                    let chain = read(&issued.certificate) + &read(&between_them.certificate);
                    fs::write(&issued.certificate, chain).expect("write a chain");
                }
                issued
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn identity(&self, name: &str) -> Identity {
        Identity { certificate: self.file(&format!("{name}.pem")), key: self.file(&format!("{name}.key")) }
    }

    fn self_signed(&self, name: &str, subject: &str, extensions: &[&str]) -> Identity {
        let made = self.identity(name);
        let mut command = request(subject, &made.key);
        command.args(["-x509", "-days", "2", "-out"]).arg(&made.certificate);
        for extension in extensions {
            command.args(["-addext", extension]);
        }
        run(command);
        made
    }

    /// By the authority, valid from the year 2090 on.
    fn issued_for_later(&self, name: &str, subject: &str, extension: &str) -> Identity {
        let (made, root) = (self.identity(name), self.identity("root"));
        let [asked, extensions, config, index] =
            ["csr", "ext", "conf", "index"].map(|ending| self.file(&format!("{name}.{ending}")));
        let mut command = request(subject, &made.key);
        command.arg("-out").arg(&asked);
        run(command);
        // Only `ca` of OpenSSL 3.0 takes the day on which a certificate begins to be valid.
        let settings = format!(
            "[ca]\ndefault_ca = later\n[later]\ndatabase = {}\nnew_certs_dir = {}\nrand_serial = yes\n\
             default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n",
            index.display(),
            self.dir.path().display()
        );
        for (file, content) in [(&extensions, extension), (&config, &settings), (&index, "")] {
            fs::write(file, content).expect("write in our own directory");
        }
        let mut command = Command::new("openssl");
        command.args(["ca", "-batch", "-notext", "-startdate", "20900101000000Z", "-enddate", "20900103000000Z"]);
        command.arg("-config").arg(&config).arg("-cert").arg(&root.certificate).arg("-keyfile").arg(&root.key);
        command.arg("-extfile").arg(&extensions).arg("-in").arg(&asked).arg("-out").arg(&made.certificate);
        run(command);
        made
    }

    fn issued(&self, issuer: &str, name: &str, subject: &str, extension: &str, days: &str) -> Identity {
        let (made, issuer) = (self.identity(name), self.identity(issuer));
        let (asked, extensions) = (self.file(&format!("{name}.csr")), self.file(&format!("{name}.ext")));
        let mut command = request(subject, &made.key);
        command.arg("-out").arg(&asked);
        run(command);
        fs::write(&extensions, extension).expect("write in our own directory");
        let mut command = Command::new("openssl");
        command.args(["x509", "-req", "-set_serial", "1", "-days", days, "-in"]).arg(&asked);
        command.arg("-CA").arg(&issuer.certificate).arg("-CAkey").arg(&issuer.key);
        command.arg("-extfile").arg(&extensions).arg("-out").arg(&made.certificate);
        run(command);
        made
    }
}

impl Default for Certificates {
    fn default() -> Certificates {
        Certificates::new()
    }
}

impl Identity {
    /// Directives by which nginx shows it.
    pub fn for_nginx(&self) -> String {
        let Identity { certificate, key } = self;
        format!("ssl_certificate \"{}\"; ssl_certificate_key \"{}\";", certificate.display(), key.display())
    }
}

fn request(subject: &str, key: &Path) -> Command {
    let mut command = Command::new("openssl");
    command.args(["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject]);
    command.arg("-keyout").arg(key);
    command
}

fn run(mut command: Command) {
    let made = command.output().unwrap_or_else(|error| panic!("{error}: install openssl (apt-get install openssl)"));
    assert!(made.status.success(), "{command:?}: {}", String::from_utf8_lossy(&made.stderr));
}
