//! The stations of the network: the server's link in both directions, the round trips to the clients, and the clients'
//! access links. Their demands follow from the sizes of the responses ([`LinkPath`]).

use crate::exit::UsageError;
use crate::plan::args::site::{AccessRate, SiteArgs};
use brimful_core::model::{Model, Scheduling, Station, StationKind};
use brimful_core::quantity::{number, rate};
use brimful_model::{LinkPath, Transfer};

const BITS: f64 = 8.0;

/// Adds the network stations that the flags request. `mean_bytes` is the mean size of the responses of each class.
/// Returns notes for the user about these stations.
pub(super) fn add(model: &mut Model, args: &SiteArgs, mean_bytes: &[f64]) -> Result<Vec<String>, UsageError> {
    let is_wanted = args.link.is_some() || args.rtt.is_some() || !args.access.is_empty();
    if !is_wanted {
        let unused = args.mss.map(|_| "--mss").or(args.requests_per_connection.map(|_| "--requests-per-connection"));
        return match unused {
            Some(flag) => Err(UsageError(format!("{flag} has no effect without --link, --rtt or --access"))),
            None => Ok(Vec::new()),
        };
    }
    let usual = LinkPath::default();
    let path = LinkPath {
        mss: args.mss.map_or(usual.mss, f64::from),
        requests_per_connection: args.requests_per_connection.unwrap_or(usual.requests_per_connection),
        ..usual
    };
    let access = access_rates(&args.access, model)?;
    let transfers: Vec<Transfer> = mean_bytes.iter().map(|bytes| path.transfer(*bytes)).collect();
    let mut notes = Vec::new();
    if let Some(bits_per_s) = args.link {
        let time = |bytes: fn(&Transfer) -> f64| -> Vec<f64> {
            transfers.iter().map(|transfer| BITS * bytes(transfer) / bits_per_s).collect()
        };
        push(model, "in-link", StationKind::Queue, time(|transfer| transfer.bytes_in))?;
        push(model, "out-link", StationKind::Queue, time(|transfer| transfer.bytes_out))?;
        notes.push(limit_note(model, &transfers, bits_per_s));
    }
    if let Some(rtt) = args.rtt {
        let demands = transfers.iter().map(|transfer| transfer.round_trips * rtt.as_secs_f64()).collect();
        push(model, "round-trips", StationKind::Delay, demands)?;
    }
    if access.iter().any(Option::is_some) {
        // Each client has a link of its own. Requests do not wait for one another, so the station is a pure delay.
        let time = |(transfer, rate): (&Transfer, &Option<f64>)| {
            rate.map_or(0.0, |bits_per_s| BITS * (transfer.bytes_in + transfer.bytes_out) / bits_per_s)
        };
        let demands = transfers.iter().zip(&access).map(time).collect();
        push(model, "access-link", StationKind::Delay, demands)?;
    }
    notes.push(format!(
        "the network's demands follow from the sizes: segments of {} bytes with 40 bytes of TCP and IP headers, heads and \
         requests of 300 bytes, and {} requests on a connection; losses and the link layer are not included",
        number(path.mss),
        number(path.requests_per_connection)
    ));
    Ok(notes)
}

/// The rate of each class's access link.
fn access_rates(rates: &[AccessRate], model: &Model) -> Result<Vec<Option<f64>>, UsageError> {
    let names: Vec<&str> = model.classes.iter().map(|class| class.name.as_str()).collect();
    if let Some(name) = rates.iter().filter_map(|rate| rate.class.as_deref()).find(|name| !names.contains(name)) {
        return Err(UsageError(format!(
            "--access: there is no class `{name}` in the log; it has {}",
            names.join(", ")
        )));
    }
    let rate_of = |class: Option<&str>| rates.iter().rfind(|rate| rate.class.as_deref() == class);
    Ok(names.iter().map(|name| rate_of(Some(name)).or_else(|| rate_of(None)).map(|rate| rate.bits_per_s)).collect())
}

fn push(model: &mut Model, name: &str, kind: StationKind, demands: Vec<f64>) -> Result<(), UsageError> {
    if model.stations.iter().any(|station| station.name == name) {
        return Err(UsageError(format!(
            "--utilization has a resource `{name}`: leave out the flag, or rename it there"
        )));
    }
    model.stations.push(Station { name: name.to_owned(), kind, scheduling: Scheduling::Ps, ..Station::default() });
    if !model.demand_ci95_half_width.is_empty() {
        // These demands are computed from exact sizes, so their confidence intervals have a half width of 0.
        model.demand_ci95_half_width.push(vec![0.0; demands.len()]);
    }
    model.demands.push(demands);
    Ok(())
}

/// A note on the request rate at which the server's link is full.
fn limit_note(model: &Model, transfers: &[Transfer], bits_per_s: f64) -> String {
    let rates: Vec<f64> = model.classes.iter().map(|class| class.rate.unwrap_or(0.0)).collect();
    let all: f64 = rates.iter().sum();
    let mean = |bytes: fn(&Transfer) -> f64| {
        rates.iter().zip(transfers).map(|(rate, transfer)| rate * bytes(transfer)).sum::<f64>() / all
    };
    let most = mean(|transfer| transfer.bytes_in).max(mean(|transfer| transfer.bytes_out));
    format!("the link is full at {} of this mix", rate(bits_per_s / BITS / most))
}
