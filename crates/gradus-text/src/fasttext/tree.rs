//! Huffman's tree of classes, as fastText builds it.

/// A tree of classes: frequent ones are near its root.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// For each class, from its leaf to the root: the inner nodes, and whether the way from them leads to the right.
    paths: Vec<Vec<(u32, bool)>>,
    /// For each inner node its two children: classes below their number, then inner nodes.
    children: Vec<[u32; 2]>,
}

impl Tree {
    /// The tree of classes with these frequencies, which descend.
    pub(super) fn new(counts: &[u64]) -> Self {
        const FAR: u64 = 1_000_000_000_000_000;
        let n = counts.len();
        let mut weights = counts.to_vec();
        weights.resize((2 * n).saturating_sub(1), FAR);
        let mut parents: Vec<Option<(u32, bool)>> = vec![None; weights.len()];
        let mut children = Vec::with_capacity(n.saturating_sub(1));
        let (mut n_leaves, mut node) = (n, n);
        for inner in n..weights.len() {
            let mut least = || {
                let is_leaf = n_leaves > 0 && weights[n_leaves - 1] < weights[node];
                if is_leaf {
                    n_leaves -= 1;
                    n_leaves
                } else {
                    node += 1;
                    node - 1
                }
            };
            let (left, right) = (least(), least());
            weights[inner] = weights[left].saturating_add(weights[right]);
            parents[left] = Some(((inner - n) as u32, false));
            parents[right] = Some(((inner - n) as u32, true));
            children.push([left as u32, right as u32]);
        }
        let path = |class: usize| {
            let (mut path, mut at) = (Vec::new(), class);
            while let Some((parent, right)) = parents[at] {
                path.push((parent, right));
                at = n + parent as usize;
            }
            path
        };
        Self { paths: (0..n).map(path).collect(), children }
    }

    /// The inner nodes from the leaf of a class to the root, and whether the way from them leads to the right.
    pub(super) fn path(&self, class: u32) -> &[(u32, bool)] {
        &self.paths[class as usize]
    }

    /// The logarithm of the probability of each class, by the logarithms of the probabilities to go left and right at each
    /// inner node.
    pub(super) fn logs(&self, at_node: impl Fn(usize) -> (f64, f64)) -> Vec<f64> {
        let n = self.paths.len();
        let mut logs = vec![0f64; n + self.children.len()];
        // A node comes after its children.
        for (node, &[left, right]) in self.children.iter().enumerate().rev() {
            let (to_left, to_right) = at_node(node);
            logs[left as usize] = logs[n + node] + to_left;
            logs[right as usize] = logs[n + node] + to_right;
        }
        logs.truncate(n);
        logs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_classes_have_short_ways_that_part_all_classes() {
        let tree = Tree::new(&[40, 20, 10, 5, 5]);
        let lengths: Vec<usize> = (0..5).map(|class| tree.path(class).len()).collect();
        assert_eq!(lengths, [1, 2, 3, 4, 4]);
        let half = 0.5f64.ln();
        let logs = tree.logs(|_| (half, half));
        for (class, log) in logs.iter().enumerate() {
            let want = half * lengths[class] as f64;
            assert!((log - want).abs() < 1e-12);
        }
        assert!((logs.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        // By its path a class has the probability that the tree gives it.
        let p = |node: usize| 0.1 + 0.2 * node as f64;
        let logs = tree.logs(|node| ((1.0 - p(node)).ln(), p(node).ln()));
        for (class, log) in (0u32..).zip(&logs) {
            let way = tree.path(class).iter();
            let along = |&(node, right): &(u32, bool)| {
                let p = p(node as usize);
                if right { p.ln() } else { (1.0 - p).ln() }
            };
            assert!((way.map(along).sum::<f64>() - log).abs() < 1e-12);
        }
        assert!(Tree::new(&[3]).path(0).is_empty());
    }
}
