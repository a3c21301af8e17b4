//! Tests formats that are compiled from the directives of servers, the detection of formats, and lines that match no
//! format.

use super::*;

#[test]
fn any_log_format_of_apache() {
    let pie = apache_pie;
    check(
        r#"%v %h \"%{X-Forwarded-For}i\" %t %m %U%q %H %s %>s %O %b %!200,304{Referer}i|%{us}T"#,
        &[(
            r#"example.com 10.0.0.1 "-" [10/Oct/2000:13:55:36 -0700] GET /apache_pb.gif HTTP/1.0 302 200 2500 2326 a b|77"#,
            Want { host: "example.com", client: "10.0.0.1", referer: "a b", service_ns: Some(77_000), ..pie() },
        )],
    );
    check(
        r#"[%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] %a "%r" %>s %B %{ms}T%%"#,
        &[(
            r#"[10/Oct/2000:13:55:36.250 -0700] 127.0.0.1 "GET /apache_pb.gif HTTP/1.0" 200 2326 5%"#,
            Want { time: "2000-10-10T20:55:36.250Z", service_ns: Some(5_000_000), ..pie() },
        )],
    );
    check(
        r#"%{end:sec}t.%{end:usec_frac}t\t%a\t%r\t%>s\t%b\t%D\t%{Foo}e%{Bar}C"#,
        &[(
            "971211336.250000\t127.0.0.1\tGET /apache_pb.gif HTTP/1.0\t200\t2326\t250000\tx",
            Want { time: "2000-10-10T20:55:36.000Z", service_ns: Some(250_000_000), ..pie() },
        )],
    );
    check(
        "%{%a, %e %B %y %I:%M:%S %p}t|%h|%r|%>s|%b",
        &[("Tue, 10 October 00 08:55:36 PM|127.0.0.1|GET /apache_pb.gif HTTP/1.0|200|2326", pie())],
    );
    check(
        r#"%t.%{usec_frac}t %h "%r" %>s %b"#,
        &[(
            r#"[10/Oct/2000:13:55:36 -0700].000250 127.0.0.1 "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            Want { time: "2000-10-10T20:55:36.000250Z", ..pie() },
        )],
    );
}

#[test]
fn any_log_format_of_nginx() {
    let pie = apache_pie;
    check(
        r#"$msec $remote_addr "$request_method $scheme://$host$request_uri $server_protocol" $status $body_bytes_sent $request_time $pipe"#,
        &[(
            r#"971211336.250 127.0.0.1 "GET https://example.com/apache_pb.gif HTTP/1.0" 200 2326 0.250 ."#,
            Want { time: "2000-10-10T20:55:36.000Z", host: "example.com", service_ns: Some(250_000_000), ..pie() },
        )],
    );
    check(
        r#"$time_iso8601|$remote_addr|$request_method|$uri$is_args$args|$server_protocol|$status|$bytes_sent|$upstream_addr|$upstream_response_time"#,
        &[(
            "2000-10-10T13:55:36-07:00|127.0.0.1|GET|/apache_pb.gif|HTTP/1.0|200|2326|10.0.0.1:80, 10.0.0.2:80|0.001, 0.002",
            Want { upstream_ns: Some(3_000_000), ..pie() },
        )],
    );
    check(
        r#"log_format j escape=json '{"t":"$time_iso8601","a":"$remote_addr","m":"$request_method","u":"$uri","q":"$args","p":"$server_protocol",' '"s":$status,"b":$body_bytes_sent,"rt":$request_time,"ut":$upstream_response_time}';"#,
        &[(
            r#"{"t":"2000-10-10T13:55:36-07:00","a":"127.0.0.1","m":"GET","u":"/apache_pb.gif","q":"","p":"HTTP/1.0","s":200,"b":2326,"rt":0.000,"ut":}"#,
            Want { service_ns: Some(0), ..pie() },
        )],
    );
    check(
        r#"log_format raw escape=none '$remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent"'"#,
        &[(
            r#"127.0.0.1 [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "ends in \""#,
            Want { user_agent: r"ends in \", ..pie() },
        )],
    );
}

#[test]
fn a_malformed_line_says_where_and_what() {
    let cases = [
        ("combined", "", None),
        ("combined", "hello", Some((6, "a space"))),
        ("combined", "a - - [10/Oct/2000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"", Some((8, "a time such as 10/Oct"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 20x 5", Some((53, "a status of three"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 -5", Some((57, "a number of bytes"))),
        (
            "common",
            "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5 \"-\"",
            Some((58, "the end of the line")),
        ),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1", Some((51, "a quote and a space"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700 \"GET / HTTP/1.1\" 200 5", Some((34, "`] \"`"))),
        ("json", "{\"a\":1,}", Some((8, "a quote and the name of a field"))),
        ("json", "{\"a\":\"b", Some((8, "a closing quote"))),
        ("json", "{\"uri\":\"/\",\"status\":200}", Some((25, "a field with the time"))),
        ("ltsv", "a:b\tno label", Some((5, "a label, a colon and a value"))),
        ("haproxy", "haproxy[1]: Proxy web started.", Some((1, "a client, and a time"))),
        ("w3c", "2020-01-01 25:00:00 x", Some((12, "a time such as 13:55:36"))),
    ];
    for (name, line, expected) in cases {
        read_one(&mut format(name), line.as_bytes(), |read| match (read, expected) {
            (Err(malformed), Some((column, expected))) => {
                assert_eq!(malformed.column, column, "{name}: {line}: {}", malformed.expected);
                assert!(malformed.expected.starts_with(expected), "{name}: {line}: {}", malformed.expected);
            }
            (read, expected) => assert_eq!((read, expected), (Ok(Line::Other), None), "{name}: {line}"),
        });
    }
}

#[test]
fn several_formats_in_one_log_are_all_found() {
    let combined = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "curl/8""#.as_slice();
    let common = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#.as_slice();
    let junk = b"*** restart ***".as_slice();
    let mut formats = Formats::detect(&[common, combined, combined, junk, b""]).unwrap();
    let mut scratch = Scratch::default();
    assert!([common, combined, combined, combined].iter().all(|line| formats.read(line, &mut scratch).is_ok()));
    let shares: Vec<(String, f64)> = formats.shares().into_iter().map(|share| (share.name, share.share)).collect();
    assert_eq!(shares, [("combined".to_owned(), 0.75), ("common".to_owned(), 0.25)]);
    // The error must be that of the most likely format, even if another format has read the previous line.
    assert!(formats.read(common, &mut scratch).is_ok());
    let malformed = formats.read(&common[..40], &mut scratch).unwrap_err();
    assert_eq!((malformed.column, &*malformed.expected), (41, "a quote and a space"));
}

#[test]
fn an_unknown_format_is_shown_with_the_way_out() {
    let lines: [&[u8]; 2] = [b"2020 \x1b[31mWARN\t[main] started", b"done"];
    let error = Formats::detect(&lines).unwrap_err();
    let LogError::UnknownFormat(text) = error else { panic!("{error}") };
    for part in [
        r"lines like `2020 \u001b[31mWARN\u0009[main]",
        "The nearest is ",
        "--format takes a name (common",
        "--format-from /etc/nginx/nginx.conf",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(Formats::detect(&[]), Err(LogError::Empty(_))));
    assert!(Formats::from_list(Vec::new()).read(b"x", &mut Scratch::default()).is_err());
}

/// `apache2.conf` of Debian 12, and its default site.
const APACHE2: &str = r#"
ErrorLog ${APACHE_LOG_DIR}/error.log
LogLevel warn
<Directory />
	Options FollowSymLinks
	AllowOverride None
</Directory>
# The following directives define some format nicknames for use with
# a CustomLog directive.
LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" vhost_combined
LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined
LogFormat "%h %l %u %t \"%r\" %>s %O" common
LogFormat "%{Referer}i -> %U" referer
LogFormat "%{User-agent}i" agent
IncludeOptional sites-enabled/*.conf
<VirtualHost *:80>
	ServerAdmin webmaster@localhost
	CustomLog ${APACHE_LOG_DIR}/access.log combined
	CustomLog ${APACHE_LOG_DIR}/times.log "%h %l %u %t \"%r\" %>s %O %D" env=!quiet
	CustomLog /var/log/apache2/ssl.log combined
</VirtualHost>
"#;

/// `nginx.conf` of nginx's own package, with an additional log.
const NGINX: &str = r#"
user  nginx;
error_log  /var/log/nginx/error.log notice;
events { worker_connections  1024; }
http {
    include       /etc/nginx/mime.types;
    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"'; # the; usual
    log_format times escape=json '{"time":"$msec","request":"$request","status":$status,"rt":$request_time}';
    log_format useless '$remote_addr';
    map $uri $loggable { ~^/health 0; default 1; }
    access_log  /var/log/nginx/access.log  main;
    server {
        listen 80;
        access_log /var/log/nginx/times.log times buffer=32k if=$loggable;
        location / { access_log /var/log/nginx/root.log main; root "/srv/{a};b"; }
        location /quiet { access_log off; }
        location /stock { access_log /var/log/nginx/stock.log; }
    }
}
"#;

#[test]
fn the_formats_of_a_servers_configuration() {
    let names = |text: &str| -> Vec<String> {
        Format::from_configuration(text).unwrap().iter().map(|format| format.name().to_owned()).collect()
    };
    let times = r#"%h %l %u %t \"%r\" %>s %O %D"#;
    assert_eq!(names(APACHE2), ["combined", times, "vhost_combined", "common"]);
    assert_eq!(names(NGINX), ["main", "times", "combined"]);
    // Debian's own nginx.conf defines no format.
    assert_eq!(names("http {\n\taccess_log /var/log/nginx/access.log;\n\tgzip on;\n}\n"), ["combined"]);
    let mut formats = Formats::from_list(Format::from_configuration(NGINX).unwrap());
    let mut scratch = Scratch::default();
    let line = br#"{"time":"971211336.250","request":"GET / HTTP/1.1","status":200,"rt":0.250}"#;
    let Ok(Line::Entry(entry)) = formats.read(line, &mut scratch) else { panic!("the format must read the line") };
    assert_eq!((entry.time_ns, entry.service_ns), (971_211_336_000_000_000, Some(250_000_000)));
    assert_eq!(formats.shares()[0].name, "times");
}
