//! Parses configurations from TOML or CSV, and writes the cost table as CSV.

use super::{Configuration, CostRow, CostTable};
use crate::ForecastError;
use crate::time::Timestamp;
use brimful_core::csv;
use brimful_core::number::check_non_negative;
use serde::Deserialize;
use std::collections::HashSet;

/// Parses configurations from TOML or CSV. In TOML, each configuration is a table `[[configuration]]` with `name`,
/// `price_per_month` and `set = ["cpu.servers=4"]`. In CSV, the header is `name,price_per_month,set`, and the changes
/// in `set` are separated by white space. Both formats accept `price` instead of `price_per_month`.
pub fn parse_configurations(text: &str) -> Result<Vec<Configuration>, ForecastError> {
    let text = brimful_core::text::strip_bom(text);
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or("");
    let toml = first.starts_with('[') || first.split(',').next().is_some_and(|start| start.contains('='));
    let configurations = if toml { read_toml(text)? } else { read_csv(text)? };
    check(configurations.iter())?;
    Ok(configurations)
}

/// Checks that there is at least one configuration, and that each has a unique name and a valid price.
pub(super) fn check<'a>(configurations: impl Iterator<Item = &'a Configuration>) -> Result<(), ForecastError> {
    let mut names = HashSet::new();
    for c in configurations {
        if c.name.is_empty() {
            return Err(ForecastError::Inconsistent("a configuration has no name: give it one".into()));
        }
        check_non_negative(c.price_per_month, || format!("the price of `{}`", c.name))?;
        if !names.insert(&c.name) {
            return Err(ForecastError::Inconsistent(format!("two configurations are named `{}`: rename one", c.name)));
        }
    }
    if names.is_empty() {
        return Err(ForecastError::Inconsistent(
            "there is no configuration: give at least one, with name and price".into(),
        ));
    }
    Ok(())
}

fn read_toml(text: &str) -> Result<Vec<Configuration>, ForecastError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        configuration: Vec<Configuration>,
    }
    let document: Result<Document, toml::de::Error> = toml::from_str(text);
    document.map(|d| d.configuration).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        let problem = format!(
            "{}; a configuration is `[[configuration]]` with `name`, `price_per_month` and `set = [\"cpu.servers=4\"]`",
            error.message()
        );
        ForecastError::Input { place: format!("line {line}"), problem }
    })
}

fn read_csv(text: &str) -> Result<Vec<Configuration>, ForecastError> {
    let mut rows = csv::parse(text).into_iter();
    let header = rows.next().unwrap_or(csv::Row { line: 1, fields: Vec::new() });
    let column = |names: &[&str]| header.fields.iter().position(|f| names.contains(&f.to_lowercase().as_str()));
    let name = column(&["name"]);
    let price = column(&["price_per_month", "price"]);
    let set = column(&["set"]);
    let (Some(name), Some(price)) = (name, price) else {
        let problem = "no header: begin with `name,price_per_month,set`".into();
        return Err(ForecastError::Input { place: format!("line {}", header.line), problem });
    };
    let read = |row: csv::Row| {
        let field = |i: usize| row.fields.get(i).map_or("", String::as_str);
        let price_per_month = field(price).parse().map_err(|_| ForecastError::Input {
            place: format!("line {}", row.line),
            problem: format!("the price `{}` is no number: write it without a currency", field(price)),
        })?;
        let set = set.map_or("", field).split_whitespace().map(str::to_owned).collect();
        Ok(Configuration { name: field(name).to_owned(), price_per_month, set })
    };
    rows.map(read).collect()
}

impl CostTable {
    /// Writes the table as CSV; absent values are empty fields.
    pub fn to_csv(&self) -> String {
        let header = [
            "name",
            "price_per_month",
            "capacity",
            "cost_per_million_now",
            "cost_per_million_at_capacity",
            "headroom",
            "months_of_headroom",
            "earliest",
            "likely",
            "latest",
            "lasts",
            "lasts_safely",
            "cheapest",
            "cheapest_safe",
            "set",
        ];
        let rows = self.rows.iter().map(|row| self.line(row));
        std::iter::once(csv::format_row(header)).chain(rows).collect()
    }

    fn line(&self, row: &CostRow) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        let date = |of: fn(&crate::Crossing) -> Option<Timestamp>| {
            row.crossing.as_ref().and_then(of).map_or(String::new(), |t| t.to_string())
        };
        let name = &row.configuration.name;
        let fields = [
            name.clone(),
            row.configuration.price_per_month.to_string(),
            number(row.capacity),
            number(row.cost_per_million_now),
            number(row.cost_per_million_at_capacity),
            number(row.headroom),
            number(row.months_of_headroom),
            date(|c| c.earliest),
            date(|c| c.likely),
            date(|c| c.latest),
            row.lasts.to_string(),
            row.lasts_safely.to_string(),
            (self.cheapest.as_ref() == Some(name)).to_string(),
            (self.cheapest_safe.as_ref() == Some(name)).to_string(),
            row.configuration.set.join(" "),
        ];
        csv::format_row(fields.iter().map(String::as_str))
    }
}
