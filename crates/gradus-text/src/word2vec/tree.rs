//! Hierarchical softmax: a word is the leaf at the end of a way through a binary tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Huffman's tree of the words: frequent words have short ways. Inner nodes are numbered from the root, which is 0; a node
/// has a smaller number than the nodes below it.
pub(super) struct Tree {
    /// The inner nodes on the way to each word, one word after the other, each from the root on.
    nodes: Vec<u32>,
    /// The turn at each of these nodes: 1 or 0.
    turns: Vec<f32>,
    /// The end of the path of each word.
    ends: Vec<usize>,
    /// How often each inner node is on the way to a word.
    counts: Vec<f64>,
}

impl Tree {
    /// The tree of words with these counts; of equal ones the later word is joined first. There must be two words at
    /// least.
    pub(super) fn new(counts: &[u64]) -> Self {
        let n = counts.len();
        // Leaves are 0 to n − 1; inner nodes are numbered as they are made, from n on.
        let mut open: BinaryHeap<_> =
            counts.iter().zip(0..).map(|(&count, leaf)| Reverse((count, n - 1 - leaf))).collect();
        let mut parents = vec![(0usize, 0f32); 2 * n - 1];
        let mut of_inner = Vec::with_capacity(n - 1);
        // A key of the heap counts down for leaves, so that equal counts have one order.
        let node_of = |key: usize| if key < n { n - 1 - key } else { key };
        for made in n..2 * n - 1 {
            let mut sum = 0u64;
            for turn in [1.0, 0.0] {
                if let Some(Reverse((count, key))) = open.pop() {
                    parents[node_of(key)] = (made, turn);
                    sum = sum.saturating_add(count);
                }
            }
            of_inner.push(sum as f64);
            open.push(Reverse((sum, made)));
        }
        let root = 2 * n - 2;
        let (mut nodes, mut turns, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(n));
        for leaf in 0..n {
            let (first, mut node) = (nodes.len(), leaf);
            while node != root {
                let (parent, turn) = parents[node];
                nodes.push((root - parent) as u32);
                turns.push(turn);
                node = parent;
            }
            nodes[first..].reverse();
            turns[first..].reverse();
            ends.push(nodes.len());
        }
        of_inner.reverse();
        Self { nodes, turns, ends, counts: of_inner }
    }

    /// The inner nodes on the way to a word, and the turn at each.
    pub(super) fn way(&self, word: u32) -> (&[u32], &[f32]) {
        let word = word as usize;
        let start = if word == 0 { 0 } else { self.ends[word - 1] };
        (&self.nodes[start..self.ends[word]], &self.turns[start..self.ends[word]])
    }

    /// How often each inner node is passed on the ways to all words of the text.
    pub(super) fn counts(&self) -> &[f64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_tree_is_that_of_hand() {
        // 1 + 2 = 3, 3 + 4 = 7, 7 + 8 = 15.
        let tree = Tree::new(&[8, 4, 2, 1]);
        assert_eq!(tree.counts(), [15.0, 7.0, 3.0]);
        let nodes: Vec<&[u32]> = (0..4).map(|word| tree.way(word).0).collect();
        assert_eq!(nodes, [&[0][..], &[0, 1], &[0, 1, 2], &[0, 1, 2]]);
        // The rarer one of two is turn 1.
        let turns: Vec<&[f32]> = (0..4).map(|word| tree.way(word).1).collect();
        assert_eq!(turns, [&[0.0][..], &[1.0, 0.0], &[1.0, 1.0, 0.0], &[1.0, 1.0, 1.0]]);
    }

    /// Whatever the vectors are, the probabilities of all words add up to 1; the way of a word is within a turn of
    /// its information, in the mean.
    #[test]
    fn ways_are_a_distribution_and_short() {
        for n in [2usize, 3, 10, 257] {
            let counts: Vec<u64> = (0..n as u64).map(|at| 1 + 1000 / (at + 1)).collect();
            let tree = Tree::new(&counts);
            let chance = |node: u32| 1.0 / (1.0 + (-((node * 7 % 5) as f64 - 2.0)).exp());
            let (mut sum, mut length, mut bits) = (0.0, 0.0, 0.0);
            let total = counts.iter().sum::<u64>() as f64;
            for word in 0..n as u32 {
                let (nodes, turns) = tree.way(word);
                let turn = |(node, turn): (&u32, &f32)| {
                    if *turn > 0.0 { chance(*node) } else { 1.0 - chance(*node) }
                };
                sum += nodes.iter().zip(turns).map(turn).product::<f64>();
                let share = counts[word as usize] as f64 / total;
                length += share * nodes.len() as f64;
                bits -= share * share.log2();
                assert!(nodes.windows(2).all(|pair| pair[0] < pair[1]));
            }
            assert!((sum - 1.0).abs() < 1e-12, "{n}: {sum}");
            assert!(length >= bits - 1e-12 && length < bits + 1.0, "{n}: {length} {bits}");
        }
    }
}
