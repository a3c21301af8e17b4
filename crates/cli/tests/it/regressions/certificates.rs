//! Tests client certificates and keys in the formats that `openssl` and other tools write.

use crate::documents;
use crate::program::run;
use brimful_testkit::{CertificateFlaw, Certificates, Nginx, NginxOptions, RawServer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `openssl` with these arguments in a directory.
fn openssl(directory: &Path, line: &str) {
    let output = Command::new("openssl").args(line.split(' ')).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{error}: install openssl (apt-get install openssl)"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An nginx that responds 200 to clients with a certificate of any issuer, and 400 to clients without a certificate.
fn nginx(certificates: &Certificates) -> Nginx {
    let identity = certificates.issue("IP:127.0.0.1", CertificateFlaw::None);
    let extra = format!(
        "{} ssl_protocols TLSv1.2 TLSv1.3; ssl_verify_client optional_no_ca; \
         if ($ssl_client_s_dn = '') {{ return 400; }} return 200;",
        identity.for_nginx()
    );
    Nginx::start(NginxOptions { listen: "ssl".to_owned(), extra, ..NginxOptions::default() })
}

/// A server for runs that fail before the TLS handshake. Also returns its URL.
fn listener() -> (RawServer, String) {
    let server = RawServer::never_answers();
    let url = format!("https://{}/", server.addr());
    (server, url)
}

/// Creates a certificate of X.509 version 1 (`openssl x509 -req` without extensions), and its key.
fn version_1(directory: &Path, key: &str) {
    let config = "[req]\ndistinguished_name=name\nprompt=no\n[name]\nCN=client\n";
    fs::write(directory.join("conf"), config).unwrap();
    openssl(directory, &format!("{key} -out plain.pem"));
    openssl(directory, "req -new -config conf -key plain.pem -out asked.pem");
    openssl(directory, "x509 -req -in asked.pem -signkey plain.pem -days 2 -out cert.pem");
    let mut show = Command::new("openssl");
    show.args(["x509", "-noout", "-text", "-in", "cert.pem"]).current_dir(directory);
    let text = String::from_utf8(show.output().unwrap().stdout).unwrap();
    assert!(text.contains("Version: 1 "), "{text}");
}

fn name(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_client_certificate_of_version_1_is_sent() {
    let certificates = Certificates::new();
    let server = nginx(&certificates);
    let url = format!("https://{}/", server.addr());
    for key in ["genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256", "genpkey -algorithm RSA"] {
        let directory = tempfile::tempdir().unwrap();
        version_1(directory.path(), key);
        let [cert, key] = ["cert.pem", "plain.pem"].map(|file| name(directory.path().join(file)));
        for (engine, http) in [("epoll", "1.1"), ("uring", "1.1")] {
            let args = ["load", &url, "--insecure", "--cert", &cert, "--key", &key, "-c", "1", "-n", "4", "--json"];
            let args = [&args[..], &["--new-connection", "--engine", engine, "--http", http]].concat();
            let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
            assert_eq!((record.counts.status.s2xx, record.counts.handshakes), (4, 4), "{:?}", record.counts);
        }
    }
}

#[test]
fn an_encrypted_key_is_called_encrypted_and_openssl_decrypts_it() {
    let directory = tempfile::tempdir().unwrap();
    version_1(directory.path(), "genpkey -algorithm RSA");
    openssl(directory.path(), "pkey -in plain.pem -aes256 -passout pass:x -out pkcs8.pem");
    openssl(directory.path(), "rsa -in plain.pem -aes256 -passout pass:x -traditional -out rsa.pem");
    openssl(directory.path(), "pkcs8 -topk8 -in plain.pem -passout pass:x -outform DER -out pkcs8.der");
    let cert = name(directory.path().join("cert.pem"));
    let (_server, url) = listener();
    for file in ["pkcs8.pem", "rsa.pem", "pkcs8.der"] {
        let key = name(directory.path().join(file));
        let args = ["load", &url, "--insecure", "--cert", &cert, "--key", &key, "-n", "1"];
        run(&args).fails(2, "its key is encrypted");
        let advice = format!("openssl pkey -in {key} -out plain.pem");
        run(&args).fails(2, &advice);
        let decrypts = advice.strip_prefix("openssl ").unwrap().to_owned() + " -passin pass:x";
        openssl(directory.path(), &decrypts);
    }
}

#[test]
fn files_of_other_formats_are_named_with_the_command_that_converts_them() {
    let directory = tempfile::tempdir().unwrap();
    let at = |file: &str| name(directory.path().join(file));
    version_1(directory.path(), "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256");
    openssl(directory.path(), "x509 -in cert.pem -outform DER -out cert.der");
    openssl(directory.path(), "pkey -in plain.pem -outform DER -out key.der");
    openssl(directory.path(), "pkcs12 -export -in cert.pem -inkey plain.pem -passout pass:x -out both.p12");
    openssl(directory.path(), "pkey -in plain.pem -pubout -out public.pem");
    openssl(directory.path(), "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out other.pem");
    openssl(directory.path(), "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-521 -out p521.pem");
    fs::write(at("empty.pem"), "").unwrap();
    let (_server, url) = listener();
    for (cert, key, part) in [
        ("cert.der", "plain.pem", "openssl x509 -in"),
        ("cert.pem", "key.der", "openssl pkey -in"),
        ("both.p12", "both.p12", "openssl pkcs12 -in"),
        ("cert.pem", "both.p12", "PKCS#12"),
        ("plain.pem", "cert.pem", "swapped"),
        ("cert.pem", "cert.pem", "swapped"),
        ("cert.pem", "public.pem", "public key"),
        ("cert.pem", "other.pem", "is not the key of the certificate"),
        ("cert.pem", "p521.pem", "P-256 and P-384"),
        ("asked.pem", "plain.pem", "request for a certificate"),
        ("empty.pem", "plain.pem", "it has none"),
    ] {
        let (cert, key) = (at(cert), at(key));
        let args = ["load", &url, "--insecure", "--cert", &cert, "--key", &key, "-n", "1"];
        run(&args).fails(2, part);
    }
    let ca = at("cert.der");
    run(&["load", &url, "--ca", &ca, "-n", "1"]).fails(2, "openssl x509 -in");
}

#[test]
fn pem_with_a_byte_order_mark_curve_parameters_or_line_ends_of_dos_is_read() {
    let certificates = Certificates::new();
    let server = nginx(&certificates);
    let url = format!("https://{}/", server.addr());
    let directory = tempfile::tempdir().unwrap();
    version_1(directory.path(), "ecparam -name prime256v1 -genkey");
    let at = |file: &str| name(directory.path().join(file));
    assert!(fs::read_to_string(at("plain.pem")).unwrap().starts_with("-----BEGIN EC PARAMETERS-----"));
    for file in ["plain.pem", "cert.pem"] {
        let text = fs::read_to_string(at(file)).unwrap();
        fs::write(at(file), format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
    }
    let (cert, key) = (at("cert.pem"), at("plain.pem"));
    let args = ["load", &url, "--insecure", "--cert", &cert, "--key", &key, "-c", "1", "-n", "2", "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!(record.counts.status.s2xx, 2);
}
