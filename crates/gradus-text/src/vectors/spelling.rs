//! Words of similar spelling, for the message about an unknown one.

use super::WordVectors;
use gradus_base::parallel;
use gradus_core::embed::Embed as _;

/// Longer words are not compared.
const LONGEST: usize = 48;

/// The words of a model that are spelled most like a word: those of another case or accent alone first, then those that
/// differ by the fewest letters (a quarter of the word at most), the frequent ones first.
pub(super) fn near(model: &WordVectors, word: &str, n: usize) -> Vec<String> {
    let wanted: Vec<char> = word.to_lowercase().chars().collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return Vec::new();
    }
    let most = (wanted.len() / 4).clamp(1, 3);
    let ranking = model.ranking();
    let found = parallel::map(ranking.chunks(4096), |places| {
        let mut found = Vec::new();
        let mut other: Vec<char> = Vec::new();
        for &at in places {
            let text = model.word(at as usize);
            if text.len() > 4 * LONGEST {
                continue;
            }
            other.clear();
            other.extend(text.chars().flat_map(char::to_lowercase));
            if other.len().abs_diff(wanted.len()) <= most {
                let distance = edits(&wanted, &other);
                if distance <= most {
                    found.push((distance, at));
                }
            }
        }
        found
    });
    let mut found: Vec<(usize, u32)> = found.into_iter().flatten().collect();
    found.sort_by_key(|&(distance, _)| distance);
    found.into_iter().take(n).map(|(_, at)| model.word(at as usize).to_owned()).collect()
}

/// The least number of letters to insert, leave out, replace or swap with the next one that makes one word of the other.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; 3];
    rows[1] = (0..=b.len()).collect();
    for i in 0..a.len() {
        rows[2][0] = i + 1;
        for j in 0..b.len() {
            let replaced = rows[1][j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(rows[1][j + 1] + 1).min(rows[2][j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(rows[0][j - 1] + 1);
            }
            rows[2][j + 1] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_by_letters() {
        let edits = |a: &str, b: &str| {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            edits(&chars(a), &chars(b))
        };
        assert_eq!(edits("king", "king"), 0);
        assert_eq!(edits("king", "knig"), 1);
        assert_eq!(edits("king", "kings"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "été"), 3);
    }

    #[test]
    fn near_spellings_come_by_distance_and_then_by_frequency() {
        let words = ["kinds", "kings", "kins", "zebra", "King"];
        let counts = [50, 9, 70, 90, 1];
        let model = WordVectors::new(&words, Some(&counts), &[1.0; 5], None).unwrap();
        assert_eq!(near(&model, "king", 3), ["King", "kins", "kings"]);
        assert_eq!(near(&model, "zebar", 3), ["zebra"]);
        assert!(near(&model, "unlike", 3).is_empty());
        assert!(near(&model, "", 3).is_empty());
    }
}
