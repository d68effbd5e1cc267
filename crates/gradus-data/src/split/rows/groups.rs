//! Whole groups of rows.

use super::{RowFolds, RowSplit, check_folds, check_rows, check_share};
use gradus_base::Result;
use gradus_base::random::Stream;

/// The groups there are, and the rows of each.
fn by_group(groups: &[u32]) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..groups.len() as u32).collect();
    order.sort_by_key(|&row| groups[row as usize]);
    let same = |&a: &u32, &b: &u32| groups[a as usize] == groups[b as usize];
    order.chunk_by(same).map(<[u32]>::to_vec).collect()
}

/// Sets whole groups aside, chosen at random: no group is on both sides. The share is of the groups,
/// so the share of the rows depends on their sizes.
///
/// # Errors
/// If `share` is not strictly between 0 and 1, or leaves one of the parts without groups.
///
/// ```
/// use gradus_data::split::rows::grouped_holdout;
///
/// let groups = [7, 7, 3, 3, 3, 9, 9, 1];
/// let split = grouped_holdout(&groups, 0.25, 1)?;
/// let test: Vec<u32> = split.test.iter().map(|&row| groups[row as usize]).collect();
/// assert!(split.train.iter().all(|&row| !test.contains(&groups[row as usize])));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn grouped_holdout(groups: &[u32], share: f64, seed: u64) -> Result<RowSplit> {
    check_rows(groups.len())?;
    let members = by_group(groups);
    let wanted = check_share(share, members.len(), "groups")?;
    let mut held_out = vec![false; groups.len()];
    for group in Stream::new(seed, "split.rows.grouped_holdout", 0).sample(members.len(), wanted)? {
        members[group].iter().for_each(|&row| held_out[row as usize] = true);
    }
    Ok(RowSplit::of(groups.len(), |row| held_out[row]))
}

/// Cuts the rows into `k` parts so that no group is in two of them, and the sizes are as even as the
/// groups allow: each group, the largest first, goes to the part with the fewest rows. (The largest
/// part is then at most a third larger than it has to be.) Groups of one size are dealt at random.
///
/// # Errors
/// If `k` is less than 2, or larger than the number of groups.
///
/// ```
/// use gradus_data::split::rows::grouped_folds;
///
/// let folds = grouped_folds(&[7, 7, 3, 3, 3, 9, 9, 1], 2, 1)?;
/// assert!(folds.iter().all(|split| split.test.len() == 4));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn grouped_folds(groups: &[u32], k: usize, seed: u64) -> Result<RowFolds> {
    check_rows(groups.len())?;
    let mut members = by_group(groups);
    check_folds(k, members.len(), "groups")?;
    let mut stream = Stream::new(seed, "split.rows.grouped_folds", 0);
    stream.shuffle(&mut members);
    members.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
    let mut names: Vec<u32> = (0..k as u32).collect();
    stream.shuffle(&mut names);
    // The parts by size, the smallest on top; ties go to the one that comes first.
    let mut sizes: std::collections::BinaryHeap<_> =
        (0..k).map(|place| std::cmp::Reverse((0usize, place))).collect();
    let mut parts = vec![0; groups.len()];
    for rows in members {
        let Some(std::cmp::Reverse((size, place))) = sizes.pop() else { break };
        rows.iter().for_each(|&row| parts[row as usize] = names[place]);
        sizes.push(std::cmp::Reverse((size + rows.len(), place)));
    }
    Ok(RowFolds::parts(parts, k))
}
