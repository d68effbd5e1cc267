//! The simpler model that a PixelCNN has to beat: pixels that are independent of each other.

use super::task::{Network, counted};
use crate::generative::plain;
use crate::supervised::Features;

/// Rows that are read at once.
const ROWS: usize = 1024;

/// The held-out score where each pixel has the frequencies of its levels in training (and each level one image more than it has), or
/// each column of a table a normal distribution.
pub(super) fn score(
    network: &Network,
    (features, rows): (Features<'_>, &[u32]),
    (held, of_held): (Features<'_>, &[u32]),
) -> f64 {
    let (n, unit) = (of_held.len().max(1) as f64, network.unit());
    match network {
        Network::Images { network, levels } => {
            let (d, k) = (network.shape.len(), network.levels);
            let mut counts = vec![1.0f64; d * k];
            for rows in rows.chunks(ROWS) {
                let found = levels.of(plain(features, rows), d, None);
                for (at, level) in found.into_iter().enumerate() {
                    counts[at % d * k + level as usize] += 1.0;
                }
            }
            let total = (rows.len() + k) as f64;
            let mut sum = 0.0;
            for rows in of_held.chunks(ROWS) {
                let found = levels.of(plain(held, rows), d, None);
                let log =
                    |(at, level): (usize, u32)| (counts[at % d * k + level as usize] / total).ln();
                sum -= found.into_iter().enumerate().map(log).sum::<f64>();
            }
            sum / (n * unit)
        }
        Network::Table { scaler, .. } => {
            let counted = counted(scaler);
            let constant = 0.5 * (2.0 * std::f64::consts::PI).ln();
            let mut sum = 0.0;
            for rows in of_held.chunks(ROWS) {
                let z = scaler.apply(held, rows);
                for z in z.chunks_exact(scaler.len().max(1)) {
                    let each = z.iter().zip(&counted).map(|(z, counted)| {
                        f64::from(*counted) * (0.5 * f64::from(*z).powi(2) + constant)
                    });
                    sum += each.sum::<f64>();
                }
            }
            sum / n
        }
    }
}
