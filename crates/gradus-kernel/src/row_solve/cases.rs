use super::super::Rows;
use super::super::testing::{Random, solve_dense};
use super::*;

pub struct Case {
    pub rows: Rows,
    pub indices: Vec<u32>,
    pub targets: Vec<f32>,
    pub weights: Option<Vec<f32>>,
    pub lambda: f32,
    pub bias: Option<f32>,
}

impl Case {
    pub fn new(k: usize, n: usize, weighted: bool, bias: bool, seed: u64) -> Case {
        let mut random = Random(seed);
        let lambda = 0.1 * n.max(1) as f32;
        Case {
            rows: random.rows(400, k, 0.6),
            indices: (0..n).map(|_| random.below(400) as u32).collect(),
            targets: random.values(n).iter().map(|y| 2.0 * y + 0.7).collect(),
            weights: weighted.then(|| random.values(n).iter().map(|w| w.abs() + 0.1).collect()),
            lambda,
            bias: bias.then_some(0.5 * lambda),
        }
    }

    pub fn problem(&self) -> RowProblem<'_> {
        RowProblem {
            factors: self.rows.as_slice(),
            indices: &self.indices,
            targets: &self.targets,
            weights: self.weights.as_deref(),
            lambda: self.lambda,
            bias: self.bias,
            base: None,
            linear: None,
            residuals: true,
            upcoming: &[],
        }
    }

    pub fn solve(&self, level: Level) -> (Vec<f32>, RowSolution) {
        let mut out = vec![f32::NAN; self.rows.stride()];
        let found = RowSolver::new(self.rows.k(), level).solve(&self.problem(), &mut out);
        (out, found)
    }

    pub fn weight(&self, n: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| f64::from(w[n]))
    }

    /// The solution by dense elimination of the normal equations, the bias last.
    pub fn oracle(&self) -> Vec<f64> {
        let k = self.rows.k();
        let size = k + usize::from(self.bias.is_some());
        let mut a = vec![vec![0.0; size]; size];
        let mut b = vec![0.0; size];
        for (i, row) in a.iter_mut().enumerate() {
            row[i] = f64::from(if i < k { self.lambda } else { self.bias.unwrap() });
        }
        for (n, &index) in self.indices.iter().enumerate() {
            let mut v: Vec<f64> =
                self.rows.row(index as usize)[..k].iter().map(|&v| v.into()).collect();
            v.resize(size, 1.0);
            for i in 0..size {
                let wv = self.weight(n) * v[i];
                b[i] += wv * f64::from(self.targets[n]);
                a[i].iter_mut().zip(&v).for_each(|(a, v)| *a += wv * v);
            }
        }
        solve_dense(a, b)
    }

    /// `Σ w e²` and `Σ w e` at `x` and `beta`, by plain loops.
    pub fn residuals(&self, x: &[f64], beta: f64) -> (f64, f64) {
        let (mut squares, mut errors) = (0.0, 0.0);
        for (n, &index) in self.indices.iter().enumerate() {
            let row = self.rows.row(index as usize);
            let p: f64 = x.iter().zip(row).map(|(x, &v)| x * f64::from(v)).sum();
            let e = f64::from(self.targets[n]) - p - beta;
            squares += self.weight(n) * e * e;
            errors += self.weight(n) * e;
        }
        (squares, errors)
    }

    pub fn objective(&self, x: &[f64], beta: f64) -> f64 {
        let penalty: f64 = x.iter().map(|x| x * x).sum::<f64>() * f64::from(self.lambda);
        let bias = f64::from(self.bias.unwrap_or(0.0)) * beta * beta;
        self.residuals(x, beta).0 + penalty + bias
    }

    pub fn objective_of(&self, solved: &(Vec<f32>, RowSolution)) -> f64 {
        self.objective(&wide(&solved.0[..self.rows.k()]), f64::from(solved.1.bias))
    }

    pub fn oracle_objective(&self) -> f64 {
        let best = self.oracle();
        let k = self.rows.k();
        self.objective(&best[..k], best.get(k).copied().unwrap_or(0.0))
    }
}

pub fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}
