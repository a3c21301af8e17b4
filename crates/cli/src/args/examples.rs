//! Examples at the end of each command's help. A test reads each as a command line.

pub const BRIMFUL: &str = "\
Examples:
  $ brimful survey --demo
  $ brimful load http://127.0.0.1:8080/ --rate 1000
  $ brimful watch nginx

`brimful COMMAND -h` shows a command's usual flags, --help all of them, `brimful help COMMAND` explains each.";

pub const SURVEY: &str = "\
Examples:
  $ brimful survey --demo
  $ brimful survey http://127.0.0.1:8080/ --cpus 1 --server-cpus 0
  $ brimful survey http://shop.example/ --watch-from shop.example:7411 --max-load 30%";

pub const LOAD: &str = "\
Examples:
  $ brimful load http://127.0.0.1:8080/ --rate 1000 -d 30s --slo 'p99<50ms'   # open loop
  $ brimful load http://127.0.0.1:8080/ -c 64 -t 2 -d 30s                     # closed loop, as wrk and oha have it
  $ brimful load http://127.0.0.1:8080/ --stage 30s:100 --stage 1m:100        # ramps, as k6 has them
  $ brimful load http://127.0.0.1:8080/a --rate 50 -X POST -b @order.json -H 'Content-Type: application/json' --watch";

pub const MERGE: &str = "\
Examples:
  $ brimful merge shard-1.json shard-2.json --out whole.json";

pub const REPLAY: &str = "\
Examples:
  $ brimful replay /var/log/nginx/access.log http://127.0.0.1:8080/ --speed 2x
  $ brimful replay access.log http://127.0.0.1:8080/ --against-flat";

pub const WATCH: &str = "\
Examples:
  $ brimful watch nginx
  $ brimful watch -p 80,443 --requests
  $ brimful watch --port 80 --once --json
  $ brimful watch nginx --port 80 --prometheus 9477 --log /var/log/brimful";

pub const MODULE: &str = "\
Examples:
  $ sudo brimful module install nginx --reload
  $ brimful module status
  $ sudo brimful module remove nginx";

pub const CHARACTERIZE: &str = "\
Examples:
  $ brimful characterize '/var/log/nginx/access.log*'
  $ brimful characterize access.log --out workload.toml";

pub const FILESET: &str = "\
Examples:
  $ brimful fileset workload.toml /srv/www";

pub const PLAN_SOLVE: &str = "\
Examples:
  $ brimful plan solve model.json";

pub const PLAN_WHAT_IF: &str = "\
Examples:
  $ brimful plan what-if model.json --set cpu.servers=4 --slo 'p99<200ms'";

pub const PLAN_CALIBRATE: &str = "\
Examples:
  $ brimful plan calibrate low.json middle.json high.json --out model.json";

pub const PLAN_FORECAST: &str = "\
Examples:
  $ brimful plan forecast rates.csv --model model.json --slo 'p99<200ms'";

pub const TARGET: &str = "\
Examples:
  $ brimful target
  $ brimful target --listen 127.0.0.1:8080 --service light=200us,heavy=2ms/16KiB --workers 2";

pub const TESTBED: &str = "\
Examples:
  $ sudo brimful testbed --rtt 40ms --loss 1% -- sh -c 'ip netns exec server nginx; brimful load http://{server}/'";

pub const DOCTOR: &str = "\
Exit code: 0 where nothing that was looked at is in the way, 3 where something is.

Examples:
  $ brimful doctor
  $ brimful doctor descriptors ports io_uring
  $ brimful doctor --script | sh";

pub const COMPLETIONS: &str = "\
Examples:
  $ brimful completions bash > /usr/share/bash-completion/completions/brimful
  $ brimful completions zsh > /usr/local/share/zsh/site-functions/_brimful";

pub const MAN: &str = "\
Examples:
  $ brimful man /usr/local/share/man/man1";
