//! The rules by which request classes share the busy time of each resource, from `--attribution` and `--as-the-paper`,
//! and descriptions of these rules.

use crate::exit::UsageError;
use crate::plan::args::CalibrateArgs;
use crate::plan::args::site::{AttributionChoice, RuleName};
use brimful_core::quantity::{number, seconds};
use brimful_estimate::EstimateError;
use brimful_estimate::site::{RuleReason, SiteDemands, SiteRule};

/// Rules for dividing busy time in Menascé et al. (CMG 1999), §3.5. The busy time of the CPU and of disk3, which has
/// the documents, is divided by size (Eq. 3). That of disk1, the system's disk, and disk2, the disk of the logs, is
/// divided equally among requests (Eq. 4).
const PAPER_RULES: [(&str, SiteRule); 4] =
    [("cpu", SiteRule::Size), ("disk1", SiteRule::Requests), ("disk2", SiteRule::Requests), ("disk3", SiteRule::Size)];

/// The rule by which classes share a resource's busy time, and the reason why it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResourceRule {
    /// The rule by which classes share the busy time of the resource.
    pub rule: SiteRule,
    /// The reason why this rule applies.
    pub origin: Origin,
}

/// The reason why a rule for dividing busy time applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user did not choose a rule.
    Default,
    /// The user chose the rule by `--attribution`.
    Attribution,
    /// The rule is part of `--as-the-paper`.
    Paper,
}

/// For each resource, the rule by which the request classes share its busy time.
///
/// # Errors
/// Returns an error if a flag names an unknown resource or class, if two rules are given for the same resource, or if
/// `--as-the-paper` has no rule for a resource.
pub(super) fn rules(
    args: &CalibrateArgs,
    resources: &[String],
    classes: &[String],
) -> Result<Vec<ResourceRule>, UsageError> {
    for (index, choice) in args.attribution.iter().enumerate() {
        if args.attribution[..index].iter().any(|earlier| earlier.resource == choice.resource) {
            let what = choice.resource.as_deref().unwrap_or("all resources");
            return Err(UsageError(format!("--attribution has two rules for {what}: give one, like cpu=size")));
        }
        if let Some(name) = choice.resource.as_ref().filter(|name| !resources.contains(name)) {
            return Err(UsageError(format!(
                "--attribution: there is no resource `{name}` in --utilization; it has {}",
                resources.join(", ")
            )));
        }
    }
    resources.iter().map(|name| rule_of(args, name, classes)).collect()
}

fn rule_of(args: &CalibrateArgs, resource: &str, classes: &[String]) -> Result<ResourceRule, UsageError> {
    let of_name = |choice: &&AttributionChoice| choice.resource.as_deref() == Some(resource);
    let of_all = |choice: &&AttributionChoice| choice.resource.is_none();
    let own = args.attribution.iter().find(of_name);
    if let Some(choice) = own.or_else(|| args.attribution.iter().find(of_all)) {
        return Ok(ResourceRule { rule: resolve(&choice.rule, classes)?, origin: Origin::Attribution });
    }
    if !args.site.as_the_paper {
        return Ok(ResourceRule { rule: SiteRule::Automatic, origin: Origin::Default });
    }
    let of_paper = PAPER_RULES.iter().find(|(name, _)| name.eq_ignore_ascii_case(resource));
    match of_paper {
        Some((_, rule)) => Ok(ResourceRule { rule: *rule, origin: Origin::Paper }),
        None => Err(UsageError(format!(
            "--as-the-paper has no rule for `{resource}`, only for cpu, disk1 (system), disk2 (logs) and disk3 (documents): \
             add --attribution {resource}=requests for a disk with logs, or {resource}=size for one with documents"
        ))),
    }
}

fn resolve(name: &RuleName, classes: &[String]) -> Result<SiteRule, UsageError> {
    Ok(match name {
        RuleName::Automatic => SiteRule::Automatic,
        RuleName::Regression => SiteRule::Regression,
        RuleName::Line => SiteRule::Line,
        RuleName::Size => SiteRule::Size,
        RuleName::Bytes => SiteRule::Bytes,
        RuleName::Requests => SiteRule::Requests,
        RuleName::Class(name) => match classes.iter().position(|class| class == name) {
            Some(class) => SiteRule::Class(class),
            None => {
                return Err(UsageError(format!(
                    "--attribution: `{name}` is neither a rule nor a class; the rules are {}; the classes are {}",
                    RuleName::NAMES,
                    classes.join(", ")
                )));
            }
        },
    })
}

/// Describes the rule that divided the busy time of a resource, and why it was used.
pub(super) fn describe(found: &SiteDemands, from: Origin, classes: &[String], known: &[Option<String>]) -> String {
    let some_known = known.iter().any(Option::is_some);
    let rule = match found.rule {
        SiteRule::Automatic | SiteRule::Regression => "by regression over the steps".to_owned(),
        SiteRule::Line => "a line over sizes: every request costs the same, and every byte does".to_owned(),
        SiteRule::Size => {
            let empty = found
                .intercept
                .map_or_else(String::new, |intercept| format!("{} without a body, ", seconds(intercept.value)));
            format!("by size: {empty}and the rest in proportion to the bytes sent (Eq. 3)")
        }
        SiteRule::Bytes if some_known => {
            "in proportion to the bytes sent, after the known demands are subtracted (Eq. 3)".to_owned()
        }
        SiteRule::Bytes => "in proportion to the bytes sent (Eq. 2)".to_owned(),
        SiteRule::Requests => "equally for every request (Eq. 4)".to_owned(),
        SiteRule::Class(class) => format!("only {} uses it", classes[class]),
    };
    let reason = match (&found.reason, from) {
        (RuleReason::ChosenByUser, Origin::Paper) => "as in the paper (--as-the-paper)".to_owned(),
        (RuleReason::ChosenByUser, _) => "chosen with --attribution".to_owned(),
        (RuleReason::Distinguished(condition), _) => {
            format!("the steps distinguish all classes (condition number {})", number(*condition))
        }
        (RuleReason::InterceptMeasured, _) => {
            "the steps do not distinguish the classes, but the cost without a body was measured".to_owned()
        }
        (RuleReason::SizesDistinguished(condition), _) => format!(
            "the steps do not distinguish the classes, but they distinguish requests from bytes (condition number {})",
            number(*condition)
        ),
        (RuleReason::BytesCostNothing, _) => {
            "the steps do not distinguish the classes, but a line over sizes shows no cost of bytes".to_owned()
        }
        (RuleReason::Indistinct, _) => {
            "the steps do not distinguish all classes, and nothing else shows what an answer without a body costs"
                .to_owned()
        }
        (RuleReason::NoRegression, _) => {
            let why = found.regression.as_ref().err().map(ToString::to_string).unwrap_or_default();
            format!("there is no regression: {why}")
        }
    };
    let known: Vec<String> = classes
        .iter()
        .zip(known)
        .filter_map(|(class, source)| Some(format!("{class} is known {}", source.as_ref()?)))
        .collect();
    let known = if known.is_empty() { String::new() } else { format!("; {}", known.join(", ")) };
    format!("{rule}: {reason}{known}")
}

/// Adds the name of the resource to an error of its estimate, and the flags that avoid the error.
pub(super) fn explain_error(error: EstimateError, resource: &str, empty: Option<&str>) -> anyhow::Error {
    let hint = match &error {
        EstimateError::NoIntercept => {
            let class = empty.unwrap_or("empty");
            format!(
                "; give its Record with --alone RECORD, Records of three sizes, or its demand with --demand \
                 {resource}.{class}=TIME"
            )
        }
        EstimateError::KnownExceedBusy { .. } => " (--demand, --alone)".to_owned(),
        _ => String::new(),
    };
    UsageError(format!("{resource}: {error}{hint}")).into()
}
