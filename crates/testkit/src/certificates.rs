//! Valid and invalid certificates for tests. The program `openssl` creates them in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A certificate authority, and the directory with the certificates that it issued. Dropping this value removes all
/// files.
pub struct Certificates {
    dir: TempDir,
}

/// A certificate chain and its private key: paths of PEM files.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Path of the file with the certificate and the intermediate certificates.
    pub certificate: PathBuf,
    /// Path of the file with the private key.
    pub key: PathBuf,
}

/// The way in which a certificate is invalid or unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFlaw {
    /// No flaw: the certificate is valid.
    None,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is valid. An intermediate authority issued it, and the server also sends the intermediate
    /// certificate.
    Intermediate,
    /// An intermediate authority issued the certificate, but the server does not send the intermediate certificate.
    MissingIntermediate,
    /// The certificate is self-signed.
    SelfSigned,
    /// The certificate is self-signed and marked as that of an authority. `openssl req -x509` creates such certificates
    /// by default.
    SelfSignedAuthority,
}

impl Certificates {
    /// Creates a certificate authority.
    pub fn new() -> Certificates {
        let certificates = Certificates { dir: tempfile::tempdir().expect("create a temporary directory") };
        certificates.self_signed("root", "/CN=brimful's authority for tests", &["basicConstraints=critical,CA:TRUE"]);
        certificates
    }

    /// Path of the authority's own certificate.
    pub fn authority(&self) -> PathBuf {
        self.file("root.pem")
    }

    /// Issues a certificate for these names, such as `DNS:localhost,IP:127.0.0.1`.
    pub fn issue(&self, names: &str, flaw: CertificateFlaw) -> Identity {
        let name = format!("{}-{flaw:?}", names.replace([':', ',', '*'], "-"));
        let alternatives = format!("subjectAltName={names}");
        let subject = "/CN=brimful's server for tests";
        match flaw {
            CertificateFlaw::None => self.issued("root", &name, subject, &alternatives, "2"),
            CertificateFlaw::Expired => self.issued("root", &name, subject, &alternatives, "-1"),
            CertificateFlaw::NotYetValid => self.issued_for_later(&name, subject, &alternatives),
            CertificateFlaw::SelfSigned => {
                self.self_signed(&name, subject, &["basicConstraints=critical,CA:FALSE", &alternatives])
            }
            CertificateFlaw::SelfSignedAuthority => self.self_signed(&name, subject, &[&alternatives]),
            CertificateFlaw::Intermediate | CertificateFlaw::MissingIntermediate => {
                let authority = "basicConstraints=critical,CA:TRUE";
                let intermediate_name = format!("{name}-intermediate");
                let intermediate = self.issued("root", &intermediate_name, "/CN=intermediate", authority, "2");
                let issued = self.issued(&intermediate_name, &name, subject, &alternatives, "2");
                if flaw == CertificateFlaw::Intermediate {
                    let read = |path: &Path| fs::read_to_string(path).expect("read a certificate that was just issued");
                    let chain = read(&issued.certificate) + &read(&intermediate.certificate);
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
        let identity = self.identity(name);
        let mut command = signing_request(subject, &identity.key);
        command.args(["-x509", "-days", "2", "-out"]).arg(&identity.certificate);
        for extension in extensions {
            command.args(["-addext", extension]);
        }
        run(command);
        identity
    }

    /// Issues a certificate that is not valid before the year 2090.
    fn issued_for_later(&self, name: &str, subject: &str, extension: &str) -> Identity {
        let identity = self.identity(name);
        let root = self.identity("root");
        let [csr, extensions, config, index] =
            ["csr", "ext", "conf", "index"].map(|ending| self.file(&format!("{name}.{ending}")));
        let mut command = signing_request(subject, &identity.key);
        command.arg("-out").arg(&csr);
        run(command);
        // In OpenSSL 3.0, only the command `ca` has an option for the start of a certificate's validity.
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
        command.arg("-extfile").arg(&extensions).arg("-in").arg(&csr).arg("-out").arg(&identity.certificate);
        run(command);
        identity
    }

    fn issued(&self, issuer: &str, name: &str, subject: &str, extension: &str, days: &str) -> Identity {
        let identity = self.identity(name);
        let issuer = self.identity(issuer);
        let csr = self.file(&format!("{name}.csr"));
        let extensions = self.file(&format!("{name}.ext"));
        let mut command = signing_request(subject, &identity.key);
        command.arg("-out").arg(&csr);
        run(command);
        fs::write(&extensions, extension).expect("write in our own directory");
        let mut command = Command::new("openssl");
        command.args(["x509", "-req", "-set_serial", "1", "-days", days, "-in"]).arg(&csr);
        command.arg("-CA").arg(&issuer.certificate).arg("-CAkey").arg(&issuer.key);
        command.arg("-extfile").arg(&extensions).arg("-out").arg(&identity.certificate);
        run(command);
        identity
    }
}

impl Default for Certificates {
    fn default() -> Certificates {
        Certificates::new()
    }
}

impl Identity {
    /// Returns the directives with which nginx uses this certificate and key.
    pub fn for_nginx(&self) -> String {
        let Identity { certificate, key } = self;
        format!("ssl_certificate \"{}\"; ssl_certificate_key \"{}\";", certificate.display(), key.display())
    }
}

fn signing_request(subject: &str, key: &Path) -> Command {
    let mut command = Command::new("openssl");
    command.args(["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject]);
    command.arg("-keyout").arg(key);
    command
}

fn run(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{error}: install openssl (apt-get install openssl)"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
