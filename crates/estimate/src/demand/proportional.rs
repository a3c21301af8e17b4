//! Demands from the busy time at a single load, divided among the classes by a rule: Menascé, Peraino, Dinh & Dinh, CMG
//! 1999.
//!
//! Eq. 1 of the paper, D_r = U_r·T/C_r, requires the utilization U_r by each class r, which cannot be observed on a
//! server that serves all classes at once (D_r is the demand, T the duration, C_r the number of completions). Eq. 2
//! divides the total utilization U in proportion to a share f_r, such as the share of the bytes sent: D_r =
//! U·f_r·T/C_r. Eq. 3 first subtracts the busy time of classes whose demand is already known. Eq. 4 assigns the same
//! demand to every request.

use crate::EstimateError;
use brimful_core::number::check_non_negative;

/// Assigns the same demand to every class: the busy time divided by the number of completions of all classes (Menascé
/// et al., CMG 1999, Eq. 4).
///
/// `busy_s` is utilization × number of servers × duration; `completions` are the completed requests of each class in
/// this duration.
pub fn attribute_equally(busy_s: f64, completions: &[f64]) -> Result<Vec<f64>, EstimateError> {
    let busy_s = check_non_negative(busy_s, || "the busy time".into())?;
    for (class, completed) in completions.iter().enumerate() {
        check_non_negative(*completed, || format!("the completions of class {class}"))?;
    }
    let total: f64 = completions.iter().sum();
    if total == 0.0 {
        return Err(EstimateError::Unobserved { class: 0 });
    }
    Ok(vec![busy_s / total; completions.len()])
}

/// Divides the busy time among the classes in proportion to a share, such as the share of the bytes sent. The busy time
/// of classes with a `known` demand is subtracted first (Menascé et al., CMG 1999, Eq. 2 and 3).
///
/// `busy_s` is utilization × number of servers × duration; the other arguments have one value per class. Shares are not
/// normalized: if they sum to less than 1, the rest of the busy time is not attributed to any class. The share of a
/// class with a known demand is ignored.
pub fn attribute_by_share(
    busy_s: f64,
    completions: &[f64],
    shares: &[f64],
    known: &[Option<f64>],
) -> Result<Vec<f64>, EstimateError> {
    if shares.len() != completions.len() || known.len() != completions.len() {
        let (c, s, k) = (completions.len(), shares.len(), known.len());
        return Err(EstimateError::Inconsistent(format!("{c} classes, {s} shares and {k} known demands")));
    }
    for (class, completed) in completions.iter().enumerate() {
        if known[class].is_none() && *completed == 0.0 {
            return Err(EstimateError::Unobserved { class });
        }
        check_non_negative(*completed, || format!("the completions of class {class}"))?;
        check_non_negative(known[class].unwrap_or(shares[class]), || {
            format!("the share or known demand of class {class}")
        })?;
    }
    let set_aside: f64 = known.iter().zip(completions).map(|(d, c)| d.unwrap_or(0.0) * c).sum();
    let rest = check_non_negative(busy_s - set_aside, || "the busy time, less that of the known classes,".into())?;
    let demand = |class: usize| known[class].unwrap_or(rest * shares[class] / completions[class]);
    Ok((0..completions.len()).map(demand).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proportional_rule_rejects_what_it_cannot_divide() {
        assert!(matches!(
            attribute_by_share(1.0, &[10.0, 0.0], &[0.5, 0.5], &[None, None]),
            Err(EstimateError::Unobserved { class: 1 })
        ));
        let error = attribute_by_share(1.0, &[10.0, 5.0], &[0.0, 1.0], &[Some(0.2), None]).unwrap_err();
        assert!(error.to_string().contains("known classes"), "{error}");
        assert_eq!(attribute_equally(3.0, &[10.0, 20.0]), Ok(vec![0.1, 0.1]));
        assert_eq!(attribute_equally(3.0, &[30.0, 0.0]), Ok(vec![0.1, 0.1]));
        assert_eq!(attribute_equally(3.0, &[0.0]), Err(EstimateError::Unobserved { class: 0 }));
    }
}
