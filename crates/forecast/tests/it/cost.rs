//! Tests the costs of configurations under a forecast of a straight line.

use brimful_forecast::ForecastError;
use brimful_forecast::{
    Configuration, CostTable, Forecast, ForecastMethod, ForecastOptions, Series, SizedConfiguration, Timestamp,
    cost_table, forecast, parse_configurations,
};
use brimful_forecast::{MONTH_S, PeakBasis};
use proptest::prelude::*;

const DAY_S: u32 = 86_400;

/// A forecast of arrivals that grow by 1/s each day: from 100/s on the first to 199/s on the last of 100 days. Peaks
/// are twice the mean.
fn growing() -> Forecast {
    let rates = (0..100).map(|i| 100.0 + f64::from(i)).collect();
    let series = Series::new(Timestamp::from_unix(0), DAY_S, rates).unwrap();
    let options = ForecastOptions {
        horizon_s: 12.5 * MONTH_S,
        seasons: Some(Vec::new()),
        method: ForecastMethod::Line,
        peak_to_mean: Some(2.0),
    };
    let forecast = forecast(&series, &options).unwrap();
    assert_eq!(forecast.peak.basis, PeakBasis::Given);
    forecast
}

fn sized(name: &str, price_per_month: f64, capacity: Option<f64>) -> SizedConfiguration {
    let set = vec![format!("{name}.servers=2"), "cpu.speed=1.5x".to_owned()];
    SizedConfiguration { configuration: Configuration { name: name.into(), price_per_month, set }, capacity }
}

fn table() -> CostTable {
    let configurations = [
        sized("large", 400.0, Some(2000.0)),
        sized("small", 100.0, Some(300.0)),
        sized("medium", 200.0, Some(799.0)),
        sized("medium, expensive", 250.0, Some(799.0)),
        sized("broken", 50.0, None),
    ];
    cost_table(&configurations, &growing(), 6.0).unwrap()
}

#[test]
fn configurations_are_compared_by_price_and_time() {
    let table = table();
    let names: Vec<&str> = table.rows.iter().map(|r| r.configuration.name.as_str()).collect();
    assert_eq!(names, ["broken", "small", "medium", "medium, expensive", "large"]);
    // The daily rates of the last week are 193/s to 199/s. Their mean is 196/s, and the peak is twice the last rate.
    assert_eq!((table.present_rate, table.present_peak_rate), (196.0, 398.0));
    let [broken, small, medium, _, large] = table.rows.as_slice() else { panic!("{table:?}") };
    assert!(!broken.lasts && broken.crossing.is_none() && broken.headroom.is_none());
    assert!(broken.cost_per_million_at_capacity.is_none());
    // The capacity of 300/s was exceeded before the last week: the peak of the first day of that week is 386/s.
    assert!(small.crossing.unwrap().already && small.headroom.unwrap() < 0.0);
    assert_eq!((small.months_of_headroom, small.lasts), (Some(0.0), false));
    // A peak of 799/s means a mean of 399.5/s, which is reached 200 days after the end of the history.
    let months = 200.0 * f64::from(DAY_S) / MONTH_S;
    assert!((medium.months_of_headroom.unwrap() - months).abs() < 0.1, "{medium:?}");
    assert!((medium.headroom.unwrap() - (799.0 / 398.0 - 1.0)).abs() < 1e-12);
    assert!(medium.lasts && medium.lasts_safely && large.lasts && large.months_of_headroom.is_none());
    assert_eq!((table.cheapest.as_deref(), table.cheapest_safe.as_deref()), (Some("medium"), Some("medium")));
}

#[test]
fn a_million_requests_cost_a_month_over_the_requests_in_it() {
    let table = table();
    let medium = &table.rows[2];
    let millions = 196.0 * MONTH_S / 1e6;
    assert!((medium.cost_per_million_now.unwrap() - 200.0 / millions).abs() < 1e-12);
    // At a peak of 799/s, the ratio of mean to peak is assumed to be the present ratio, 196 to 398.
    let millions = 799.0 * 196.0 / 398.0 * MONTH_S / 1e6;
    assert!((medium.cost_per_million_at_capacity.unwrap() - 200.0 / millions).abs() < 1e-12);
}

#[test]
fn more_months_ask_for_more() {
    let all = [sized("medium", 200.0, Some(799.0)), sized("large", 400.0, Some(2000.0))];
    let forecast = growing();
    let cheapest = |months: f64| cost_table(&all, &forecast, months).unwrap().cheapest;
    assert_eq!([cheapest(6.0), cheapest(7.0)], [Some("medium".to_owned()), Some("large".to_owned())]);
    let none = cost_table(&all[..1], &forecast, 12.0).unwrap();
    assert_eq!((none.cheapest, none.cheapest_safe), (None, None));
}

#[test]
fn comparisons_that_cannot_be_are_refused() {
    let forecast = growing();
    let good = sized("a", 1.0, Some(500.0));
    let refused = |sized: &[SizedConfiguration], months: f64, expected: &str| {
        let error = cost_table(sized, &forecast, months).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&[], 6.0, "no configuration");
    refused(&[good.clone(), good.clone()], 6.0, "two configurations are named `a`");
    refused(&[sized("", 1.0, None)], 6.0, "no name");
    refused(&[sized("a", -1.0, None)], 6.0, "price of `a` is -1");
    refused(&[sized("a", f64::NAN, None)], 6.0, "price of `a`");
    refused(&[sized("a", 1.0, Some(f64::INFINITY))], 6.0, "capacity of `a`");
    refused(std::slice::from_ref(&good), 0.0, "number of months");
    refused(&[good], 13.0, "longer horizon");
}

#[test]
fn nothing_that_arrives_costs_nothing_per_request() {
    let series = Series::new(Timestamp::from_unix(0), DAY_S, vec![0.0; 30]).unwrap();
    let options =
        ForecastOptions { horizon_s: 4.0 * MONTH_S, seasons: None, method: ForecastMethod::Auto, peak_to_mean: None };
    let table = cost_table(&[sized("a", 9.0, Some(5.0))], &forecast(&series, &options).unwrap(), 3.0).unwrap();
    let row = &table.rows[0];
    assert_eq!((row.cost_per_million_now, row.cost_per_million_at_capacity, row.headroom), (None, None, None));
    assert!(row.lasts_safely && row.months_of_headroom.is_none());
}

#[test]
fn toml_and_csv_say_the_same() {
    let toml = "# offers\n[[configuration]]\nname = \"now\"\nprice_per_month = 120\n\n[[configuration]]\nname = \"two, faster\"\n\
                price = 199.5\nset = [\"cpu.servers=4\", \"cpu.speed=1.5x\"]\n";
    let csv = "name,price,set\nnow,120,\n\"two, faster\",199.5,cpu.servers=4 cpu.speed=1.5x\n";
    let tabs = "Name\tPrice_per_month\tset\nnow\t120\ntwo, faster\t199.5\tcpu.servers=4  cpu.speed=1.5x\n";
    let read = parse_configurations(toml).unwrap();
    assert_eq!(read[1].set, ["cpu.servers=4", "cpu.speed=1.5x"]);
    assert_eq!(parse_configurations(csv).as_ref(), Ok(&read));
    assert_eq!(parse_configurations(tabs).as_ref(), Ok(&read));
}

#[test]
fn what_is_no_list_of_configurations_is_refused_with_its_place() {
    let refused = |text: &str, expected: &str| {
        let error = parse_configurations(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    };
    refused("", "line 1: no header");
    refused("name,price\n", "no configuration");
    refused("a,5\nb,6\n", "line 1: no header");
    refused("name,price\na,5\nb,6 €\n", "line 3: the price `6 €` is no number");
    refused("name,price\na,5\na,6\n", "two configurations are named `a`");
    refused("name,price\na,-5\n", "price of `a` is -5");
    refused("name,price\na,nan\n", "price of `a` is NaN");
    refused("[[configuration]]\nname = \"a\"\nprice = 5\ncores = 2\n", "line 4: unknown field `cores`");
    refused("[[configuration]]\nname = \"a\"\n", "missing field `price_per_month`");
    refused("[[configuration]\n", "line 1");
}

#[test]
fn the_table_is_written_as_csv() {
    let csv = table().to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 6);
    let columns = lines[0].split(',').count();
    assert_eq!(
        lines[1],
        format!(
            "broken,50,,{},,,,,,,false,false,false,false,broken.servers=2 cpu.speed=1.5x",
            50.0 / (196.0 * MONTH_S / 1e6)
        )
    );
    assert_eq!(lines[1].split(',').count(), columns);
    assert!(lines[4].starts_with("\"medium, expensive\",250,799,"), "{}", lines[4]);
    assert!(lines[3].contains(",true,true,true,true,") && lines[4].contains(",true,true,false,false,"), "{csv}");
    assert!(lines[3].contains("1970-10-28T00:00:00Z"), "{}", lines[3]);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(.|\n){0,200}", csv in "(name,price,set\n)?([a-z\",;#. =0-9]{0,20}\n){0,6}", toml in "\\[\\[configuration\\]\\]\n[a-z =\"0-9\n\\[\\]]{0,60}") {
        for text in [text, csv, toml] {
            let _ = parse_configurations(&text);
        }
    }

    #[test]
    fn any_prices_and_capacities_get_a_table_or_an_error(
        rows in prop::collection::vec((any::<f64>(), prop::option::of(any::<f64>())), 0..5),
        sound in prop::collection::vec((0.0..1e9, prop::option::of(0.0..1e9)), 1..5),
        months in prop_oneof![any::<f64>(), 0.1..12.0],
    ) {
        let forecast = growing();
        for rows in [rows, sound] {
            let all: Vec<SizedConfiguration> =
                rows.iter().enumerate().map(|(i, (price, capacity))| sized(&i.to_string(), *price, *capacity)).collect();
            match cost_table(&all, &forecast, months) {
                Ok(table) => {
                    prop_assert!(table.rows.is_sorted_by_key(|r| r.configuration.price_per_month));
                    prop_assert!(table.rows.iter().all(|r| r.lasts || !r.lasts_safely));
                    prop_assert_eq!(table.to_csv().lines().count(), table.rows.len() + 1);
                }
                Err(error) => prop_assert!(matches!(error, ForecastError::Number { .. } | ForecastError::Inconsistent(_)), "{}", error),
            }
        }
    }
}
