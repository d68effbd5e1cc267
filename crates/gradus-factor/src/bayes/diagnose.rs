//! Whether the chain has run long enough: split-R̂ and the effective number of draws of a few
//! scalars.

/// Number of scalars of each iteration by which the chain is assessed.
pub(super) const SCALARS: usize = 3;

/// The names of the scalars.
const NAMES: [&str; SCALARS] = ["noise", "level", "spread of the predictions"];

/// Above this the halves of the chain disagree.
const LARGE_R_HAT: f64 = 1.1;

/// Fewer effective draws than this make a poor average.
const FEW: f64 = 20.0;

/// Remarks on the draws that count, if there are enough of them.
pub(super) fn notes(chain: &[[f64; SCALARS]]) -> Vec<String> {
    if chain.len() < 8 {
        return vec![format!("{} draws are too few to assess the chain by", chain.len())];
    }
    let mut said = Vec::new();
    let (mut worst_r, mut fewest) = (0.0f64, f64::INFINITY);
    for (at, name) in NAMES.iter().enumerate() {
        let values: Vec<f64> = chain.iter().map(|scalars| scalars[at]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (r_hat, effective) = (split_r_hat(&values), effective(&values));
        (worst_r, fewest) = (worst_r.max(r_hat), fewest.min(effective));
        said.push(format!("{name} {mean:.4} (split-R̂ {r_hat:.3}, {effective:.0} effective)"));
    }
    let mut notes = vec![format!("of {} draws: {}", chain.len(), said.join(", "))];
    if worst_r > LARGE_R_HAT || fewest < FEW {
        notes.push(
            "caution: the chain moves slowly: the noise, and with it the width of intervals, is known \
             roughly; a longer chain and burn-in tell it better, but seldom improve predictions"
                .into(),
        );
    }
    notes
}

/// Mean and variance.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0))
}

/// The potential scale reduction of the two halves of a chain: near 1 where they agree.
fn split_r_hat(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    let (first, second) = (moments(&values[..half]), moments(&values[values.len() - half..]));
    let within = (first.1 + second.1) / 2.0;
    let (_, between) = moments(&[first.0, second.0]);
    if within <= 0.0 {
        return 1.0;
    }
    let n = half as f64;
    (((n - 1.0) / n * within + between) / within).sqrt()
}

/// The effective sample size, by Geyer's initial positive sequence.
fn effective(values: &[f64]) -> f64 {
    let n = values.len();
    let (mean, variance) = moments(values);
    if variance <= 0.0 {
        return n as f64;
    }
    let covariance = |lag: usize| {
        let pairs = values.iter().zip(&values[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64
    };
    let mut sum = -covariance(0);
    for lag in (0..n - 1).step_by(2) {
        let pair = covariance(lag) + covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        sum += 2.0 * pair;
    }
    (n as f64 * covariance(0) / sum.max(covariance(0) / n as f64)).min(n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// A chain in which each value keeps the share `rho` of the one before.
    fn chain(n: usize, rho: f64) -> Vec<f64> {
        let mut stream = Stream::new(1, "test.chain", 0);
        let mut x = stream.normal();
        (0..n)
            .map(|_| {
                x = rho * x + (1.0 - rho * rho).sqrt() * stream.normal();
                x
            })
            .collect()
    }

    #[test]
    fn the_effective_number_is_that_of_theory() {
        // An autoregressive chain is worth (1 − ρ) / (1 + ρ) of independent draws.
        for rho in [0.0, 0.5, 0.9] {
            let got = effective(&chain(40_000, rho)) / 40_000.0;
            let want = (1.0 - rho) / (1.0 + rho);
            assert!((got / want - 1.0).abs() < 0.15, "{rho}: {got} for {want}");
        }
        assert_eq!(effective(&[1.0; 10]), 10.0);
    }

    #[test]
    fn halves_that_disagree_show() {
        let settled = chain(2000, 0.3);
        assert!(split_r_hat(&settled) < 1.01);
        let drifting: Vec<f64> =
            settled.iter().enumerate().map(|(at, x)| x + at as f64 / 300.0).collect();
        assert!(split_r_hat(&drifting) > 1.5);
        let scalars: Vec<[f64; SCALARS]> = drifting.iter().map(|&x| [x; SCALARS]).collect();
        assert_eq!(notes(&scalars).len(), 2);
        let scalars: Vec<[f64; SCALARS]> = settled.iter().map(|&x| [x; SCALARS]).collect();
        assert_eq!(notes(&scalars).len(), 1);
        assert!(notes(&scalars[..5])[0].contains("too few"));
    }
}
