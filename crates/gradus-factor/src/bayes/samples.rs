//! The draws that are kept, in half precision.
//!
//! For users, the means of the conditional distributions (given the items of the same draw) are kept
//! instead of the drawn rows: their average is the same and far less noisy. The drawn rows of some draws
//! are kept as well; they show how uncertain a user is.

use super::hyper::Gaussian;
use super::solve::Priors;
use super::typical::Typical;
use crate::vectors::Vectors;
use gradus_base::Result;
use gradus_data::Entity;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Bf16, Rows};

/// The sizes of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) n_users: usize,
    pub(super) n_items: usize,
    pub(super) rank: usize,
    /// Whether what items add to users is kept as well.
    pub(super) lists: bool,
    /// Number of features of users and of items.
    pub(super) features: [usize; 2],
    /// Number of typical rows of users and of items: 2 where the side has features.
    pub(super) typical: [usize; 2],
}

/// The drawn rows of users are kept with every `SPARSE`-th draw.
pub(super) const SPARSE: usize = 4;

/// The draw of one iteration.
pub(super) struct Draw<'a> {
    pub(super) users: &'a Vectors,
    /// The means that the users' rows were drawn about.
    pub(super) means: &'a Vectors,
    pub(super) items: &'a Vectors,
    pub(super) lists: Option<&'a Rows>,
    /// The coefficients of the features of users, and of items.
    pub(super) links: [Option<&'a Rows>; 2],
    /// The rows of users and items without ratings.
    pub(super) typical: &'a [Typical; 2],
    pub(super) noise: f64,
}

/// Draws, one after another. Rows have `rank + 1` values, the bias last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// Whether the only draw is provisional: it is there until a first draw counts.
    provisional: bool,
    /// The means of the users' rows.
    pub(super) users: Vec<Bf16>,
    pub(super) items: Vec<Bf16>,
    /// The differences of the users' rows from their means, of every [`SPARSE`]-th draw.
    pub(super) deviations: Vec<Bf16>,
    /// The contribution of each item to the users who rated it.
    pub(super) lists: Vec<Bf16>,
    /// The coefficients of the features of users, and of items.
    pub(super) links: [Vec<Bf16>; 2],
    /// The typical rows of users and of items: in each draw that of which nothing is known, and with features that
    /// known by these.
    pub(super) typical: [Vec<f32>; 2],
    /// The precision of the noise.
    pub(super) noise: Vec<f64>,
    /// Mean and precision of the users' prior, and of the items'.
    pub(super) user_priors: Vec<f32>,
    pub(super) item_priors: Vec<f32>,
}

impl Samples {
    pub(super) fn len(&self) -> usize {
        self.noise.len()
    }

    /// Whether no draw counts yet.
    pub(super) fn wait(&self) -> bool {
        self.provisional || self.noise.is_empty()
    }

    /// Adds a draw; the next draw replaces one that does not count.
    pub(super) fn push(&mut self, draw: &Draw<'_>, priors: &Priors, counts: bool) {
        if self.provisional {
            *self = Self::default();
        }
        self.provisional = !counts;
        let &Draw { users, means, items, lists, links, typical, noise } = draw;
        for (to, from) in [(&mut self.users, means), (&mut self.items, items)] {
            for row in 0..from.bias.len() {
                to.extend(from.row(row).map(Bf16::new));
            }
        }
        if self.noise.len().is_multiple_of(SPARSE) {
            for row in 0..users.bias.len() {
                let off = users.row(row).zip(means.row(row)).map(|(x, mean)| Bf16::new(x - mean));
                self.deviations.extend(off);
            }
        }
        if let Some(lists) = lists {
            for row in lists.as_slice().chunks_exact(lists.stride()) {
                self.lists.extend(row[..lists.k()].iter().map(|&x| Bf16::new(x)));
            }
        }
        for (to, links) in self.links.iter_mut().zip(links) {
            let Some(links) = links else { continue };
            for row in links.as_slice().chunks_exact(links.stride()) {
                to.extend(row[..links.k()].iter().map(|&x| Bf16::new(x)));
            }
        }
        for (to, typical) in self.typical.iter_mut().zip(typical) {
            let rows = typical.unknown.iter().chain(typical.described.iter().flatten());
            to.extend(rows.map(|&x| x as f32));
        }
        self.noise.push(noise);
        let flat = |to: &mut Vec<f32>, prior: &Gaussian| {
            to.extend(prior.mean.iter().chain(&prior.precision.values).map(|&x| x as f32));
        };
        flat(&mut self.user_priors, &priors.users);
        flat(&mut self.item_priors, &priors.items);
    }

    /// Writes them to a file under names that begin with `prefix`.
    pub(super) fn write<'a>(&'a self, prefix: &str, shape: Shape, file: &mut Writer<'a>) {
        let (s, d) = (self.len(), shape.rank + 1);
        file.set(&format!("{prefix}count"), &(s, self.provisional));
        file.tensor(&format!("{prefix}users"), &[s, shape.n_users, d], &self.users);
        file.tensor(&format!("{prefix}items"), &[s, shape.n_items, d], &self.items);
        let sparse = [s.div_ceil(SPARSE), shape.n_users, d];
        file.tensor(&format!("{prefix}deviations"), &sparse, &self.deviations);
        if shape.lists {
            file.tensor(&format!("{prefix}lists"), &[s, shape.n_items, d], &self.lists);
        }
        for (at, name) in ["user_links", "item_links"].into_iter().enumerate() {
            if shape.features[at] > 0 {
                let size = [s, shape.features[at], d];
                file.tensor(&format!("{prefix}{name}"), &size, &self.links[at]);
            }
        }
        for (of, typical) in Entity::ALL.into_iter().zip(&self.typical) {
            let size = [s, shape.typical[of as usize], d];
            file.tensor(&format!("{prefix}{}_typical", of.name()), &size, typical);
        }
        file.tensor(&format!("{prefix}noise"), &[s], &self.noise);
        file.tensor(&format!("{prefix}user_priors"), &[s, d + 1, d], &self.user_priors);
        file.tensor(&format!("{prefix}item_priors"), &[s, d + 1, d], &self.item_priors);
    }

    /// Reads them back.
    pub(super) fn read(prefix: &str, shape: Shape, file: &mut Reader) -> Result<Self> {
        let (s, provisional): (usize, bool) = file.get(&format!("{prefix}count"))?;
        let d = shape.rank + 1;
        let mut links = [Vec::new(), Vec::new()];
        for (at, name) in ["user_links", "item_links"].into_iter().enumerate() {
            if shape.features[at] > 0 {
                let size = [s, shape.features[at], d];
                links[at] = file.tensor(&format!("{prefix}{name}"), &size)?;
            }
        }
        let user_priors: Vec<f32> = file.finite(&format!("{prefix}user_priors"), &[s, d + 1, d])?;
        let item_priors: Vec<f32> = file.finite(&format!("{prefix}item_priors"), &[s, d + 1, d])?;
        let priors = [&user_priors[..], &item_priors[..]];
        let typical = read_typical(prefix, file, (s, d), shape.typical, priors)?;
        Ok(Self {
            links,
            provisional,
            typical,
            users: file.tensor(&format!("{prefix}users"), &[s, shape.n_users, d])?,
            items: file.tensor(&format!("{prefix}items"), &[s, shape.n_items, d])?,
            deviations: file
                .tensor(&format!("{prefix}deviations"), &[s.div_ceil(SPARSE), shape.n_users, d])?,
            lists: if shape.lists {
                file.tensor(&format!("{prefix}lists"), &[s, shape.n_items, d])?
            } else {
                Vec::new()
            },
            noise: file.tensor(&format!("{prefix}noise"), &[s])?,
            user_priors,
            item_priors,
        })
    }

    /// Rows of one side with their samples side by side: row after row, in each sample after
    /// sample.
    pub(super) fn side_by_side(samples: usize, n: usize, d: usize, rows: &[Bf16]) -> Vec<Bf16> {
        let mut to = Vec::with_capacity(rows.len());
        for row in 0..n {
            for sample in 0..samples {
                to.extend_from_slice(&rows[(sample * n + row) * d..][..d]);
            }
        }
        to
    }
}

/// Reads the typical rows of users and of items, `rows` of each in every draw. A file of an older version has none: the means of the
/// priors stand in.
pub(super) fn read_typical(
    prefix: &str,
    file: &mut Reader,
    (s, d): (usize, usize),
    rows: [usize; 2],
    priors: [&[f32]; 2],
) -> Result<[Vec<f32>; 2]> {
    let mut typical = [Vec::new(), Vec::new()];
    for of in Entity::ALL {
        let (name, rows) = (format!("{prefix}{}_typical", of.name()), rows[of as usize]);
        typical[of as usize] = if file.has(&name) {
            file.finite(&name, &[s, rows, d])?
        } else {
            let priors = priors[of as usize].chunks_exact(d * (d + 1));
            priors.flat_map(|prior| prior[..d].repeat(rows)).collect()
        };
    }
    Ok(typical)
}
