//! Tests lines of proxies, caches, load balancers and object stores.

use super::*;

#[test]
fn other_patterns() {
    check_found(
        "vhost_combined",
        &[(
            r#"www.example.com:443 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 "-" "curl/8""#,
            Want {
                target: "/",
                protocol: "HTTP/1.1",
                host: "www.example.com",
                client: "192.0.2.1",
                user_agent: "curl/8",
                ..apache_pie()
            },
        )],
    );
    check_found(
        "ingress-nginx",
        &[(
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "curl/8" 85 0.021 [shop-web-80] [] 10.2.0.4:80, 10.2.0.5:80 0, 2326 0.003, 0.017 502, 200 5fd0"#,
            Want {
                client: "192.0.2.1",
                user_agent: "curl/8",
                service_ns: Some(21_000_000),
                upstream_ns: Some(20_000_000),
                ..apache_pie()
            },
        )],
    );
    check_found(
        "traefik",
        &[(
            r#"127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "-" 2 "web@docker" "http://172.18.0.2:80" 3ms"#,
            Want { service_ns: Some(3_000_000), ..apache_pie() },
        )],
    );
    check_found(
        "envoy",
        &[(
            r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#,
            Want {
                time: "2016-04-15T20:17:00.310Z",
                method: "POST",
                target: "/api/v1/locations",
                protocol: "HTTP/2",
                host: "locations",
                client: "10.0.35.28",
                user_agent: "nsq2http",
                status: 204,
                bytes: Some(0),
                service_ns: Some(226_000_000),
                upstream_ns: Some(100_000_000),
                ..Want::default()
            },
        )],
    );
}

#[test]
fn proxies() {
    check(
        "varnish",
        &[(
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET http://example.com/apache_pb.gif HTTP/1.0" 200 2326 "-" "-""#,
            Want { host: "example.com", ..apache_pie() },
        )],
    );
    check_found(
        "istio",
        &[(
            r#"[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 3 1 "-" "curl/7.73.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 - default"#,
            Want {
                time: "2020-11-25T21:26:18.409Z",
                method: "GET",
                target: "/status/418",
                protocol: "HTTP/1.1",
                host: "httpbin:8000",
                client: "10.44.1.23",
                user_agent: "curl/7.73.0",
                status: 418,
                bytes: Some(135),
                service_ns: Some(3_000_000),
                upstream_ns: Some(1_000_000),
                ..Want::default()
            },
        )],
    );
}

#[test]
fn load_balancers_and_stores() {
    let elb = Want {
        method: "GET",
        target: "/",
        protocol: "HTTP/1.1",
        host: "www.example.com",
        client: "192.168.131.39",
        user_agent: "curl/7.46.0",
        status: 200,
        ..Want::default()
    };
    check_found(
        "alb",
        &[
            (
                r#"http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
                Want {
                    time: "2018-07-02T22:23:00.185641Z",
                    bytes: Some(366),
                    service_ns: Some(1_000_000),
                    upstream_ns: Some(1_000_000),
                    ..elb
                },
            ),
            (
                r#"h2 2018-07-02T22:23:00.186641Z app/a/5 [2001:db8::5]:2817 - -1 -1 -1 502 - 34 366 "GET https://shop.example.com:443/a?b HTTP/2.0" "-" - - - "-" "-" "-" -1 2018-07-02T22:22:48.364000Z "-" "-" "-" "-" "-" "-" "-""#,
                Want {
                    time: "2018-07-02T22:23:00.186641Z",
                    method: "GET",
                    target: "/a?b",
                    protocol: "HTTP/2.0",
                    host: "shop.example.com",
                    client: "2001:db8::5",
                    status: 502,
                    bytes: Some(366),
                    ..Want::default()
                },
            ),
        ],
    );
    check_found(
        "elb",
        &[(
            r#"2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -"#,
            Want {
                time: "2015-05-13T23:39:43.945958Z",
                method: "GET",
                target: "/",
                protocol: "HTTP/1.1",
                host: "www.example.com",
                client: "192.168.131.39",
                user_agent: "curl/7.38.0",
                status: 200,
                bytes: Some(29),
                service_ns: Some(1_178_000),
                upstream_ns: Some(1_048_000),
                ..Want::default()
            },
        )],
    );
    check_found(
        "s3",
        &[
            (
                r#"79a59df9 mybucket [06/Feb/2019:00:01:57 +0000] 192.0.2.3 79a59df9 DD6CC733AEXAMPLE REST.GET.OBJECT s3-dg.pdf "GET /mybucket/s3-dg.pdf HTTP/1.1" 200 - 4406583 4406583 41754 28 "-" "S3Console/0.4" - 10S62Zv81kBW7BB6SX4XJ48o6kpc SigV4 ECDHE-RSA-AES128-SHA AuthHeader mybucket.s3.us-west-1.amazonaws.com TLSV1.1 -"#,
                Want {
                    time: "2019-02-06T00:01:57Z",
                    method: "GET",
                    target: "/mybucket/s3-dg.pdf",
                    protocol: "HTTP/1.1",
                    client: "192.0.2.3",
                    user_agent: "S3Console/0.4",
                    status: 200,
                    bytes: Some(4_406_583),
                    service_ns: Some(41_754_000_000),
                    upstream_ns: Some(28_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"79a59df9 mybucket [06/Feb/2019:00:01:57 +0000] - AmazonS3 DD6CC733AEXAMPLE S3.EXPIRE.OBJECT a%20b - - - - 1 - - - - 10S62Zv81kBW7BB6SX4XJ48o6kpc"#,
                Want { time: "2019-02-06T00:01:57Z", ..Want::default() },
            ),
        ],
    );
}

#[test]
fn haproxy() {
    let want = || Want {
        time: "2009-02-06T12:14:14.655Z",
        method: "GET",
        target: "/index.html",
        protocol: "HTTP/1.1",
        client: "10.0.1.2",
        status: 200,
        bytes: Some(2750),
        service_ns: Some(109_000_000),
        upstream_ns: Some(69_000_000),
        ..Want::default()
    };
    check_found(
        "haproxy",
        &[
            (
                r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|"a"} {} "GET /index.html HTTP/1.1""#,
                want(),
            ),
            (
                r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/+109 200 +2750 - - ---- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1" 0/0000000000000000/0/0/0 foo/TLSv1.3/TLS"#,
                want(),
            ),
            (
                r#"2009-02-06T12:14:14+00:00 lb haproxy[1]: ::1:33317 [06/Feb/2009:12:14:14.655] in in/<NOSRV> -1/-1/-1/-1/5 400 187 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#,
                Want {
                    method: "",
                    target: "<BADREQ>",
                    protocol: "",
                    client: "::1",
                    status: 400,
                    bytes: Some(187),
                    service_ns: Some(5_000_000),
                    upstream_ns: None,
                    ..want()
                },
            ),
        ],
    );
}

#[test]
fn squid() {
    let cases = [
        (
            "1286536309.450    180 192.0.2.1 TCP_MISS/200 411 GET http://example.com/a?b=c - HIER_DIRECT/192.0.2.2 text/html",
            Want {
                time: "2010-10-08T11:11:49.270Z",
                method: "GET",
                target: "/a?b=c",
                host: "example.com",
                client: "192.0.2.1",
                status: 200,
                bytes: Some(411),
                service_ns: Some(180_000_000),
                ..Want::default()
            },
        ),
        (
            "1286536309.450      0 2001:db8::17 TCP_DENIED/403 3900 CONNECT example.com:443 user HIER_NONE/- - [Accept: */*]",
            Want {
                time: "2010-10-08T11:11:49.450Z",
                method: "CONNECT",
                target: "example.com:443",
                client: "2001:db8::17",
                status: 403,
                bytes: Some(3900),
                service_ns: Some(0),
                ..Want::default()
            },
        ),
        (
            "1286536310.000  60000 192.0.2.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -",
            Want {
                time: "2010-10-08T11:10:50.000Z",
                target: "error:transaction-end-before-headers",
                client: "192.0.2.1",
                bytes: Some(0),
                service_ns: Some(60_000_000_000),
                ..Want::default()
            },
        ),
    ];
    check_found("squid", &cases);
    for line in
        ["1286536309 180 192.0.2.1 TCP_MISS/200 411 GET / - HIER_DIRECT/192.0.2.2 text/html", "1286536309.450 180", ""]
    {
        assert!(
            !matches!(format("squid").read(line.as_bytes(), &mut Scratch::default()), Ok(Line::Entry(_))),
            "{line}"
        );
    }
}
